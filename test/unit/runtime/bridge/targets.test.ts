import { Kinesis } from '@aws-sdk/client-kinesis';
import { SNS } from '@aws-sdk/client-sns';
import { SQS } from '@aws-sdk/client-sqs';
import { jetstream } from '@nats-io/jetstream';
import { connect as connectToNats, headers } from '@nats-io/transport-node';
import { connect as connectToRabbit } from 'amqplib';
import { Kafka } from 'kafkajs';
import { describe, expect, test, vi } from 'vitest';
import { receiptText } from '../../../../lambdas/runtime/base/bridge-receipt.ts';
import { nextTurn } from '../../../../lambdas/runtime/base/clock.ts';
import {
  type BridgeTarget,
  bridge,
  jetStreamTarget,
  kafkaTarget,
  kinesisTarget,
  type RabbitConnection,
  rabbitTarget,
  type SqsSender,
  snsTarget,
  sqsTarget,
} from '../../../../lambdas/runtime/bridge.ts';
import { bridgedEvent } from '../../../contract/bridge-contract.ts';
import { broker, natsDouble, rabbitDouble } from '../../../contract/bridge-doubles.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, send } from '../consume/consumer-rig.ts';

const credentials = { accessKeyId: 'a', secretAccessKey: 'b' };
const settings = { region: 'eu-west-1', credentials, endpoint: 'http://127.0.0.1:9', maxAttempts: 1 };
const noLog = () => () => {};

/** Each target with the client of its package, which nothing answers on a port of this machine. */
const unreachable = {
  SQS: sqsTarget({ client: new SQS(settings), queueUrl: 'http://127.0.0.1:9/1/partner' }),
  SNS: snsTarget({ client: new SNS(settings), topicArn: 'arn:aws:sns:eu-west-1:1:orders' }),
  Kinesis: kinesisTarget({ client: new Kinesis(settings), streamName: 'orders' }),
  Kafka: kafkaTarget({
    client: (brokers) => new Kafka({ brokers, retry: { retries: 0 }, logCreator: noLog }),
    topic: 'orders',
    brokers: '127.0.0.1:9',
  }),
  JetStream: jetStreamTarget({
    connect: (servers) => connectToNats({ servers }),
    jetstream,
    headers,
    subject: 'o',
    servers: '127.0.0.1:9',
  }),
  RabbitMQ: rabbitTarget({ connect: connectToRabbit, exchange: 'orders', url: 'amqp://127.0.0.1:9' }),
};

describe('a target takes the client of its package', () => {
  test.each(Object.entries(unreachable))(
    '%s, which is retried if it cannot be reached',
    async (_, target) => {
      expect(await target.send([bridgedEvent()])).toMatchObject([
        { ok: false, refusal: 'unavailable', code: expect.stringMatching(/.{4}/) },
      ]);
    },
  );
});

describe('the address of a target', () => {
  test('comes from the environment that forwardsTo sets, and is asked for when something is sent', async () => {
    const sendMessageBatch = vi.fn<SqsSender['sendMessageBatch']>(async () => ({}));
    const target = sqsTarget({ client: { sendMessageBatch } });
    expect(() => target.name()).toThrow('MAILROOM_BRIDGE_TO is not set');
    vi.stubEnv('MAILROOM_BRIDGE_TO', 'https://sqs/1/partner.fifo');
    expect(target.name()).toBe('queue partner.fifo');
    await target.send([bridgedEvent({ aggregateId: 'order-1' }), bridgedEvent({ aggregateId: 'ä' })]);
    expect(sendMessageBatch.mock.calls[0]?.[0]).toMatchObject({
      QueueUrl: 'https://sqs/1/partner.fifo',
      Entries: [{ MessageGroupId: 'order-1' }, { MessageGroupId: expect.stringMatching(/^[0-9a-f]{64}$/) }],
    });
  });
});

