import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, it, vi } from 'vitest';
import { parsePort, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { identify } from '../../localstack/health.ts';
import { logFile } from '../../localstack/ministack.ts';
import { ensureEnvironment, environmentDir, findPython } from '../../localstack/python-environment.ts';
import { projectRoot } from '../../localstack/workspace.ts';

// Python environments are made anew here: that takes as long as the machine takes.
vi.setConfig({ testTimeout: 600_000 });

const cleanups: (() => Promise<unknown>)[] = [];

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

async function foreignServer(): Promise<number> {
  const server: Server = createServer((_request, response) => response.end('<h1>not an engine</h1>'));
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  cleanups.push(async () => await new Promise((resolve) => server.close(resolve)));
  return port;
}

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

describe('finding an engine', () => {
  it('takes the engine that answers on the port, and leaves it running', async () => {
    const endpoint = inject('endpoint');
    const engine = await startEngine({ port: Number(new URL(endpoint).port), env: {} });
    expect(engine).toMatchObject({ endpoint, startedHere: false });
    await engine.stop();
    expect(await identify(endpoint)).toBe(engine.kind);
  });

  it('takes what AWS_ENDPOINT_URL names, and leaves it running', async () => {
    const endpoint = inject('endpoint');
    const engine = await startEngine({ env: { AWS_ENDPOINT_URL: `${endpoint}/` } });
    expect(engine).toMatchObject({ endpoint, kind: 'external', startedHere: false });
    await engine.stop();
    expect(['ministack', 'localstack']).toContain(await identify(endpoint));
  });

  it('says that nothing answers at AWS_ENDPOINT_URL', async () => {
    const given = `http://127.0.0.1:${await freePort()}`;
    await expect(startEngine({ env: { AWS_ENDPOINT_URL: given } })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining(`AWS_ENDPOINT_URL is "${given}", but nothing answers there`),
    });
    await expect(startEngine({ env: { AWS_ENDPOINT_URL: 'localhost' } })).rejects.toMatchObject({
      code: 'ENGINE_UNREACHABLE',
      message: expect.stringContaining('that is no URL'),
    });
  });

  it('names the port that something else holds, and how to choose another', async () => {
    const port = await foreignServer();
    await expect(startEngine({ port, env: {} })).rejects.toMatchObject({
      code: 'PORT_IN_USE',
      message: expect.stringMatching(new RegExp(`Port ${port} is in use.*--port.*MAILROOM_PORT=${port + 1}`)),
    });
  });

  it.each(['0', '65536', '45.5', 'http', ''])('refuses "%s" as a port', (text) => {
    expect(() => parsePort(text)).toThrow(`Port "${text}" is not a whole number from 1 to 65535`);
  });
});

describe('an engine that was started here', () => {
  it('ends with the process that started it, even when that is killed', async () => {
    const port = await freePort();
    const endpoint = `http://127.0.0.1:${port}`;
    const script = [
      `import { startEngine } from ${JSON.stringify(join(projectRoot, 'localstack', 'engine.ts'))};`,
      `const engine = await startEngine({ port: ${port}, env: {} });`,
      'console.log(engine.startedHere);',
      'process.stdin.resume();',
    ].join('\n');
    const parent = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '--eval', script], {
      cwd: projectRoot,
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    cleanups.push(async () => {
      parent.kill('SIGKILL');
      await rm(logFile(port), { force: true });
    });
    const said = await new Promise((resolve) => parent.stdout.once('data', (data) => resolve(String(data))));
    expect(said).toBe('true\n');
    expect(await identify(endpoint)).toBe('ministack');
    parent.kill('SIGKILL');
    await vi.waitFor(async () => expect(await identify(endpoint)).toBe('nothing'), { timeout: 120_000 });
  });
});

describe("the engine's Python environment", () => {
  it('is another one for another list of requirements', async () => {
    const one = await environmentDir(await requirementsOf('# one\n'));
    const two = await environmentDir(await requirementsOf('# two\n'));
    expect(one).not.toBe(two);
    expect(await environmentDir(await requirementsOf('# one\n'))).toBe(one);
  });

  it('is made once, by two that start at the same time and by those that come later', async () => {
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

  it('is made again when it is broken, and takes away what an interrupted installation left', async () => {
    const requirements = await requirementsOf(`# broken, ${Date.now()}\n`);
    const dir = await environmentDir(requirements);
    // No process has this number: Linux and macOS stay far below it.
    const leftover = `${dir}.building-99999999-abc123`;
    await mkdir(join(dir, 'bin'), { recursive: true });
    await writeFile(join(dir, 'bin', 'python'), 'not a python');
    await mkdir(leftover);
    const interpreter = await ensureEnvironment({ python: await python(), requirements, proof: 'json' });
    expect(await findPython([interpreter])).toBe(interpreter);
    expect(existsSync(leftover)).toBe(false);
  });

  it('says what went wrong, and leaves nothing behind that looks whole', async () => {
    const requirements = await requirementsOf('no-such-package==1.0 --hash=sha256:00\n');
    const failing = ensureEnvironment({ python: await python(), requirements });
    await expect(failing).rejects.toMatchObject({
      code: 'PYTHON_ENVIRONMENT',
      message: expect.stringContaining('run the same command again'),
    });
    expect(existsSync(await environmentDir(requirements))).toBe(false);
  });

  it('is made with a Python that is there and recent enough', async () => {
    expect(await findPython(['no-such-python'])).toBeUndefined();
    expect(await findPython(['no-such-python', await python()])).toBe(await python());
  });
});
