import { expect, inject, test } from 'vitest';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';
import { unsignedCheck } from '../../../verify/checks/orders.ts';
import { moveTaskCheck } from '../../../verify/checks/redrive.ts';
import { deployedSystem } from '../../../verify/deployed-system.ts';
import { leftBehind } from '../../../verify/left-behind.ts';
import { isMiniStack } from '../../support/aws.ts';
import { runVerify } from '../support/verify-command.ts';

// Deploying, every check and destroying are a nightly test: verify.nightly.test.ts. These checks disturb no test beside them.
test('an order whose message died is redriven; what the engine cannot show is not called passed', async () => {
  const endpoint = inject('endpoint');
  const system = await deployedSystem({
    target: { account: LOCAL_ACCOUNT, region: LOCAL_REGION, endpoint },
    name: 'local',
    outputs: inject('outputs'),
    steps: { say: () => {}, step: () => {}, detail: () => {} },
    signal: new AbortController().signal,
  });
  // The API of the stage `local` is open.
  expect(await unsignedCheck.run(system)).toMatchObject({ outcome: 'not-shown' });
  const moved = await moveTaskCheck.run(system);
  if (await isMiniStack(endpoint)) {
    expect(moved).toMatchObject({
      outcome: 'not-shown',
      detail: expect.stringContaining('StartMessageMoveTask'),
    });
  }
});

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
