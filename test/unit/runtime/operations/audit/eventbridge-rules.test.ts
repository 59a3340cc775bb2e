import {
  DescribeRuleCommand,
  EventBridgeClient,
  ListTargetsByRuleCommand,
  type Target,
} from '@aws-sdk/client-eventbridge';
import { afterEach, expect, test, vi } from 'vitest';
import { changingTargets } from '../../../../../lambdas/runtime/operations/audit/audit-drift.ts';
import { eventBridgeRules } from '../../../../../lambdas/runtime/operations/audit/eventbridge-rules.ts';

const client = new EventBridgeClient({ region: 'eu-west-1' });
const ARN = 'arn:aws:sqs:eu-west-1:123456789012:payments';
const KEPT = {
  DeadLetterConfig: { Arn: 'arn:aws:sqs:eu-west-1:123456789012:undelivered' },
  RetryPolicy: { MaximumEventAgeInSeconds: 3_600 },
  SqsParameters: { MessageGroupId: '$.detail.data.tenant' },
};

afterEach(() => vi.restoreAllMocks());

async function changing(change: Partial<Target>) {
  vi.spyOn(client, 'send').mockImplementation(async (command: unknown) => {
    if (command instanceof DescribeRuleCommand) return { State: 'ENABLED', EventPattern: '{}' };
    if (command instanceof ListTargetsByRuleCommand)
      return { Targets: [{ Id: 'Queue', Arn: ARN, ...KEPT, ...change }] };
    throw new Error('another call');
  });
  return changingTargets(await eventBridgeRules(client).describe('bus', 'rule'), ARN);
}

test.each([
  ['Input', { Input: '{}' }],
  ['InputPath', { InputPath: '$.detail' }],
  ['InputTransformer', { InputTransformer: { InputTemplate: '"<a>"' } }],
] as const)(
  'a target with %s changes events, and is put again with its other settings',
  async (input, change) => {
    expect(await changing(change)).toEqual({ inputs: [input], whole: [{ Id: 'Queue', Arn: ARN, ...KEPT }] });
  },
);

test.each([
  ['without an input', {}],
  ['with the path of the whole event', { InputPath: '$' }],
])('a target %s does not change events', async (_which, change) => {
  expect(await changing(change)).toBeUndefined();
});
