import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { readDelivered } from '../../../../lambdas/runtime/consume/message.ts';
import { textFormOf } from '../../../../lambdas/runtime/consume/message-form.ts';
import {
  type ExternalSubscription,
  externalEvent,
} from '../../../../lambdas/runtime/events/external-event.ts';

const Created = externalEvent({ source: 'aws.s3', type: 'Object Created', id: 'id', schema: z.unknown() });
const read = (body: unknown, subscriptions: readonly ExternalSubscription[] = [Created]) =>
  readDelivered(typeof body === 'string' ? body : JSON.stringify(body), { subscriptions, arrivedAt: 0 });
const sns = (message: unknown) => ({
  Type: 'Notification',
  TopicArn: 'arn:topic',
  Message: JSON.stringify(message),
});
const test3 = { Service: 'Amazon S3', Event: 's3:TestEvent', Bucket: 'uploads' };
const record = { eventSource: 'aws:s3', s3: { object: { key: 'secret' } } };
const eventId = '019b76da-a800-7000-8000-000000000001';

describe.each([
  ['without external events', []],
  ['with an external event', [Created]],
])('a consumer %s', (_name, subscriptions) => {
  test.each([
    ['S3 notification', { Records: [record] }, 'EventBridge'],
    ['list of records', { Records: [{ dynamodb: {} }] }, 'one message for each record'],
    ['question of SNS', { Type: 'SubscriptionConfirmation', TopicArn: 'arn' }, 'Answer it'],
    ['Kafka Connect', { schema: {}, payload: {} }, 'StringConverter'],
    ['Debezium', { op: 'c', after: { secret: 1 } }, 'outbox event router'],
    ['CloudEvent', { specversion: '1.0', source: 'a', type: 'b', data: {} }, 'source and type'],
    ['envelope of a Mailroom event', { eventId, data: {} }, 'createInboxProcessor'],
    ['list', [1], 'one message for each element'],
  ])('names a body that is a %s, with the remedy and without a value', (name, body, remedy) => {
    const message = expect.stringMatching(new RegExp(`is (a|an|the) .*${name}(?!.*secret).*${remedy}`));
    expect(() => read(body, subscriptions)).toThrowError(
      expect.objectContaining({ code: 'UNREADABLE_MESSAGE', message }),
    );
  });

  test.each([
    ['to the queue', test3],
    ['through SNS', sns(test3)],
  ])('finds no event in a test of S3 %s', (_way, body) => {
    expect(() => read(body, subscriptions)).toThrowError(expect.objectContaining({ code: 'NO_EVENT' }));
  });
});

test('an S3 notification through SNS is named, too; without external events, the SNS notification is', () => {
  expect(() => read(sns({ Records: [record] }))).toThrowError(/is an S3 notification/);
  expect(() => read(sns({ Records: [record] }), [])).toThrowError(/is an SNS notification.*raw message/);
});

test('a body that has the id field of its definition is read, whatever its form', () => {
  expect(read({ id: '1', op: 'c', after: {} })).toMatchObject({ envelope: { externalId: '1' } });
  expect(read(sns({ id: '1', note: 's3:TestEvent' }))).toMatchObject({ envelope: { externalId: '1' } });
});

test('a byte order mark, and JSON that was encoded twice, are read', () => {
  expect(read('\ufeff{"id":"1"}')).toMatchObject({ envelope: { externalId: '1' } });
  expect(read(JSON.stringify('{"id":"1"}'))).toMatchObject({ envelope: { externalId: '1' } });
  expect(read(sns('{"id":"1"}'))).toMatchObject({ envelope: { externalId: '1' } });
});

test.each([
  ['', 'empty'],
  [' \n', 'empty'],
  ['<?xml version="1.0"?>', 'XML'],
  [Buffer.from('{"id":1}').toString('base64'), 'Base64'],
  ['H4sIAAAA', 'gzip'],
  ['{"a":1}\n{"a":2}', 'each line'],
  ['{"a":1}{"a":2}', 'several JSON values'],
  ['a=1&b=%20', 'URL-encoded'],
  ['\n\u0002c1', 'binary'],
  ['\u0002c1', 'binary'],
  ['{"a":', undefined],
  ['hello world', undefined],
])('the form of %j is %s', (text, name) => {
  const form = textFormOf(text);
  if (name === undefined) expect(form).toBeUndefined();
  else expect(form).toContain(name);
});

test('the form of a long text is found in no time', () => {
  const began = performance.now();
  for (const text of ['{'.repeat(1e6), ` ${'a=1&'.repeat(1e6)}`, '}\n'.repeat(1e6), 'e'.repeat(1e6)])
    textFormOf(text);
  expect(performance.now() - began).toBeLessThan(1_000);
});

describe('a CloudEvent in structured mode', () => {
  const Paid = externalEvent({ source: 'shop', type: 'paid', schema: z.unknown() });
  const event = {
    specversion: '1.0',
    id: 'c-1',
    source: 'shop',
    type: 'paid',
    time: '2026-01-01T00:00:00Z',
    data: { n: 1 },
  };

  test('is found by its source and type, with its id, time and data', () => {
    const { envelope } = read(event, [Created, Paid]);
    expect(envelope).toMatchObject({
      externalId: 'c-1',
      type: 'paid',
      occurredAt: Date.UTC(2026, 0, 1),
      data: { n: 1 },
    });
    expect(read(sns(event), [Paid])).toMatchObject({ envelope: { externalId: 'c-1' } });
  });

  test.each([
    ['no data', { data: undefined }],
    ['no version', { specversion: undefined }],
  ])('with %s is a body as any other', (_name, change) => {
    const ById = externalEvent({ source: 'shop', type: 'paid', id: 'id', schema: z.unknown() });
    const body = JSON.parse(JSON.stringify({ ...event, ...change }));
    expect(read(body, [ById])).toMatchObject({ envelope: { externalId: 'c-1', data: body } });
  });

  test.each([
    ['another type', { type: 'other' }],
    ['another source', { source: 'other' }],
    ['another type and no data', { type: 'other', data: undefined }],
  ])('with %s is not the only event of its consumer', (_name, change) => {
    const ById = externalEvent({ source: 'shop', type: 'paid', id: 'id', schema: z.unknown() });
    const body = JSON.parse(JSON.stringify({ ...event, ...change }));
    expect(() => read(body, [ById])).toThrowError(
      expect.objectContaining({
        code: 'UNREADABLE_MESSAGE',
        message: expect.stringContaining('a CloudEvent whose source and type are not those'),
      }),
    );
  });
});
