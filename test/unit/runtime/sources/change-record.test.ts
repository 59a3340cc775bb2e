import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { changeRecordIn } from '../../../../lambdas/runtime/sources/change-record.ts';
import { deliveryOf } from '../../../../lambdas/runtime/sources/source-message.ts';
import { ThingHappened } from '../../../support/runtime-rig.ts';
import { sourceRig } from './source-rig.ts';

const envelope = await sourceRig().envelope();
const text = JSON.stringify(envelope);
const row = { event_id: envelope.eventId, envelope: text, type: 'ThingHappened', source: 'things' };
const source = { connector: 'postgresql', schema: 'mailroom', table: 'event', lsn: 1 };
const change = (more: object) =>
  JSON.stringify({ before: null, after: row, source, op: 'c', ts_ms: 1, ...more });
const read = (body: string, headers = {}) => deliveryOf({ id: 't/0/1', body, headers }, [ThingHappened]);

describe('a change of a row of mailroom.event', () => {
  test.each(['c', 'r', 'u'])('with the op %s is its event, byte for byte', (op) => {
    expect(read(change({ op }))).toEqual(
      read(text, { eventId: envelope.eventId, type: row.type, source: row.source }),
    );
  });

  test('is read from MySQL and MariaDB, whose schema is a database', () => {
    const mysql = {
      connector: 'mariadb',
      db: 'mailroom',
      table: 'captured',
      gtid: '0-1-5',
      file: 'binlog.1',
    };
    expect(read(change({ source: mysql }))).toEqual(read(change({})));
    const other = { ...mysql, db: 'shop' };
    expect(read(change({ source: other })).problem).toMatchObject({
      message: expect.stringContaining('shop.captured'),
    });
  });

  test('is read within a schema, too', () => {
    const wrapped = JSON.stringify({ schema: { type: 'struct' }, payload: JSON.parse(change({})) });
    expect(read(wrapped)).toEqual(read(change({})));
  });

  test.each([
    ['an unknown op', { op: 'x' }, /its op is "x"/],
    [
      'a row of another table',
      { source: { schema: 'public', table: 'orders' } },
      /a row of "public\.orders".*table\.include\.list/,
    ],
    ['no row', { after: null }, /no row after the change/],
    ['a list in place of a row', { after: [] }, /no event_id or no envelope/],
    [
      'an envelope that an update left out',
      { op: 'u', after: { ...row, envelope: '__debezium_unavailable_value' } },
      /left its envelope out/,
    ],
    ['an envelope that is not text', { after: { ...row, envelope } }, /no envelope/],
    ['an envelope that is not JSON', { after: { ...row, envelope: '{' } }, /not that of its row/],
    [
      'the envelope of another event',
      { after: { ...row, event_id: '019b76da-a800-7000-8000-000000000001' } },
      /not that of its row/,
    ],
  ])('with %s is rejected, with the cause', (_name, more, cause) => {
    expect(read(change(more)).problem).toMatchObject({
      code: 'UNREADABLE_MESSAGE',
      message: expect.stringMatching(cause),
    });
  });
});

test.each([
  ['a deleted row', change({ op: 'd', before: row, after: null })],
  ['a truncated table', change({ op: 't', after: null })],
  ['a message in the log', JSON.stringify({ op: 'm', source, message: { prefix: 'x', content: '' } })],
  ['a heartbeat', '{"ts_ms":1790000000000}'],
  ['a heartbeat', '{"schema":{"type":"struct"},"payload":{"ts_ms":1}}'],
  ['a tombstone', '{"schema":null,"payload":null}'],
  [
    'a change of a schema',
    JSON.stringify({ source, ts_ms: 1, databaseName: 'shop', ddl: 'DROP TABLE x', tableChanges: [] }),
  ],
  [
    'the boundary of a transaction',
    '{"status":"BEGIN","id":"571:53195829","ts_ms":1,"event_count":null,"data_collections":null}',
  ],
])('skips %s: %s', (what, body) => {
  expect(read(body).problem).toMatchObject({ code: 'NO_EVENT', message: expect.stringContaining(what) });
});

