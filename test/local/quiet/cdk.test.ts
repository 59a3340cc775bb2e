import { expect, inject, test } from 'vitest';
import { assemblyOf } from '../../../localstack/assembly.ts';
import { localEnvironment } from '../../../localstack/workspace.ts';
import { runCdk, STACKS } from '../support/cdk-command.ts';

async function cdklocal(...args: string[]): Promise<string> {
  const environment = localEnvironment(inject('endpoint'));
  const app = ['--all', '--app', await assemblyOf()];
  const { code, output } = await runCdk('aws-cdk-local/bin/cdklocal', [...args, ...app], environment);
  expect(code, output).toBe(0);
  return output;
}

test('cdklocal finds nothing to change in what was deployed', async () => {
  expect(await cdklocal('diff', '--fail')).toContain('Number of stacks with differences: 0');
  const output = await cdklocal('deploy', '--require-approval', 'never');
  const unchanged = [...output.matchAll(/✅\s+(\S+) \(\S+\) \(no changes\)/gu)].map(([, stack]) => stack);
  expect(unchanged.sort(), output).toEqual(STACKS);
});
