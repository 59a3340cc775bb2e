import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { externalEvent } from '../../lambdas/runtime/events/external-event.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, type InboxConsumerProps, Mailroom } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

const placed = { source: 'orders', type: 'OrderPlaced' };
const charged = externalEvent({
  source: 'bank',
  type: 'Charged',
  schema: z.object({ id: z.string() }),
  id: 'id',
});

function templateWith(props: (stack: Stack) => Partial<InboxConsumerProps>): Template {
  const stack = new Stack(testApp(), 'Test');
  new InboxConsumer(stack, 'Consumer', {
    mailroom: new Mailroom(stack, 'Mailroom', { sources: ['orders'] }),
    name: 'payments',
    service: 'payments',
    events: [placed],
    entry: lambdaEntry('example/inventory/handler'),
    ...props(stack),
  });
  return Template.fromStack(stack);
}

/** The message groups that the rules of the consumer set. */
function groupsOf(template: Template): Readonly<Record<string, unknown>> {
  const rules = Object.entries(resources(template, 'AWS::Events::Rule')).filter(([id]) =>
    id.startsWith('Consumer'),
  );
  return Object.fromEntries(
    rules.map(([id, { Properties }]) => [
      id.replace(/^Consumer|[0-9A-F]{8}$/g, ''),
      Properties.Targets[0].SqsParameters,
    ]),
  );
}

test.each([
  '$.detail.data.tenantId',
  '$.detail.data.order.tenant-id',
  '$.detail.aggregateId',
  '$.detail.type',
])('fairBy %s is the message group of the Mailroom events, and in the directory entry', (fairBy) => {
  const template = templateWith(() => ({ queue: { fairBy }, events: [placed, charged] }));
  expect(groupsOf(template)).toEqual({ Rule: { MessageGroupId: fairBy }, ExternalRule: undefined });
  expect(JSON.stringify(resources(template, 'AWS::SSM::Parameter'))).toContain(
    `\\"fairBy\\":\\"${fairBy}\\"`,
  );
});

test('without fairBy, no rule sets a message group', () => {
  expect(groupsOf(templateWith(() => ({})))).toEqual({ Rule: undefined });
});

describe('fairBy is refused', () => {
  test.each([
    'tenantId',
    '$.detail.tenantId', // not in the envelope
    '$.detail.data',
    '$.detail.data.',
    '$.detail.data.a b',
    '$.detail.data[0]',
    '$.detail.data.*',
    '$.source',
    '$.detail.eventId', // a group per message
    'by $.detail.data.tenantId',
    `$.detail.data.${'a'.repeat(87)}`,
    '',
  ])('as %j, which is not the path of a text in the envelope', (fairBy) => {
    expect(() => templateWith(() => ({ queue: { fairBy } }))).toThrow(
      `queue.fairBy is "${fairBy}", but must be the path of a text in the envelope, of at most 100 characters`,
    );
  });

  test('for an existing queue, and for external events only', () => {
    const fairBy = '$.detail.aggregateId';
    expect(() =>
      templateWith((stack) => {
        const deadLetterQueue = { queue: new Queue(stack, 'Dead'), maxReceiveCount: 1_000 };
        return {
          queue: { fairBy, existing: new Queue(stack, 'Existing', { deadLetterQueue }) },
          events: [charged],
        };
      }),
    ).toThrow(
      'queue.fairBy and queue.existing are both given, but the senders of an existing queue set the message groups.',
    );
    expect(() => templateWith(() => ({ queue: { fairBy }, events: [charged] }))).toThrow(
      'queue.fairBy is given, but events contains external events only, which have no envelope. Omit fairBy.',
    );
  });
});