test("reads the event router's form, whose header id is the event's, with the JsonConverter, too", () => {
  const headers = { id: envelope.eventId, type: 'ThingHappened', source: 'things' };
  const routed = read(text, headers);
  expect(JSON.parse(routed.body)).toMatchObject({
    source: 'things',
    'detail-type': 'ThingHappened',
    detail: envelope,
  });
  expect(read(JSON.stringify({ schema: { type: 'string' }, payload: text }), headers)).toEqual(routed);
});

describe('an external event of the consumer that has the form of change data capture', () => {
  const definition = { source: 'legacy', type: 'order', schema: z.any() };
  const order = { before: null, after: { id: 7 }, source: { ...source, schema: 'public', table: 'orders' } };
  const deleted = JSON.stringify({ ...order, op: 'd', before: { id: 7 }, after: null });
  const wrapped = JSON.stringify({ schema: { type: 'struct' }, payload: { order: 7 } });

  test.each([
    ['a change of another table', 'after.id', JSON.stringify({ ...order, op: 'u' })],
    ['a deleted row', 'before.id', deleted],
    ['a tick', 'ts_ms', '{"ts_ms":1790000000000}'],
    ['a value with a schema', 'payload.order', wrapped],
  ])('is neither skipped nor rejected if it has the id of its definition: %s', (_name, id, body) => {
    const external = externalEvent({ ...definition, id });
    expect(deliveryOf({ id: 't/0/1', body }, [ThingHappened, external])).toEqual(
      expect.objectContaining({ body, problem: undefined }),
    );
    const other = externalEvent({ ...definition, id: 'none' });
    expect(deliveryOf({ id: 't/0/1', body }, [other])).not.toMatchObject({ body, problem: undefined });
  });

  test.each([{ publishedId: 'm1' }, { headers: { 'Nats-Msg-Id': 'm1' } }])(
    'is read with the id of its transport: %j',
    (transport) => {
      const message = { id: 't/0/1', body: '{"ts_ms":1790000000000}', ...transport };
      const { body, problem } = deliveryOf(message, [externalEvent(definition)]);
      expect(problem).toBeUndefined();
      expect(JSON.parse(body)).toMatchObject({
        'detail-type': 'order',
        id: 'm1',
        detail: { ts_ms: 1790000000000 },
      });
      expect(deliveryOf(message, [ThingHappened]).problem).toMatchObject({ code: 'NO_EVENT' });
    },
  );

  test.each([
    ['the type of its sender', { publishedType: 'order', publishedId: 'm1' }],
    ['a header', { headers: { type: 'order', id: 'm1' } }],
  ])('is named by %s beside another external event', (_name, named) => {
    const body = '{"ts_ms":1790000000000}';
    const other = externalEvent({ ...definition, type: 'other' });
    const message = { id: 't/0/1', body, ...named };
    expect(JSON.parse(deliveryOf(message, [externalEvent(definition), other]).body)).toMatchObject({
      'detail-type': 'order',
      id: 'm1',
      detail: { ts_ms: 1790000000000 },
    });
  });

  test.each([{ headers: { 'Nats-Msg-Id': 'm1' } }, { publishedId: 'm1' }])(
    'is not named by the id of its transport beside another external event: %j',
    (transport) => {
      const message = { id: 't/0/1', body: '{"ts_ms":1790000000000}', ...transport };
      for (const id of [undefined, 'order'])
        expect(
          deliveryOf(message, [
            externalEvent(definition),
            externalEvent({ ...definition, type: 'other', ...(id !== undefined && { id }) }),
          ]).problem,
        ).toMatchObject({ code: 'NO_EVENT' });
    },
  );

  const inSchema = (payload: unknown) => JSON.stringify({ schema: { type: 'struct' }, payload });

  test.each([
    ['by the id of its definition', 'after.id', {}],
    ['by the id of its definition, also with a name', 'after.id', { headers: { type: 'order' } }],
    ['by the id of its transport', undefined, { publishedId: 'm1' }],
  ])("is taken out of Connect's schema: %s", (_name, id, more) => {
    const external = externalEvent({ ...definition, ...(id !== undefined && { id }) });
    const payload = { ...order, op: 'u' };
    const { body, problem } = deliveryOf({ id: 't/0/1', body: inSchema(payload), ...more }, [external]);
    expect(problem).toBeUndefined();
    const content = JSON.parse(body);
    expect(content.detail ?? content).toEqual(payload);
  });

  test('with text in a schema has the id of its transport', () => {
    const body = inSchema('{"order":7}');
    for (const one of [body, inSchema({ order: 7 })])
      expect(
        JSON.parse(
          deliveryOf({ id: 't/0/1', body: one, publishedId: 'm1' }, [externalEvent(definition)]).body,
        ),
      ).toMatchObject({ id: 'm1', detail: { order: 7 } });
  });

  const boundary = {
    status: 'END',
    id: '571:53195829',
    event_count: 2,
    data_collections: [{ data_collection: 'public.orders', event_count: 2 }],
    ts_ms: 1,
  };
  const named = [
    ['id', {}],
    [undefined, { publishedId: 'm1' }],
    [undefined, { headers: { id: 'm1' } }],
  ] as const;

  test.each(named)('is not the boundary of a transaction: id %j, %j', (id, more) => {
    const external = externalEvent({ ...definition, ...(id !== undefined && { id }) });
    for (const body of [JSON.stringify(boundary), inSchema(boundary)])
      expect(deliveryOf({ id: 't/0/1', body, ...more }, [external]).problem).toMatchObject({
        code: 'NO_EVENT',
        message: expect.stringContaining('the boundary of a transaction'),
      });
    const { data_collections: _data, ...similar } = boundary;
    expect(deliveryOf({ id: 't/0/1', body: JSON.stringify(similar), ...more }, [external]).problem).toBe(
      undefined,
    );
  });

  test.each([['after.event_id', {}], ['before.event_id', {}], ...named] as const)(
    'is not a change of a table of Mailroom: id %j, %j',
    (id, more) => {
      const external = externalEvent({ ...definition, ...(id !== undefined && { id }) });
      const of = (body: string) => deliveryOf({ id: 't/0/1', body, ...more }, [ThingHappened, external]);
      for (const one of [change({}), inSchema(JSON.parse(change({})))])
        expect(of(one)).toMatchObject({ body: read(change({})).body, problem: undefined });
      expect(of(change({ op: 'd', before: row, after: null })).problem).toMatchObject({ code: 'NO_EVENT' });
      expect(of(change({ after: { ...row, envelope: '{' } })).problem).toMatchObject({
        code: 'UNREADABLE_MESSAGE',
      });
    },
  );
});

