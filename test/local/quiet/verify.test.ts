import { expect, inject, test } from 'vitest';
import { leftBehind } from '../../../verify/left-behind.ts';
import { runVerify } from '../support/verify-command.ts';

// Deploying, every test and destroying are a nightly test: verify.nightly.test.ts.
test('what exists of a deployment is found by its outputs, and what does not exist is not', async () => {
  const outputs = inject('outputs');
  const found = await leftBehind(outputs);
  expect(found).toContain(outputs.TableName);
  expect(found).toHaveLength(11); // two tables, the bus and eight queues
  const gone = Object.entries(outputs).map(([name, value]) => [name, `${value}-gone`]);
  expect(await leftBehind(Object.fromEntries(gone))).toEqual([]);
});

test('verify deploys nothing without an explicit target, whatever the environment contains', async () => {
  const { code, out, err } = await runVerify([], { env: { AWS_PROFILE: 'prod' } });
  expect({ code, out }).toEqual({ code: 2, out: '' });
  expect(err).toMatch(/^Neither --profile nor --local is given/);
});

test('a profile that leads to no account is refused with the command that shows why', async () => {
  const { code, err } = await runVerify(['--profile', 'sandbox', '--region', 'eu-west-1', '--yes']);
  expect(code).toBe(2);
  expect(err).toContain('aws sts get-caller-identity --profile sandbox');
});
