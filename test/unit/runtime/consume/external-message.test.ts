import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { readExternal } from '../../../../lambdas/runtime/consume/external-message.ts';
import {
  type ExternalSubscription,
  externalEvent,
} from '../../../../lambdas/runtime/events/external-event.ts';
import {
  externalEventId,
  externalIdsOf,
  externalIdText,
  isExternalEventId,
} from '../../../../lambdas/runtime/store/external-id.ts';

const schema = z.unknown();
const ARRIVED = Date.UTC(2026, 0, 2);
const charge = externalEvent({ source: 'stripe', type: 'charge', schema, id: 'id' });
const created = externalEvent({
  source: 'aws.s3',
  type: 'Object Created',
  schema,
  id: ['bucket.name', 'object.key'],
});
const plain = externalEvent({ source: 'aws.s3', type: 'Object Deleted', schema });

const read = (body: unknown, ...subscriptions: ExternalSubscription[]) =>
  readExternal(body, subscriptions, ARRIVED);
const bridged = (event: { source: string; type: string }, detail: unknown, more: object = {}) => ({
  version: '0',
  id: 'bridge-1',
  source: event.source,
  'detail-type': event.type,
  time: '2026-01-01T00:00:00Z',
  detail,
  ...more,
});
const cloud = (event: object) => ({ specversion: '1.0', id: 'c-1', ...event, data: { id: 1 } });
const sns = (message: string) => ({ Type: 'Notification', TopicArn: 'arn:topic', Message: message });

test('the event id of an external event is a UUIDv8 that no release changes, because rows contain it', () => {
  const subscription = { source: 'stripe', type: 'charge.succeeded', external: { id: ['id'] } };
  const id = externalEventId(subscription, ['evt_1Nq']);
  expect(isExternalEventId(id)).toBe(true);
  expect(id).toBe('19cd5e14-fb95-8299-a7ce-648142b60cef');
});

test('an order and a payment of the same number have different event ids when a definition changes its id field', () => {
  const byPayment = externalEvent({ source: 'shop', type: 'changed', schema, id: 'paymentId' });
  const byOrder = externalEvent({ source: 'shop', type: 'changed', schema, id: 'orderId' });
  const before = read({ orderId: 1, paymentId: 7 }, byPayment)?.eventId;
  expect(read({ orderId: 7, paymentId: 9 }, byOrder)?.eventId).not.toBe(before);
  const byBridge = externalEvent({ source: 'shop', type: 'changed', schema });
  const bridgeId = read(bridged(byBridge, {}, { id: '7' }), byBridge)?.eventId;
  expect(read({ orderId: '7' }, byOrder)?.eventId).not.toBe(bridgeId);
});

