import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { localEnvironment } from '../../../localstack/workspace.ts';
import { runCdk, STACKS } from '../support/cdk-command.ts';

let dir: string;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'mailroom-cdk-'));
});

afterAll(async () => {
  await rm(dir, { recursive: true, force: true });
});

describe('cdklocal', () => {
  // The output folder is not the one of the first deployment, nor as deep: the bundles must not depend on it.
  it('finds nothing to change in what was deployed', async () => {
    const environment = localEnvironment(inject('endpoint'));
    const assembly = join(dir, 'again');
    const compared = await runCdk(
      'aws-cdk-local/bin/cdklocal',
      ['diff', '--all', '--fail', '--output', assembly],
      environment,
    );
    expect(compared.code, compared.output).toBe(0);
    expect(compared.output).toContain('Number of stacks with differences: 0');

    const { code, output } = await runCdk(
      'aws-cdk-local/bin/cdklocal',
      ['deploy', '--all', '--require-approval', 'never', '--app', assembly],
      environment,
    );
    expect(code, output).toBe(0);
    const unchanged = [...output.matchAll(/✅\s+(\S+) \(\S+\) \(no changes\)/gu)].map(([, stack]) => stack);
    expect(unchanged.sort(), output).toEqual(STACKS);
  });
});
