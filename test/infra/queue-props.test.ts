import { Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Key } from 'aws-cdk-lib/aws-kms';
import { describe, expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { type ConsumerQueueProps, InboxConsumer, Mailroom, type MailroomProps } from '../../lib/index.ts';
import { refusalsOf } from './refusals.ts';
import { resources, testApp } from './synth.ts';

function queuesWith(queue: ConsumerQueueProps, props: (stack: Stack) => MailroomProps = () => ({})) {
  const stack = new Stack(testApp(), 'Test');
  const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['shop'], ...props(stack) });
  const events = [{ source: 'shop', type: 'OrderPlaced' }];
  const entry = lambdaEntry('example/inventory/handler');
  new InboxConsumer(stack, 'Consumer', { mailroom, name: 'one', service: 'one', events, entry, queue });
  const found = Object.entries(resources(Template.fromStack(stack), 'AWS::SQS::Queue'));
  return Object.fromEntries(
    found
      .filter(([id]) => id.startsWith('Consumer'))
      .map(([id, { Properties }]) => [id.replace(/^Consumer|[0-9A-F]{8}$/g, ''), Properties]),
  );
}

describe('queue of a consumer', () => {
  test('delay the messages of its source queue, and no others', () => {
    const { Queue, DeadLetters, Undelivered } = queuesWith({ deliveryDelay: Duration.minutes(2) });
    expect([Queue, DeadLetters, Undelivered].map(({ DelaySeconds }) => DelaySeconds)).toEqual([
      120,
      undefined,
      undefined,
    ]);
  });

  test('reuse the data keys of all three queues', () => {
    const reuse = { dataKeyReuse: Duration.hours(1) };
    const queues = queuesWith(reuse, (stack) => ({ encryptionKey: new Key(stack, 'Key') }));
    expect(Object.values(queues).map((queue) => queue.KmsDataKeyReusePeriodSeconds)).toEqual([
      3_600, 3_600, 3_600,
    ]);
  });

  test('settings of queue that cannot be passed on are refused', async () => {
    const cases: Readonly<Record<string, object>> = {
      'an order': { fifo: true },
      'the retention of the CDK': { retentionPeriod: Duration.days(7) },
      'their own key': { encryptionMasterKey: {} },
      'an unknown property': { color: 'red' },
      'reuse of data keys without a key': { dataKeyReuse: Duration.hours(1) },
      'a delay that SQS does not have': { deliveryDelay: Duration.hours(1) },
      'a delay of half a second': { deliveryDelay: Duration.millis(500) },
    };
    await expect(refusalsOf(cases, queuesWith)).toMatchFileSnapshot('__snapshots__/refused-queue-props.txt');
  });

  test('queue is refused with a delay that makes every heartbeat late', () => {
    const delayed = (deliveryDelay: Duration) => () =>
      queuesWith({ deliveryDelay }, () => ({ heartbeat: {} }));
    expect(delayed(Duration.minutes(5))).toThrow(
      'queue.deliveryDelay is 5 minutes, but with queue.batchingWindow it must be shorter than the interval between heartbeats, 5 minutes',
    );
    expect(delayed(Duration.minutes(4))).not.toThrow();
  });
});