test('leaves alone what only resembles these forms', () => {
  for (const body of [
    '{"payload":1}',
    '{"op":"c"}',
    '{"ts_ms":1,"n":2}',
    '{"schema":"v1","payload":{"a":1}}',
    '{"schema":{"type":"struct"},"payload":{"a":1},"more":1}',
    '["op"]',
    '{"op":',
  ])
    expect(changeRecordIn(body)).toBeUndefined();
});

test.each([
  ['a heartbeat', '{"ts_ms":1}'],
  ['a heartbeat in a schema', '{"schema":{"type":"struct"},"payload":{"ts_ms":1}}'],
  ['a change of another table', change({ source: { schema: 'public', table: 'orders' } })],
])('a header that names a message tells that it is not %s', (_name, body) => {
  expect(read(body).problem).toBeDefined();
  for (const header of ['id', 'type', 'ce_id'])
    expect(read(body, { [header]: 'x' })).toMatchObject({ problem: undefined });
});

test('no body makes it throw', () => {
  const part = fc.oneof(
    fc.jsonValue(),
    fc.constantFrom('c', 'd', 'u', 'mailroom', 'event', row, source, text, null),
  );
  const form = fc.record(
    { op: part, after: part, before: part, source: part, schema: part, payload: part, ts_ms: part },
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(form, (value) => {
      changeRecordIn(JSON.stringify(value));
      changeRecordIn(JSON.stringify({ schema: { type: 'struct' }, payload: value }));
    }),
  );
});
