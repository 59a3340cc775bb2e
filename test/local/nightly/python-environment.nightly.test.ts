import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { ensureEnvironment, environmentDir, findPython } from '../../../localstack/python-environment.ts';

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function requirementsOf(content: string): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'mailroom-requirements-'));
  const file = join(dir, 'requirements.txt');
  await writeFile(file, content);
  const environment = await environmentDir(file);
  cleanups.push(async () => {
    await rm(dir, { recursive: true, force: true });
    await rm(environment, { recursive: true, force: true });
  });
  return file;
}

async function python(): Promise<string> {
  const found = await findPython();
  if (!found) throw new Error('These tests need Python 3.10 or later.');
  return found;
}

describe("the engine's Python environment", () => {
  it('other requirements get another environment', async () => {
    const one = await environmentDir(await requirementsOf('# one\n'));
    const two = await environmentDir(await requirementsOf('# two\n'));
    expect(one).not.toBe(two);
    expect(await environmentDir(await requirementsOf('# one\n'))).toBe(one);
  });

  it('two processes that start at once, and later ones, create one environment', async () => {
    const requirements = await requirementsOf(`# made once, ${Date.now()}\n`);
    const steps: string[] = [];
    const options = {
      python: await python(),
      requirements,
      proof: 'json',
      onProgress: (line: string) => steps.push(line),
    };
    const [one, two] = await Promise.all([ensureEnvironment(options), ensureEnvironment(options)]);
    expect(one).toBe(two);
    expect(existsSync(one)).toBe(true);
    steps.length = 0;
    expect(await ensureEnvironment(options)).toBe(one);
    expect(steps).toEqual([]);
  });

  it('a broken environment and the remains of an interrupted installation are replaced', async () => {
    const requirements = await requirementsOf(`# broken, ${Date.now()}\n`);
    const dir = await environmentDir(requirements);
    const [leftover, atWork] = [`${dir}.building-old`, `${dir}.building-new`];
    await mkdir(join(dir, 'bin'), { recursive: true });
    await writeFile(join(dir, 'bin', 'python'), 'not a python');
    for (const building of [leftover, atWork]) await mkdir(building);
    cleanups.push(() => rm(atWork, { recursive: true, force: true }));
    const anHourAgo = Date.now() / 1_000 - 3_600;
    await utimes(leftover, anHourAgo, anHourAgo);
    const interpreter = await ensureEnvironment({ python: await python(), requirements, proof: 'json' });
    expect(await findPython([interpreter])).toBe(interpreter);
    expect([leftover, atWork].map(existsSync)).toEqual([false, true]);
  });

  it('reports the failure, and leaves nothing behind that looks complete', async () => {
    const requirements = await requirementsOf('no-such-package==1.0 --hash=sha256:00\n');
    const failing = ensureEnvironment({ python: await python(), requirements });
    await expect(failing).rejects.toMatchObject({
      code: 'PYTHON_ENVIRONMENT',
      message: expect.stringContaining('run the same command again'),
    });
    expect(existsSync(await environmentDir(requirements))).toBe(false);
  });

  it('the environment uses an installed Python that is recent enough', async () => {
    expect(await findPython(['no-such-python'])).toBeUndefined();
    expect(await findPython(['no-such-python', await python()])).toBe(await python());
  });
});
