import { describe, expect, test } from 'vitest';
import {
  amqpShortString,
  awsAttribute,
  kafkaTopic,
  natsSubject,
} from '../../../../lambdas/runtime/bridge/message-grammar.ts';
import type { BridgeTarget } from '../../../../lambdas/runtime/bridge.ts';
import {
  jetStreamTarget,
  kafkaTarget,
  kinesisTarget,
  rabbitTarget,
  snsTarget,
  sqsTarget,
} from '../../../../lambdas/runtime/bridge.ts';
import { bridgedEvent } from '../../../contract/bridge-contract.ts';
import {
  type Broker,
  broker,
  kafkaDouble,
  kinesisDouble,
  natsDouble,
  rabbitDouble,
  snsDouble,
  sqsDouble,
} from '../../../contract/bridge-doubles.ts';

const BAD_ARGUMENT = expect.objectContaining({ code: 'BAD_ARGUMENT' });

describe('the grammar of', () => {
  test.each([
    ['orders', undefined],
    ['orders.42', undefined],
    ['Größe🎉.42', undefined],
    ['$KV.orders.42', undefined],
    ['orders.Jane Doe', 'white space'],
    ['orders.42 ', 'white space'],
    ['orders.a\tb', 'white space'],
    ['orders.x\r\nPUB admin.deleteAll 2\r\nhi', 'white space'],
    ['orders.\u0000', 'control character'],
    ['orders.\u0085', 'control character'],
    ['orders.\u00a0', 'white space'],
    ['orders.\ud83c', 'control character'],
    ['', 'empty token'],
    ['orders.', 'empty token'],
    ['orders..42', 'empty token'],
    ['orders.*', 'wildcard'],
    ['orders.>', 'wildcard'],
    ['$JS.API.STREAM.DELETE.ORDERS', 'belongs to NATS'],
    ['$SYS.REQ', 'belongs to NATS'],
    ['_INBOX.x', 'belongs to NATS'],
  ])('a subject of NATS: %j', (subject, problem) => {
    expect(natsSubject(subject)).toEqual(problem && expect.stringContaining(problem));
  });

  test.each([
    ['orders.v1_2-x', true],
    ['', false],
    ['.', false],
    ['..', false],
    ['a b', false],
    ['ä', false],
  ])('a topic of Kafka: %j', (topic, isValid) => {
    expect(kafkaTopic(topic) === undefined).toBe(isValid);
  });

  test.each([
    ['', true],
    ['orders.42', true],
    ['\ud83c', false],
  ])('a short string of AMQP: %j', (text, isValid) => {
    expect(amqpShortString(text) === undefined).toBe(isValid);
  });

  test.each([
    ['a\tb\r\n€🎉', true],
    ['', false],
    ['\u0001', false],
    ['\u001b[31m', false],
    ['\uffff', false],
    ['\ud83c', false],
  ])('an attribute of SQS and SNS: %j', (text, isValid) => {
    expect(awsAttribute(text) === undefined).toBe(isValid);
  });
});

test.each([
  ['a subject of NATS', natsSubject, 3_840],
  ['a topic of Kafka', kafkaTopic, 249],
  ['a short string of AMQP', amqpShortString, 255],
])('%s has a greatest length', (_, grammar, maxBytes) => {
  expect(grammar('x'.repeat(maxBytes))).toBeUndefined();
  expect(grammar('x'.repeat(maxBytes + 1))).toContain(String(maxBytes));
});

test('the length of a short string of AMQP is that in UTF-8', () => {
  expect(amqpShortString('ä'.repeat(128))).toBe('has 256 bytes; 255 are allowed');
});