describe('the reader of external messages', () => {
  test('takes the detail of an EventBridge event as the data, and finds its definition by source and type', () => {
    const detail = { bucket: { name: 'b' }, object: { key: 'k/1.txt' } };
    expect(read(bridged(created, detail), charge, created)).toEqual({
      eventId: externalEventId(created, ['b', 'k/1.txt']),
      externalId: '["b","k/1.txt"]',
      source: 'aws.s3',
      type: 'Object Created',
      occurredAt: Date.UTC(2026, 0, 1),
      correlationId: externalEventId(created, ['b', 'k/1.txt']),
      data: detail,
    });
  });

  test('takes the Message of an SNS notification, and the body of a raw delivery, as the data', () => {
    const wrapped = read(sns('{"id":"evt_1"}'), charge);
    expect(wrapped).toMatchObject({ externalId: 'evt_1', data: { id: 'evt_1' }, occurredAt: ARRIVED });
    expect(read({ id: 'evt_1' }, charge)).toEqual(wrapped);
  });

  test('reads an EventBridge event in an SNS notification as one without', () => {
    const event = bridged(charge, { id: 'evt_1' });
    expect(read(sns(JSON.stringify(event)), charge)).toEqual(read(event, charge));
  });

  test.each([
    ['an EventBridge event of another source', bridged({ source: 'x', type: 'charge' }, { id: 1 })],
    ['an EventBridge event of another type', bridged({ source: 'stripe', type: 'x' }, { id: 1 })],
    ['a CloudEvent of another source', cloud({ source: 'x', type: 'charge' })],
    ['a CloudEvent of another type', cloud({ source: 'stripe', type: 'x' })],
    ['a list', [1]],
    ['a text', 'x'],
    ['null', null],
    ['a text in an SNS notification', sns('"x"')],
  ])('finds no external event in %s', (_, body) => {
    expect(read(body, charge)).toBeUndefined();
  });

  test('rejects a body without source and type if there are several external events', () => {
    expect(() => read({ id: 'evt_1' }, charge, created)).toThrowError(
      expect.objectContaining({
        code: 'UNREADABLE_MESSAGE',
        message: expect.stringContaining('handles 2 external events'),
      }),
    );
    expect(read({ detail: {} }, charge, created)).toBeUndefined();
  });

  test('finds nothing without external events, or in a list', () => {
    expect(read({ id: 'evt_1' })).toBeUndefined();
    expect(read([1], charge, created)).toBeUndefined();
  });

  test.each<[string, object]>([
    ['source', { ...bridged(charge, {}), source: 7 }],
    ['type', { ...bridged(charge, {}), 'detail-type': undefined }],
    ['detail', { source: 'x', 'detail-type': 'y' }],
  ])('takes a body that lacks the %s of an EventBridge event as the data', (_what, members) => {
    const body = { ...members, id: 'evt_1' };
    expect(read(body, charge)).toMatchObject({ externalId: 'evt_1', data: body });
  });

  test.each<[string, object]>([
    ['type', { Type: 'SubscriptionConfirmation' }],
    ['topic', { TopicArn: undefined }],
    ['message of text', { Message: { id: 'evt_2' } }],
  ])('takes a body that lacks the %s of an SNS notification as the data', (_what, members) => {
    const body = { ...sns('{"id":"evt_2"}'), id: 'evt_1', ...members };
    expect(read(body, charge)).toMatchObject({ externalId: 'evt_1', data: body });
  });

  test('rejects an SNS notification whose message is nested too deep', () => {
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`;
    expect(() => read(sns(`{"id":"evt_1","a":${deep}}`), charge)).toThrowError(
      expect.objectContaining({ code: 'UNREADABLE_MESSAGE' }),
    );
  });

  test('rejects an SNS notification whose message is not JSON, with an error that does not quote it', () => {
    expect(() => read(sns('secret'), charge)).toThrowError(
      expect.objectContaining({
        code: 'UNREADABLE_MESSAGE',
        message: expect.not.stringContaining('secret'),
      }),
    );
  });
});

describe('the id of an external event', () => {
  test("is EventBridge's id if the definition has no id fields", () => {
    expect(read(bridged(plain, {}), plain)).toMatchObject({ externalId: 'bridge-1' });
  });

  test('is read from its field rather than from EventBridge', () => {
    expect(read(bridged(charge, { id: 'evt_1' }), charge)).toMatchObject({ externalId: 'evt_1' });
  });

  test.each([7, '', null])('cannot be %j from EventBridge', (id) => {
    expect(() => read(bridged(plain, {}, { id }), plain)).toThrowError(
      expect.objectContaining({ code: 'BAD_EXTERNAL_ID' }),
    );
  });

  test.each([['x'.repeat(2_048)], [0], [-7], [2 ** 53 - 1]])('can be %j', (id) => {
    expect(read({ id }, charge)?.externalId).toBe(`${id}`);
  });

  test.each([
    ['is missing', {}],
    ['is empty', { id: '' }],
    ['has 2049 characters', { id: 'x'.repeat(2_049) }],
    ['is of type null', { id: null }],
    ['is of type boolean', { id: true }],
    ['is of type object', { id: { secret: 1 } }],
    ['is not a safe integer', { id: 2 ** 53 }],
    ['is not a safe integer', { id: 1.5 }],
  ])('rejects the message if its field %s, with an error that names the field and no value', (what, body) => {
    expect(() => read(body, charge)).toThrowError(
      expect.objectContaining({
        name: 'PoisonMessage',
        code: 'BAD_EXTERNAL_ID',
        message: expect.stringMatching(new RegExp(`"id" of charge ${what}(?!.*secret)`)),
      }),
    );
  });

  test('rejects a message that has neither an id field nor an id of EventBridge', () => {
    expect(() => read({ a: 1 }, plain)).toThrowError(expect.objectContaining({ code: 'BAD_EXTERNAL_ID' }));
  });

  test.each(['__proto__', 'constructor', 'toString.name', 'length', 'id.length', 'list.0', 'list.length'])(
    'is not found at %s, which is not an own member of an object',
    (id) => {
      const event = externalEvent({ source: 's', type: 't', schema, id });
      expect(() => read({ id: 'x', list: ['a'] }, event)).toThrowError(
        expect.objectContaining({ code: 'BAD_EXTERNAL_ID', message: expect.stringContaining('is missing') }),
      );
    },
  );

  test('can be in a field with the name of a member of every object', () => {
    const event = externalEvent({ source: 's', type: 't', schema, id: '__proto__.constructor' });
    const body: unknown = JSON.parse('{"__proto__":{"constructor":"c-1"}}');
    expect(read(body, event)).toMatchObject({ externalId: 'c-1' });
  });

  test('can be read back from its text', () => {
    for (const id of [['evt_1'], ['42'], [42], ['a', 'b'], ['a', 1]])
      expect(externalIdsOf(externalIdText(id), id.length)).toContainEqual(id);
    expect(externalIdsOf('not json', 2)).toEqual([]);
    expect(externalIdsOf('["a"', 2)).toEqual([]);
    for (const typed of ['["x",1]', '["x","1"]'])
      for (const id of [
        ['x', 1],
        ['x', '1'],
      ])
        expect(externalIdsOf(typed, 2)).toContainEqual(id);
    expect(externalIdsOf('["1","01"]', 2)).toEqual([
      ['1', '01'],
      [1, '01'],
    ]);
    expect(externalIdsOf('["a"]', 2)).toEqual([]);
  });
});

describe('the time of an external event', () => {
  const timed = externalEvent({ source: 's', type: 't', schema, id: 'id', time: 'at' });
  test.each([
    ['2026-01-01T00:00:00Z', Date.UTC(2026, 0, 1)],
    ['2026-01-01T02:00:00.250+02:00', Date.UTC(2026, 0, 1) + 250],
    [1_767_225_600, Date.UTC(2026, 0, 1)],
    [1_767_225_600_123, Date.UTC(2026, 0, 1) + 123],
    ['2026-01-01T00:00Z', Date.UTC(2026, 0, 1)],
    ['2025-12-31T19:00:00-05:00', Date.UTC(2026, 0, 1)],
    [1_767_225_600.5, Date.UTC(2026, 0, 1) + 500],
    [1_767_225_600_123.9, Date.UTC(2026, 0, 1) + 123],
    [1e11 - 1, 1e14 - 1_000],
    [1e11, 1e11],
    [1_767_225_600_123_456, Date.UTC(2026, 0, 1) + 123],
    [1_767_225_600_123 * 1e6, Date.UTC(2026, 0, 1) + 123],
    [0, 0],
  ])('can be %s', (at, occurredAt) => {
    expect(read({ id: 'x', at }, timed)).toMatchObject({ occurredAt });
  });

  test.each([
    undefined,
    null,
    '',
    'yesterday',
    '2026-01-01',
    '2026-01-01T00:00:00',
    '+002026-01-01T00:00:00Z',
    '2026-01-01T00:00:00Z (or so)',
    '2026-13-01T00:00:00Z',
    -1,
    1e20,
    Number.POSITIVE_INFINITY,
    {},
  ])('cannot be %s: the message is rejected with an error that names the field', (at) => {
    expect(() => read({ id: 'x', at }, timed)).toThrowError(
      expect.objectContaining({ code: 'BAD_EXTERNAL_TIME', message: expect.stringContaining('"at" of t') }),
    );
  });

  test('is read from its field rather than from EventBridge', () => {
    expect(read(bridged(timed, { id: 1, at: 0 }), timed)).toMatchObject({ occurredAt: 0 });
  });

  test('is that of EventBridge without a field, and otherwise that of the arrival in the queue', () => {
    expect(read(bridged(charge, { id: 1 }), charge)).toMatchObject({ occurredAt: Date.UTC(2026, 0, 1) });
    expect(read(bridged(charge, { id: 1 }, { time: 'x' }), charge)).toMatchObject({ occurredAt: ARRIVED });
  });
});

test.each<[string, object, string]>([
  ['an empty source', { source: '' }, 'source'],
  ['the reserved source', { source: 'mailroom' }, 'source'],
  ['a type that is too long', { type: 'x'.repeat(129) }, 'type'],
  ['no paths', { id: [] }, 'id'],
  ['nine paths', { id: Array(9).fill('a') }, 'id'],
  ['an empty path', { id: '' }, 'id'],
  ['a path with an empty name', { id: 'a..b' }, 'id'],
  ['a path that is not text', { id: [7] }, 'id'],
  ['a bad path of the time', { time: '.at' }, 'time'],
  ['no schema', { schema: undefined }, 'schema'],
])('a definition with %s is refused', (_, change, named) => {
  const definition = { source: 's', type: 't', schema, ...change };
  expect(() => externalEvent(definition)).toThrowError(
    expect.objectContaining({ code: 'BAD_EVENT_DEFINITION', message: expect.stringContaining(`${named} `) }),
  );
});