describe('a wrong address of AWS', () => {
  const refusing = (name: string) => vi.fn(() => Promise.reject(Object.assign(new Error('no'), { name })));
  const targets = {
    SNS: [
      'InvalidParameterException',
      (publishBatch) => snsTarget({ client: { publishBatch }, topicArn: 'arn:orders' }),
    ],
    Kinesis: [
      'ValidationException',
      (putRecords) => kinesisTarget({ client: { putRecords }, streamName: 'or ders' }),
    ],
    SQS: [
      'InvalidAddress',
      (sendMessageBatch) => sqsTarget({ client: { sendMessageBatch }, queueUrl: 'https://elsewhere' }),
    ],
  } satisfies Record<string, [string, (call: () => Promise<never>) => BridgeTarget]>;

  test.each(Object.entries(targets))('%s: its events are retried', async (_, [fault, make]) => {
    expect(await make(refusing(fault)).send([bridgedEvent()])).toMatchObject([
      { ok: false, refusal: 'missing', code: fault },
    ]);
  });

  test.each(Object.entries(targets))(
    '%s: a bridge rejects none of the events of its batch',
    async (_, [fault, make]) => {
      const parts = rig();
      const call = refusing(fault);
      const events = [send(parts), send(parts)];
      await consumer(parts, bridge({ to: make(call), events: [ThingHappened] }), parts.table).deliver();
      for (const event of events)
        expect(inboxRow(parts, event)).toMatchObject({
          status: 'FAILED',
          lastError: expect.stringContaining(fault),
        });
    },
  );
});

test('SQS: an entry that is refused by itself is rejected', async () => {
  const sendMessageBatch = async () => ({ Failed: [{ Id: '0', Code: 'InvalidMessageContents' }] });
  const target = sqsTarget({ client: { sendMessageBatch }, queueUrl: 'q' });
  expect(await target.send([bridgedEvent()])).toMatchObject([{ refusal: 'invalid' }]);
});

test('SQS: the name of a bridge is part of the deduplication id, as its hash if it is too long', async () => {
  const sendMessageBatch = vi.fn<SqsSender['sendMessageBatch']>(async () => ({}));
  const target = sqsTarget({ client: { sendMessageBatch }, queueUrl: 'q.fifo' });
  const [entry, other] = [bridgedEvent(), bridgedEvent({ eventId: 'x'.repeat(200) })];
  await target.send([entry, other]);
  expect(sendMessageBatch.mock.calls[0]?.[0].Entries).toMatchObject([
    { MessageDeduplicationId: `to-partner/${entry.event.eventId}` },
    { MessageDeduplicationId: expect.stringMatching(/^[0-9a-f]{64}$/) },
  ]);
});

describe('JetStream', () => {
  const subject = ({ type }: { type: string }) => `orders.${type}`;

  test('an event that the stream already has counts as delivered', async () => {
    const target = jetStreamTarget({ ...natsDouble(broker()), subject, servers: 'n' });
    const entry = bridgedEvent();
    await target.send([entry]);
    const [result] = await target.send([entry]);
    expect(result).toEqual({ ok: true, place: { stream: 'ORDERS', sequence: 1 }, duplicate: true });
    expect(
      receiptText(JSON.stringify({ forwardedTo: 'subject o', place: { stream: 'ORDERS' }, duplicate: true })),
    ).toBe('delivered to subject o, stream ORDERS, which already had it');
  });

  test.each([
    [10077, 'unavailable'],
    [10054, 'too-large'],
  ])('an answer %s of its API is %s', async (err_code, refusal) => {
    const publish = () => Promise.reject(Object.assign(new Error('no'), { code: err_code }));
    const jetstream = () => ({ publish });
    const target = jetStreamTarget({ ...natsDouble(broker()), jetstream, subject, servers: 'n' });
    expect(await target.send([bridgedEvent()])).toMatchObject([
      { ok: false, refusal, code: String(err_code) },
    ]);
  });
});

test('JetStream: a secret that cannot be read is denied', async () => {
  const connect = () => Promise.reject(Object.assign(new Error('no'), { name: 'AccessDeniedException' }));
  const target = jetStreamTarget({ ...natsDouble(broker()), connect, subject: 'orders', servers: 'n' });
  expect(await target.send([bridgedEvent()])).toMatchObject([{ refusal: 'denied' }]);
});

