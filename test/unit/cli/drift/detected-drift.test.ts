import { expect, test } from 'vitest';
import type { StackDrift } from '../../../../cli/deployment/stack-drift.ts';
import { doctorReport, doctorText } from '../../../../cli/reports/findings/doctor.ts';
import { examine } from '../../../../cli/reports/findings/examination.ts';
import { unwrapped } from '../../../support/captured-io.ts';
import { cloudFormationInMemory } from '../support/cloudformation-in-memory.ts';
import { directory, mailroomInMemory } from '../support/mailroom-in-memory.ts';
import { resourcesInMemory } from '../support/resources-in-memory.ts';
import { runInMemory } from '../support/run-in-memory.ts';

const IN_SYNC: StackDrift = { compared: 7, drifted: [] };

function examining(detect: (stack: string) => Promise<StackDrift>, rig = resourcesInMemory(directory)) {
  return examine({ ...rig.deps, detect });
}

/** A resource of the Mailroom's stack that has drifted. */
function driftOf(
  rig: ReturnType<typeof resourcesInMemory>,
  type: string,
  members: StackDrift['drifted'][number]['members'],
) {
  const resource = rig.declared.find((one) => one.type === type);
  if (resource === undefined) throw new Error(`No ${type} is declared.`);
  const { logicalId, physicalId, stack } = resource;
  const drifted = [{ logicalId, physicalId, type, members }];
  return {
    resource,
    detect: async (name: string) => (name === stack.stack ? { compared: 7, drifted } : IN_SYNC),
  };
}

test('without --drift, CloudFormation detects nothing', async () => {
  expect(await examine(resourcesInMemory(directory).deps)).toMatchObject({ drift: null, problems: [] });
});

test('stacks in sync are counted, and no problem', async () => {
  const found = await examining(async () => IN_SYNC);
  const stacks = new Set([directory.mailroom, ...directory.consumers].map(({ stack }) => stack)).size;
  expect(found).toMatchObject({ problems: [], notChecked: [], drift: { stacks, resources: 7 * stacks } });
  const text = doctorText(doctorReport(directory, 'eu-west-1', 0, found), {
    commandLine: String,
    awsLine: String,
  });
  expect(unwrapped(text)).toContain(`drift detection compared ${7 * stacks} resources`);
});

test('a drifted member is a problem of its part, with both values and the deployment of its stack', async () => {
  const rig = resourcesInMemory(directory);
  const { resource, detect } = driftOf(rig, 'AWS::SQS::Queue', [
    { path: '/DelaySeconds', declared: null, deployed: '9' },
    { path: '/RedrivePolicy/maxReceiveCount', declared: '5', deployed: '6' },
    { path: '/Tags/0', declared: '{"Key":"a"}', deployed: null },
  ]);
  const { problems } = await examining(detect, rig);
  const { logicalId, part, type } = resource;
  expect(problems).toMatchObject([
    { part, problem: 'drifted', resource: `${logicalId}/DelaySeconds`, declared: null, deployed: '9' },
    { type, member: '/RedrivePolicy/maxReceiveCount', declared: '5', deployed: '6' },
    { declared: '{"Key":"a"}', deployed: null },
  ]);
  expect(problems.map(({ text }) => text)).toEqual([
    expect.stringMatching(/is 9, which its stack does not declare$/),
    expect.stringMatching(/is 6 instead of 5$/),
    expect.stringMatching(/is not set instead of \{"Key":"a"\}$/),
  ]);
  expect(problems[0]?.fix).toContain('--revert-drift');
});

test('a deleted resource is a problem', async () => {
  const rig = resourcesInMemory(directory);
  const { detect } = driftOf(rig, 'AWS::SQS::Queue', []);
  expect((await examining(detect, rig)).problems).toMatchObject([
    { problem: 'drifted', text: expect.stringMatching(/does not exist$/) },
  ]);
});

test('a value of an environment variable is hidden, because it may be a secret', async () => {
  const rig = resourcesInMemory(directory);
  const path = '/Environment/Variables/API_KEY';
  const { detect } = driftOf(rig, 'AWS::Lambda::Function', [
    { path, declared: 's3cret', deployed: 's4cret' },
  ]);
  const { problems } = await examining(detect, rig);
  expect(problems).toMatchObject([{ declared: 'hidden', deployed: 'hidden' }]);
  expect(JSON.stringify(problems)).not.toContain('cret');
});

test('drift that the comparison has found is reported once, as the comparison explains it', async () => {
  const rig = resourcesInMemory(directory);
  const { resource, detect } = driftOf(rig, 'AWS::SQS::Queue', [
    { path: '/VisibilityTimeout', declared: '180', deployed: '7' },
  ]);
  rig.changeMember(resource.logicalId, 'VisibilityTimeout', 7);
  expect((await examining(detect, rig)).problems.map(({ problem }) => problem)).toEqual(['differs']);
});

test('drift of other resources in the stack is named, and no problem', async () => {
  const others = [{ logicalId: 'Website', physicalId: 'w', type: 'AWS::S3::Bucket', members: [] }];
  const found = await examining(async () => ({ compared: 8, drifted: others }));
  expect(found.problems).toEqual([]);
  expect(found.skipped).toContain(
    `drift of Website in ${directory.mailroom.stack}, not part of this Mailroom`,
  );
});

test('a detection that fails in part, or does not start, leaves its parts unchecked', async () => {
  const partly = await examining(async () => ({ ...IN_SYNC, fault: 'iam:GetRole is denied.' }));
  expect(partly.notChecked.map(({ why }) => why)).toContain(
    `CloudFormation's drift detection of ${directory.mailroom.stack} is not complete: iam:GetRole is denied`,
  );
  const refused = await examining(async () => {
    throw Object.assign(new Error('Drift detection is already in progress'), { name: 'ValidationError' });
  });
  expect(refused.notChecked.map(({ why }) => why).join()).toContain('already in progress');
  expect(refused.drift).toEqual({ stacks: 0, resources: 0 });
});

test('a denied detection names the missing actions, and an endpoint without it says so', async () => {
  const failing = (name: string, message: string) =>
    examining(async () => {
      throw Object.assign(new Error(message), { name });
    });
  const denied = await failing('AccessDenied', 'not authorized to perform: cloudformation:DetectStackDrift');
  expect(denied.notChecked).toMatchObject([{ needs: ['cloudformation:DetectStackDrift'] }]);
  const unsupported = await failing('UnknownOperationException', 'unknown');
  expect(unsupported.notChecked).toEqual([]);
  expect(unsupported.skipped.join()).toContain('does not support cloudformation:DetectStackDrift');
});

test('doctor --drift detects the drift of every stack', async () => {
  const names = [...new Set([directory.mailroom, ...directory.consumers].map(({ stack }) => stack))];
  const stack = {
    body: '{}',
    physicalIds: {},
    drift: { drifts: [{ StackResourceDriftStatus: 'IN_SYNC' }] as never },
  };
  const { client, sent } = cloudFormationInMemory(Object.fromEntries(names.map((name) => [name, stack])));
  const { out } = await runInMemory({ ...mailroomInMemory([]), isLocal: true, cloudFormation: client }, [
    'doctor',
    '--drift',
  ]);
  expect(unwrapped(out)).toContain(`drift detection compared ${names.length} resources`);
  expect(sent.filter((command) => command === 'DetectStackDriftCommand')).toHaveLength(names.length);
});
