import { expect, test } from 'vitest';
import { differenceProblem } from '../../../../cli/reports/drift/difference-problem.ts';
import { queueKinds } from '../../../../cli/reports/drift/queue-kinds.ts';
import { directory, worker } from '../support/mailroom-in-memory.ts';

const allow = {
  Effect: 'Allow',
  Principal: { Service: 'events.amazonaws.com' },
  Action: 'sqs:SendMessage',
  Resource: 'arn:aws:sqs:eu-west-1:111122223333:worker-queue',
};

function textOf(declared: readonly object[], deployed: readonly object[]): string {
  const { PolicyDocument: means = {} } = queueKinds['AWS::SQS::QueuePolicy']?.members ?? {};
  const resource = {
    type: 'AWS::SQS::QueuePolicy',
    logicalId: 'Policy',
    physicalId: 'policy',
    part: worker.name,
    stack: directory.mailroom,
    properties: { Queues: [worker.queue] },
  };
  const [before, now] = [declared, deployed].map((Statement) => ({ Version: '2012-10-17', Statement }));
  return differenceProblem({ resource, member: 'PolicyDocument', declared: before, deployed: now, means })
    .text;
}

test('a Deny that was added is named by its id, in words, with its effect', () => {
  const Condition = {
    ArnEquals: { 'aws:SourceArn': `arn:aws:events:eu-west-1:111122223333:rule/${'a'.repeat(160)}` },
  };
  const deny = { ...allow, Sid: 'SecurityBaseline', Effect: 'Deny', Condition };
  expect(textOf([allow], [allow, deny])).toMatch(
    / has a Deny of sqs:sendmessage for events\.amazonaws\.com on a condition \(SecurityBaseline\), which its stack does not declare: its rule may not send to it, /,
  );
});

test('an Allow that was added lets others in, and one that is gone is named', () => {
  const other = { ...allow, Sid: 'Mine', Principal: { AWS: '*' } };
  expect(textOf([allow], [other])).toMatch(
    / has an Allow of sqs:sendmessage for \* \(Mine\), which its stack does not declare, and lacks an Allow of sqs:sendmessage for events\.amazonaws\.com: senders or readers /,
  );
});
