import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { readDelivery } from '../../../../lambdas/runtime/consume/delivery.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { deliveryOf } from '../../../../lambdas/runtime/sources/source-message.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { sourceRig } from './source-rig.ts';

const NOW = Date.UTC(2026, 0, 1);
const Ordered = externalEvent({ source: 'shop', type: 'order', id: 'orderId', schema: z.any() });
const Paid = externalEvent({ source: 'shop', type: 'paid', schema: z.any() });

const bodyOf = (
  body: string | Uint8Array,
  headers?: Record<string, unknown>,
  definitions = [ThingHappened, Ordered],
) => JSON.parse(deliveryOf({ id: 'm', body, headers }, definitions).body);

describe('an envelope', () => {
  test('is read with the source and type of its headers, byte for byte', async () => {
    const envelope = await sourceRig().envelope();
    const text = `${JSON.stringify(envelope).slice(0, -1)},"big":12345678901234567890}`;
    const headers = { eventId: envelope.eventId, source: 'other', type: 'T' };
    const { body } = deliveryOf({ id: 'm', body: text, headers }, [ThingHappened]);
    expect(body).toBe(`{"source":"other","detail-type":"T","detail":${text}}`);
  });

  test.each([
    ['text', 'things'],
    ['bytes, as kafkajs has them', Buffer.from('things')],
    ['a list of bytes, as Lambda has them for Kafka', [...Buffer.from('things')]],
    ['signed bytes', [...Buffer.from('thïngs')].map((byte) => (byte > 127 ? byte - 256 : byte))],
    ['bytes of Amazon MQ', { bytes: [...Buffer.from('things')] }],
    ['repeated, as kafkajs has it: the last one counts', [Buffer.from('others'), Buffer.from('things')]],
    ['repeated as text', ['others', 'things']],
    ['repeated, as lists of bytes', [[...Buffer.from('others')], [...Buffer.from('things')]]],
  ])('has its source in a header that is %s', async (_name, header) => {
    const envelope = await sourceRig().envelope();
    for (const name of ['source', 'ce_source', 'ce-source', 'cloudEvents:source', 'cloudEvents_source']) {
      const headers = { eventId: envelope.eventId, [name]: header };
      expect(bodyOf(JSON.stringify(envelope), headers).source).toMatch(/^th.ngs$/);
    }
  });

  test.each([{}, { eventId: 'other' }])(
    'is not renamed by bare headers of another system, beside %j',
    async (more) => {
      const text = JSON.stringify(await sourceRig().envelope());
      const headers = { ...more, source: 'debezium', type: 'record' };
      expect(bodyOf(text, headers)).toMatchObject({ source: 'things', 'detail-type': 'ThingHappened' });
      const two = [ThingHappened, { ...ThingHappened, source: 'others' }];
      expect(bodyOf(text, { source: 'others' }, two as never)).toMatchObject({ source: 'others' });
    },
  );

  test('without headers has the source of the only event of its type', async () => {
    const text = JSON.stringify(await sourceRig().envelope());
    expect(bodyOf(Buffer.from(text))).toMatchObject({ source: 'things', 'detail-type': 'ThingHappened' });
    const two = [ThingHappened, { ...ThingHappened, source: 'others' }];
    expect(JSON.parse(deliveryOf({ id: 'm', body: text }, two).body)).toMatchObject({ source: '' });
  });
});

describe('an EventBridge event and anything else stay as they are:', () => {
  test.each([
    '{"source":"a","detail-type":"b","detail":{}}',
    'no JSON',
    '[]',
    '"text"',
    'null',
    '{"type":"x"}',
    '',
  ])('%s', (body) => {
    expect(deliveryOf({ id: 'm', body }, [ThingHappened, Ordered]).body).toBe(body);
  });
});

test('an EventBridge event stays as it is, whatever its headers name', () => {
  const event = { source: 'shop', 'detail-type': 'order', detail: { orderId: 'o' } };
  expect(bodyOf(JSON.stringify(event), { source: 'shop', type: 'order' })).toEqual(event);
});

test('an external event is named by its headers, with the id and time of CloudEvents', () => {
  const headers = {
    'ce-source': 'shop',
    'ce-type': 'paid',
    'ce-id': 'a1',
    'ce-time': '2026-01-01T00:00:00Z',
  };
  expect(bodyOf('{"n":1}', headers, [Ordered, Paid] as never)).toEqual({
    source: 'shop',
    'detail-type': 'paid',
    id: 'a1',
    time: '2026-01-01T00:00:00Z',
    detail: { n: 1 },
  });
  expect(bodyOf('{"n":1}', { source: 'shop', type: 'unknown' })).toEqual({ n: 1 });
});