/** A target that builds its message from an event, and an event of which it cannot. */
const unsendable: readonly (readonly [
  string,
  (side: Broker) => BridgeTarget,
  Parameters<typeof bridgedEvent>,
])[] = [
  [
    'a subject of NATS',
    (side) =>
      jetStreamTarget({
        ...natsDouble(side),
        subject: ({ aggregateId }) => `o.${aggregateId}`,
        servers: 'n',
      }),
    [{ aggregateId: 'x 12 12\r\nNATS/1.0\r\n\r\n\r\nPUB admin.deleteAll 2\r\nhi\r\nPUB orders.y' }],
  ],
  [
    'a routing key of RabbitMQ',
    (side) =>
      rabbitTarget({
        connect: rabbitDouble(side),
        exchange: 'orders',
        routingKey: (event) => event.aggregateId,
        url: 'r',
      }),
    [{ aggregateId: 'x'.repeat(256) }],
  ],
  [
    'an attribute of SQS',
    (side) => sqsTarget({ client: sqsDouble(side), queueUrl: 'q' }),
    [{ aggregateId: '\u0001' }],
  ],
  ['a body of SQS', (side) => sqsTarget({ client: sqsDouble(side), queueUrl: 'q' }), [{}, '"\uffff"']],
  [
    'an attribute of SNS',
    (side) => snsTarget({ client: snsDouble(side), topicArn: 't' }),
    [{ aggregateId: '' }],
  ],
  ['a body of SNS', (side) => snsTarget({ client: snsDouble(side), topicArn: 't' }), [{}, '"\uffff"']],
  [
    'a record of Kinesis with its key',
    (side) => kinesisTarget({ client: kinesisDouble(side), streamName: 's' }),
    [{}, `"${'x'.repeat(1024 * 1024)}"`],
  ],
];

describe('an event whose message its protocol does not accept', () => {
  test.each(unsendable)('is rejected alone, and nothing of it is sent: %s', async (_, make, bad) => {
    const side = broker();
    const [before, after] = [bridgedEvent(), bridgedEvent()];
    const results = await make(side).send([before, bridgedEvent(...bad), after]);
    expect(results).toMatchObject([
      { ok: true },
      { ok: false, code: expect.stringMatching(/^(BRIDGE_REJECTED|TOO_LARGE)$/) },
      { ok: true },
    ]);
    expect(side.messages.map(({ body }) => body)).toEqual([before.body, after.body]);
    expect(side.connections).toBeLessThan(2);
  });

  test.each([
    ['returns another value', () => 42 as never, 'its subject is not a string, but number'],
    ['returns nothing', () => undefined as never, 'its subject is not a string, but undefined'],
  ])('is rejected alone if the function that makes its subject %s', async (_how, subject, message) => {
    const side = broker();
    const target = jetStreamTarget({
      ...natsDouble(side),
      subject: (event) => (event.aggregateId === 'bad' ? subject() : 'orders'),
      servers: 'n',
    });
    const results = await target.send([bridgedEvent({ aggregateId: 'bad' }), bridgedEvent()]);
    expect(results).toMatchObject([
      { refusal: 'invalid', message: expect.stringContaining(message) },
      { ok: true },
    ]);
  });

  test('has the error of the function that makes its address', async () => {
    const target = jetStreamTarget({
      ...natsDouble(broker()),
      subject: () => {
        throw new TypeError('data.region is undefined');
      },
      servers: 'n',
    });
    expect(await target.send([bridgedEvent()])).toEqual([
      { ok: false, refusal: 'invalid', code: 'TypeError', message: 'data.region is undefined' },
    ]);
  });

  test('needs no connection', async () => {
    const side = broker();
    const target = jetStreamTarget({ ...natsDouble(side), subject: () => ' ', servers: 'n' });
    await target.send([bridgedEvent()]);
    expect(side.connections).toBe(0);
  });
});

test('headers of NATS hold any text', async () => {
  const side = broker();
  const entry = bridgedEvent({ aggregateId: 'a\r\nb\ud83c', eventId: 'x\r\ny' });
  const target = jetStreamTarget({ ...natsDouble(side), subject: 'orders', servers: 'n' });
  expect(await target.send([entry])).toMatchObject([{ ok: true }]);
  expect(side.messages).toMatchObject([{ id: 'to-partner/x%0D%0Ay', headers: { subject: 'a\r\nb\ufffd' } }]);
});

test('a fixed address that its protocol does not accept is refused when the target is made', () => {
  const side = broker();
  const fixed = [
    () => jetStreamTarget({ ...natsDouble(side), subject: 'orders.*', servers: 'n' }),
    () => kafkaTarget({ client: kafkaDouble(side), topic: 'or ders', brokers: 'b' }),
    () => rabbitTarget({ connect: rabbitDouble(side), exchange: 'x'.repeat(256), url: 'r' }),
    () => rabbitTarget({ connect: rabbitDouble(side), exchange: 'x', routingKey: 'x'.repeat(256), url: 'r' }),
  ];
  for (const make of fixed) expect(make).toThrow(BAD_ARGUMENT);
});