describe('RabbitMQ', () => {
  test('a message that is returned is not delivered, although it is confirmed', async () => {
    const side = broker();
    const target = rabbitTarget({ connect: rabbitDouble(side), exchange: 'orders', url: 'amqp://r' });
    const entries = [bridgedEvent({ aggregateId: 'unroutable' }), bridgedEvent()];
    expect(await target.send(entries)).toMatchObject([
      { ok: false, refusal: 'missing', message: 'no queue is bound for the routing key "OrderPlaced"' },
      { ok: true, place: { 'routing key': 'OrderPlaced' } },
    ]);
    expect(side).toMatchObject({ connections: 1, messages: [{ id: entries[1]?.event.eventId }] });
  });
});

describe('RabbitMQ with several addresses', () => {
  const url = 'amqp://a, amqp://b';
  const targetOf = (connect: Parameters<typeof rabbitTarget>[0]['connect']) =>
    rabbitTarget({ connect, exchange: 'orders', url, clock: { now: () => 0, sleep: async () => {} } });

  test('takes the first that answers, and closes one that answers too late', async () => {
    const [tried, closed]: [string[], string[]] = [[], []];
    let answer = (_: RabbitConnection) => {};
    const late = await rabbitDouble(broker())();
    const connect = async (address: string) => {
      tried.push(address);
      if (address === 'amqp://b') return rabbitDouble(broker())();
      return new Promise<RabbitConnection>((resolve) => {
        answer = resolve;
      });
    };
    expect(await targetOf(connect).send([bridgedEvent()])).toMatchObject([{ ok: true }]);
    answer({ ...late, close: async () => void closed.push('late') });
    await nextTurn();
    expect(tried).toEqual(['amqp://a', 'amqp://b']);
    expect(closed).toEqual(['late']);
  });

  test.each([
    ['is refused', 'denied', { message: '403 (ACCESS-REFUSED)' }, ['amqp://a']],
    [
      'has no such virtual host',
      'denied',
      { message: 'Expected ConnectionOpenOk; got <ConnectionClose channel:0>' },
      ['amqp://a'],
    ],
    ['cannot read its secret', 'denied', { name: 'AccessDeniedException' }, ['amqp://a']],
    ['finds no broker', 'unavailable', { code: 'ECONNREFUSED' }, ['amqp://a', 'amqp://b']],
  ])('a login that %s is %s', async (_, refusal, fault, addresses) => {
    const tried: string[] = [];
    const connect = (address: string) => {
      tried.push(address);
      return Promise.reject(Object.assign(new Error('no'), fault));
    };
    expect(await targetOf(connect).send([bridgedEvent()])).toMatchObject([{ refusal }]);
    expect(tried).toEqual(addresses);
  });
});

test('Kinesis: a stream is named by its ARN, which has its account and region', async () => {
  const streamName = 'arn:aws:kinesis:eu-west-1:111122223333:stream/orders';
  const sent: object[] = [];
  const client = {
    putRecords: async (input: object) => {
      sent.push(input);
      return { Records: [{ ShardId: 's', SequenceNumber: '1' }] };
    },
  };
  const target = kinesisTarget({ client, streamName });
  expect(await target.send([bridgedEvent()])).toMatchObject([{ ok: true }]);
  expect(sent).toMatchObject([{ StreamARN: streamName }]);
  expect(sent[0]).not.toHaveProperty('StreamName');
  expect(target.name()).toBe('stream orders');
});

test('Kinesis: an aggregate id that cannot be a partition key is replaced by its SHA-256', async () => {
  const keys: string[] = [];
  const client = {
    putRecords: async ({ Records }: { Records: { PartitionKey: string }[] }) => {
      keys.push(...Records.map(({ PartitionKey }) => PartitionKey));
      return { Records: Records.map(() => ({ ShardId: 's', SequenceNumber: '1' })) };
    },
  };
  const target = kinesisTarget({ client, streamName: 'orders' });
  for (const aggregateId of ['a\uD83D', '\uDE00b', '\u{1F600}\n', 'x'.repeat(257)]) {
    const entry = bridgedEvent();
    await target.send([{ ...entry, event: { ...entry.event, aggregateId } }]);
  }
  const hash = expect.stringMatching(/^[0-9a-f]{64}$/);
  expect(keys).toEqual([hash, hash, '\u{1F600}\n', hash]);
});

test('a result that is not a receipt has no text', () => {
  for (const result of [undefined, 'null', '{', '3', '{"forwardedTo":"x"}', '{"forwardedTo":1,"place":{}}'])
    expect(receiptText(result)).toBeUndefined();
});