test('a CloudEvent of another type is not the only external event of its consumer', () => {
  const headers = { ce_source: 'shop', ce_type: 'refunded', ce_id: 'a1' };
  expect(bodyOf('{"n":1}', headers, [Paid] as never)).toEqual({
    source: 'shop',
    'detail-type': 'refunded',
    id: 'a1',
    detail: { n: 1 },
  });
});

test.each([
  ['empty', ''],
  ['empty bytes', Buffer.alloc(0)],
  ['an empty list', []],
  ['null', null],
  ['true', true],
  ['an object', { a: 1 }],
])('a header that is %s names nothing', async (_name, header) => {
  const envelope = await sourceRig().envelope();
  const headers = { eventId: envelope.eventId, source: header, ce_source: 'cloud' };
  expect(bodyOf(JSON.stringify(envelope), headers)).toMatchObject({ source: 'cloud' });
});

test('a header can be a number', () => {
  const headers = { source: 'shop', type: 'paid', id: 17 };
  expect(bodyOf('{"n":1}', headers, [Paid] as never)).toMatchObject({ id: '17' });
});

describe('the time of a sender', () => {
  const sentAt = (value: number | undefined) =>
    readDelivery(deliveryOf({ id: 'm', body: '', sentAt: value }, []), { beganAt: NOW, endsBy: NOW }, [])
      .message.sentAt;

  test.each([NOW / 1_000, NOW, NOW * 1_000, NOW * 1e6])('is read from %d, whatever its unit', (value) => {
    expect(sentAt(value)).toBe(NOW);
  });

  test.each([-1, 0, Number.NaN, 1e20, NOW + 24 * 3_600_000 + 1, undefined])('is unknown for %s', (value) => {
    expect(sentAt(value)).toBeUndefined();
  });

  test('can be a day ahead', () => {
    expect(sentAt(NOW + 24 * 3_600_000)).toBe(NOW + 24 * 3_600_000);
  });
});

test('an unknown number of deliveries or time stays unknown', () => {
  expect(deliveryOf({ id: 'm', body: '' }, [])).toMatchObject({ receives: undefined, sentAt: undefined });
  const known = deliveryOf({ id: 'm', body: '', receives: 3, sentAt: NOW + 0.5 }, []);
  expect(known).toMatchObject({ messageId: 'm', receives: 3, sentAt: NOW });
});

describe('an external event without an id has that of its transport:', () => {
  const named = (headers: Record<string, unknown>, more: object = {}, definitions: unknown[] = [Paid]) =>
    JSON.parse(deliveryOf({ id: 'm', body: '{"n":1}', headers, ...more }, definitions as never).body);

  test.each([
    ['CloudEvents', { ce_id: 'a1' }, {}],
    ['a bare header', { id: 'a1' }, {}],
    ['JetStream', { 'Nats-Msg-Id': 'a1' }, {}],
    ['AMQP', {}, { publishedId: 'a1' }],
    ['CloudEvents before JetStream', { ce_id: 'a1', 'Nats-Msg-Id': 'a2' }, {}],
    ['JetStream before AMQP', { 'Nats-Msg-Id': 'a1' }, { publishedId: 'a2' }],
  ])('%s', (_name, headers, more) => {
    expect(named(headers, more)).toEqual({
      source: 'shop',
      'detail-type': 'paid',
      id: 'a1',
      detail: { n: 1 },
    });
  });

  test.each([
    ['has an id field', { id: 'a1' }, {}, [Ordered]],
    ['shares its consumer with another one', { id: 'a1' }, {}, [Paid, Ordered]],
    ['has no id anywhere', {}, { publishedId: '' }, [Paid]],
  ])('but stays as it is if it %s', (_name, headers, more, definitions) => {
    expect(named(headers, more, definitions)).toEqual({ n: 1 });
  });

  test.each(['{"specversion":"1.0","n":1}', '{"Type":"Notification","n":1}'])('but not in %s', (body) => {
    expect(deliveryOf({ id: 'm', body, headers: { id: 'a1' } }, [Paid]).body).toBe(body);
  });

  test.each([
    ['a header', { type: 'paid' }, {}],
    ['AMQP', {}, { publishedType: 'paid' }],
    ['a header before AMQP', { type: 'paid' }, { publishedType: 'order' }],
  ])('its type alone, from %s, names it among several', (_name, headers, more) => {
    const body = named({ ...headers, id: 'a1' }, more, [Paid, Ordered]);
    expect(body).toMatchObject({ source: 'shop', 'detail-type': 'paid', id: 'a1' });
  });

  test('a type of two services names neither', () => {
    const other = { ...Paid, source: 'other' };
    expect(named({ type: 'paid', id: 'a1' }, {}, [Paid, other])).toEqual({ n: 1 });
    expect(named({ type: 'paid', source: 'other', id: 'a1' }, {}, [Paid, other])).toMatchObject({
      source: 'other',
    });
  });
});
