import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ADDRESSES } from '../../infra/synth.ts';
import { runCdk, STACKS } from '../support/cdk-command.ts';

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mailroom-cdk-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

/** The templates of an assembly, by stack. */
async function templates(assembly: string): Promise<Record<string, string>> {
  const files = (await readdir(assembly)).filter((file) => file.endsWith('.template.json'));
  const read = files.map(async (file) => [
    file.replace('.template.json', ''),
    await readFile(join(assembly, file), 'utf8'),
  ]);
  return Object.fromEntries(await Promise.all(read));
}

describe.concurrent('cdk synth --all, without credentials', () => {
  it.each(['dev', 'prod'])('makes every stack of the stage %s, and none of it is local', async (stage) => {
    const assembly = join(dir, stage);
    const context = Object.entries({ stage, ...ADDRESSES }).flatMap((entry) => ['-c', entry.join('=')]);
    const args = ['synth', '--all', '--quiet', ...context, '--output', assembly];
    const { code, output } = await runCdk('aws-cdk/bin/cdk', args);

    expect(code, output).toBe(0);
    const stacks = await templates(assembly);
    expect(Object.keys(stacks).sort()).toEqual(STACKS);
    expect(stacks.Orders).toContain('"AuthType": "AWS_IAM"');
    for (const template of Object.values(stacks)) {
      expect(template).not.toMatch(
        /127\.0\.0\.1|localhost|000000000000|AWS_ENDPOINT_URL|ministack|localstack/i,
      );
      expect(template).not.toContain('"DeletionPolicy": "Delete"');
    }
  });
});
