import { expect, test } from 'vitest';
import { detectDrift } from '../../../cli/deployment/stack-drift.ts';
import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { cloudFormationInMemory, type StackInMemory } from './support/cloudformation-in-memory.ts';

const drifts = [
  {
    LogicalResourceId: 'Queue',
    PhysicalResourceId: 'https://sqs/queue',
    ResourceType: 'AWS::SQS::Queue',
    StackResourceDriftStatus: 'MODIFIED',
    PropertyDifferences: [
      { PropertyPath: '/DelaySeconds', ExpectedValue: 'null', ActualValue: '9', DifferenceType: 'ADD' },
      { PropertyPath: '/Tags/0', ExpectedValue: '{}', ActualValue: 'null', DifferenceType: 'REMOVE' },
      {
        PropertyPath: '/VisibilityTimeout',
        ExpectedValue: '30',
        ActualValue: '7',
        DifferenceType: 'NOT_EQUAL',
      },
    ],
  },
  {
    LogicalResourceId: 'Role',
    PhysicalResourceId: 'role',
    ResourceType: 'AWS::IAM::Role',
    StackResourceDriftStatus: 'DELETED',
  },
  { LogicalResourceId: 'Bus', StackResourceDriftStatus: 'IN_SYNC' },
  { LogicalResourceId: 'Policy', StackResourceDriftStatus: 'NOT_CHECKED' },
] as never;

function detecting(drift: StackInMemory['drift'], signal = new AbortController().signal) {
  const { client, sent } = cloudFormationInMemory({ shop: { body: '{}', physicalIds: {}, drift } });
  let now = 0;
  const clock: Clock = {
    now: () => now,
    sleep: async (ms) => {
      now += ms;
    },
  };
  return { sent, found: detectDrift(client, 'shop', { clock, signal }) };
}

test('drift detection is waited for, and its result has the resources that differ', async () => {
  const states = ['DETECTION_IN_PROGRESS', 'DETECTION_IN_PROGRESS', 'DETECTION_COMPLETE'];
  const { found, sent } = detecting({ drifts, states });
  expect(await found).toEqual({
    compared: 3,
    fault: undefined,
    drifted: [
      {
        logicalId: 'Queue',
        physicalId: 'https://sqs/queue',
        type: 'AWS::SQS::Queue',
        members: [
          { path: '/DelaySeconds', declared: null, deployed: '9' },
          { path: '/Tags/0', declared: '{}', deployed: null },
          { path: '/VisibilityTimeout', declared: '30', deployed: '7' },
        ],
      },
      { logicalId: 'Role', physicalId: 'role', type: 'AWS::IAM::Role', members: [] },
    ],
  });
  expect(sent.filter((command) => command === 'DescribeStackDriftDetectionStatusCommand')).toHaveLength(3);
});

test('a failed detection has the resources that were compared, and the reason', async () => {
  const { found } = detecting({ drifts, states: ['DETECTION_FAILED'], reason: 'iam:GetRole is denied' });
  expect(await found).toMatchObject({ compared: 3, fault: 'iam:GetRole is denied' });
});

test('a detection that does not end is not waited for longer than 10 minutes', async () => {
  const { found, sent } = detecting({ drifts, states: ['DETECTION_IN_PROGRESS'] });
  expect(await found).toEqual({ compared: 0, drifted: [], fault: 'it has not ended after 10 minutes' });
  expect(sent.length).toBeLessThan(400);
});

test('Ctrl-C ends the wait', async () => {
  const controller = new AbortController();
  controller.abort();
  const { found, sent } = detecting({ drifts, states: ['DETECTION_IN_PROGRESS'] }, controller.signal);
  expect(await found).toMatchObject({ compared: 0 });
  expect(sent).toEqual(['DetectStackDriftCommand', 'DescribeStackDriftDetectionStatusCommand']);
});

test('a detection that CloudFormation does not start is an error', async () => {
  await expect(detecting(undefined).found).rejects.toThrow('already in progress');
});
