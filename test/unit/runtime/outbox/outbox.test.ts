import { randomBytes } from 'node:crypto';
import { afterEach, describe, expect, test, vi } from 'vitest';
import * as z from 'zod';
import {
  type BusEntry,
  entryBytes,
  PUT_EVENTS_BYTES_MAX,
} from '../../../../lambdas/runtime/bus/event-bus.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { pendingRow } from '../../../../lambdas/runtime/outbox/pending-row.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { memoryTelemetry } from '../../../../testing/index.ts';
import { envelopeOf } from '../../../support/envelope-of.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';

const order = { PK: 'THING#1', SK: 'THING', schema: 1 };
const put = { Put: { Item: order, ConditionExpression: 'attribute_not_exists(PK)' } };

test('a commit writes the domain rows and the events in one transaction', async () => {
  const { outbox, memory, rows, happened, clock } = rig();
  const [envelope] = await outbox.commit({ writes: [put], events: [happened(1)] });
  expect(memory.item({ PK: 'THING#1', SK: 'THING' })).toEqual(order);
  expect(rows()).toMatchObject([
    {
      status: 'PENDING',
      attempts: 0,
      leaseUntil: clock.now() + 30_000,
      source: 'things',
      type: 'ThingHappened',
      schema: 1,
    },
  ]);
  expect(JSON.parse(rows()[0]?.envelope ?? '')).toEqual(envelope);
  expect(envelope).toMatchObject({
    version: 2,
    aggregateId: 'thing-1',
    correlationId: envelope?.eventId,
    data: { n: 1 },
  });
  expect(rows()[0]).not.toHaveProperty('expiresAt');
});

test('events inherit the correlation and the trace of the event that caused them, and a malformed trace is dropped', async () => {
  const { outbox, happened } = rig();
  const [cause] = await outbox.commit({ events: [{ ...happened(1), correlationId: 'chain' }] });
  if (cause === undefined) throw new Error('unreachable');
  const inherited = async (traceId: string) => {
    const [entry] = await outbox.entries([happened(2)], { ...cause, traceId });
    return { row: entry?.Put.Item, envelope: envelopeOf(entry?.Put.Item) };
  };
  const traceId =
    'Root=1-5759e988-bd862e3fe1be46a994272793;Parent=557abcec3ee5a047;Sampled=1;Lineage=1:a|2:b';
  const fits = await inherited(traceId);
  expect(fits.envelope).toMatchObject({
    correlationId: 'chain',
    causationId: cause.eventId,
    traceId,
  });
  expect(pendingRow({ ...fits.row } as Item)?.entry.traceHeader).toBe(traceId);
  for (const malformed of ['Root=1', 'trace-1', `${traceId}\u0007`, traceId.padEnd(501, ';')]) {
    const { envelope } = await inherited(malformed);
    expect(envelope).not.toHaveProperty('traceId');
  }
});

test.each([
  [undefined, 1],
  [1, 2],
  ['31', 1],
  [Number.NaN, 1],
])('an event that an event with %o hops caused has %i', async (hops, counted) => {
  const { outbox, happened } = rig();
  const cause = { eventId: 'cause', correlationId: 'chain', hops: hops as number };
  const [entry] = await outbox.entries([happened(1)], cause);
  expect(envelopeOf(entry?.Put.Item)).toMatchObject({ hops: counted });
});

test('an optional member that untyped code sets to null is absent', async () => {
  const { outbox, happened, clock } = rig();
  const nothing = { deliverAt: null, occurredAt: null } as object;
  const [event] = await outbox.commit({ events: [{ ...happened(1), ...nothing }] });
  expect(event).toMatchObject({ occurredAt: clock.now() });
});

test('a commit writes no row of Mailroom under the ARN of its table', async () => {
  const { outbox, memory } = rig();
  const TableName = `arn:aws:dynamodb:eu-west-1:123456789012:table/${memory.name}`;
  const Put = { TableName, Item: { PK: 'INBOX#worker#1', SK: 'MESSAGE' } };
  await expect(outbox.commit({ writes: [{ Put }] })).rejects.toMatchObject({
    code: 'BAD_WRITE',
    message: expect.stringContaining('"INBOX#"'),
  });
});

test('a malformed trace header stays in the event, and is not sent to EventBridge', async () => {
  const { outbox, happened } = rig();
  const [entry] = await outbox.entries([{ ...happened(1), traceId: 'request-17' }]);
  expect(envelopeOf(entry?.Put.Item)).toMatchObject({ traceId: 'request-17' });
  const stored = { ...entry?.Put.Item } as Item;
  expect(pendingRow(stored)?.entry.traceHeader).toBeUndefined();
  // A row of another writer: EventBridge would refuse the whole call.
  expect(pendingRow({ ...stored, traceId: 'x'.repeat(501) })?.entry.traceHeader).toBeUndefined();
});

test('a refused domain condition writes nothing, and its reason comes first', async () => {
  const { outbox, rows, happened } = rig();
  await outbox.commit({ writes: [put], events: [happened(1)] });
  await expect(outbox.commit({ writes: [put], events: [happened(2)] })).rejects.toMatchObject({
    code: 'TRANSACTION_CANCELLED',
    reasons: [{ code: 'ConditionalCheckFailed' }, { code: 'None' }],
  });
  expect(rows()).toHaveLength(1);
});

test('entries used again cannot turn a published event back, nor be used after a while', async () => {
  const { outbox, happened, clock } = rig();
  const entries = await outbox.entries([happened(1)]);
  await outbox.commit({ writes: entries });
  await expect(outbox.commit({ writes: entries })).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  await clock.advance(5 * 60_000 + 1);
  await expect(outbox.commit({ writes: entries })).rejects.toMatchObject({ code: 'STALE_ENTRY' });
});

test.each([
  ['a payload that fails its schema', { data: { n: 'one' } }, 'INVALID_PAYLOAD', 'data.n'],
  ['a payload that is not JSON', { data: { n: 1n } }, 'INVALID_PAYLOAD', 'cannot be written as JSON'],
  ['no payload', { data: undefined }, 'INVALID_PAYLOAD', 'undefined'],
  ['no aggregate id', { aggregateId: '' }, 'INVALID_EVENT', 'aggregateId'],
  ['a torn aggregate id', { aggregateId: 'a\ud83d' }, 'INVALID_EVENT', 'aggregateId must be'],
  ['a torn correlation id', { correlationId: '\ude00' }, 'INVALID_EVENT', 'half of a surrogate pair'],
  ['a time that is not a number', { occurredAt: Number.NaN }, 'INVALID_EVENT', 'occurredAt'],
  ['a trace header that is too long', { traceId: 'x'.repeat(501) }, 'INVALID_EVENT', 'traceId'],
])('%s is refused by name', async (_what, change, code, part) => {
  const { outbox, memory } = rig();
  const draft = { ...ThingHappened.create({ aggregateId: '1', data: { n: 1 } }), ...change };
  await expect(outbox.commit({ events: [draft] })).rejects.toMatchObject({
    code,
    message: expect.stringContaining(part),
  });
  expect(memory.items()).toEqual([]);
});

test.each([
  ['no sequence', { sequence: undefined }, 'sequence must be a whole number from 1'],
  ['the sequence 0', { sequence: 0 }, 'sequence must be a whole number from 1, but it is 0.'],
  ['the sequence 1.5', { sequence: 1.5 }, 'sequence must be a whole number from 1'],
  ['a text as sequence', { sequence: '1' as never }, 'sequence must be a whole number from 1'],
  [
    'an aggregate id that no key can have',
    { aggregateId: 'é'.repeat(513) },
    'aggregateId must be at most 1024',
  ],
])('%s in an event whose definition declares a sequence is refused', async (_what, change, part) => {
  const { outbox, memory } = rig();
  const Numbered = defineEvent({ ...ThingHappened, type: 'Numbered', sequence: true });
  const draft = { ...Numbered.create({ aggregateId: '1', data: { n: 1 }, sequence: 1 }), ...change };
  await expect(outbox.commit({ events: [draft] })).rejects.toMatchObject({
    code: 'INVALID_EVENT',
    message: expect.stringContaining(part),
  });
  expect(memory.items()).toEqual([]);
  const longest = Numbered.create({ aggregateId: 'é'.repeat(512), data: { n: 1 }, sequence: 1 });
  await expect(outbox.commit({ events: [longest] })).resolves.toHaveLength(1);
});

test.each([
  ['a payload', { n: 1 }],
  ['nothing', undefined],
])('%s instead of an event is refused, with the way to create one', async (_what, event) => {
  const { outbox } = rig();
  await expect(outbox.commit({ events: [event as never] })).rejects.toMatchObject({
    code: 'INVALID_EVENT',
    message: expect.stringContaining('OrderPlaced.create({ aggregateId, data })'),
  });
});

test.each([
  ['the outbox, because it does not compress', randomBytes(700_000).toString('base64')],
  ['EventBridge, although it compresses', 'a'.repeat(1_000_000)],
])('an event too large for %s is refused with both sizes and both limits', async (_where, aggregateId) => {
  const { outbox, memory } = rig();
  const event = ThingHappened.create({ aggregateId, data: { n: 1 } });
  await expect(outbox.commit({ events: [event] })).rejects.toMatchObject({
    code: 'EVENT_TOO_LARGE',
    message: expect.stringMatching(
      /ThingHappened.*takes \d+ bytes as an EventBridge entry.*1000000, and \d+ bytes in the outbox.*401408 fit/,
    ),
  });
  expect(memory.items()).toEqual([]);
});

test.each([undefined, 'Root=1-5759e988-bd862e3fe1be46a994272793'])(
  'an event is committed up to the size of an entry that EventBridge accepts, with the trace header %s',
  async (traceId) => {
    const { outbox, memory } = rig();
    const sized = (aggregateId: string) => ThingHappened.create({ aggregateId, traceId, data: { n: 1 } });
    await outbox.commit({ events: [sized('a')] });
    const [small] = memory.items();
    const around = entryBytes(pendingRow(small as Item)?.entry as BusEntry) - 1;
    const fits = 'a'.repeat(PUT_EVENTS_BYTES_MAX - 1 - around);
    await expect(outbox.commit({ events: [sized(fits)] })).resolves.toHaveLength(1);
    await expect(outbox.commit({ events: [sized(`${fits}a`)] })).rejects.toMatchObject({
      code: 'EVENT_TOO_LARGE',
    });
  },
);

test('a row inflates its envelope only when it is published: a page of rows may hold a thousand times its own size', async () => {
  const { outbox, memory } = rig();
  await outbox.commit({
    events: [ThingHappened.create({ aggregateId: 'a'.repeat(2_000), data: { n: 1 } })],
  });
  const [item] = memory.items();
  let reads = 0;
  const watched = Object.defineProperty({ ...item }, 'envelope', {
    get: () => {
      reads += 1;
      return item?.envelope;
    },
  });
  const row = pendingRow(watched as Item);
  expect(reads).toBe(0);
  expect(row?.entry.detail).toContain('a'.repeat(2_000));
  expect(reads).toBe(1);
});

test('an event of 900 KB that compresses is committed, and published as it was written', async () => {
  const { outbox, memory } = rig();
  const [envelope] = await outbox.commit({
    events: [ThingHappened.create({ aggregateId: 'a'.repeat(900_000), data: { n: 1 } })],
  });
  const [item] = memory.items();
  expect(pendingRow(item as Item)?.entry.detail).toBe(JSON.stringify(envelope));
});

test('a transaction too big is refused with its numbers', async () => {
  const { outbox, happened } = rig();
  await expect(
    outbox.commit({ events: Array.from({ length: 101 }, (_, n) => happened(n)) }),
  ).rejects.toMatchObject({
    code: 'TRANSACTION_TOO_LARGE',
    message: expect.stringContaining('101 actions'),
  });
  const large = Array.from({ length: 15 }, (_, n) => ({
    Put: { Item: { PK: `P${n}`, SK: 'S', text: 'x'.repeat(300_000) } },
  }));
  await expect(outbox.commit({ writes: large })).rejects.toMatchObject({ code: 'TRANSACTION_TOO_LARGE' });
  await expect(outbox.commit({})).rejects.toMatchObject({ code: 'EMPTY_COMMIT' });
});

test('two writes to one item are refused, with the item and both numbers', async () => {
  const { outbox, memory, happened } = rig();
  const update = { Update: { Key: { PK: 'THING#1', SK: 'THING' }, UpdateExpression: 'REMOVE n' } };
  await expect(outbox.commit({ writes: [put, update], events: [happened(1)] })).rejects.toMatchObject({
    code: 'BAD_WRITE',
    message:
      'Action 2 of 3 (Update): action 1 already uses the item THING#1 / THING, and a transaction can use an item only once. Combine the two.',
  });
  const other = { ...put.Put, Item: { PK: 'THING#1', SK: 'OTHER' } };
  await expect(memory.transact([put, update])).rejects.toThrow('{"PK":"THING#1","SK":"THING"} of Mailroom');
  await outbox.commit({ writes: [put, { Put: other }] });
});

describe('event data that JSON would change', () => {
  const Lines = defineEvent({
    source: 'things',
    type: 'Lines',
    version: 1,
    aggregateType: 'Thing',
    schema: z.object({ lines: z.array(z.looseObject({ at: z.unknown().optional() })) }),
  });
  const Price = class {
    cents = 100;
  };
  const commit = (at: unknown, name = 'at') =>
    rig().outbox.commit({
      events: [Lines.create({ aggregateId: '1', data: { lines: [{ at: 1, [name]: at }] } })],
    });

  test.each([
    ['a Map', new Map([['a', 1]]), 'Use Object.fromEntries(map).'],
    ['a bigint', 1n, 'Use a string: String(value).'],
    ['a Date', new Date(0), 'Use its toISOString() or its getTime().'],
    ['an error (TypeError)', new TypeError('x'), 'Use its name and its message.'],
    ['an instance of RegExp without own fields', /x/, 'Copy its values into a plain object.'],
  ])('is refused with its path: %s', async (kind, value, remedy) => {
    await expect(commit(value)).rejects.toMatchObject({
      code: 'INVALID_PAYLOAD',
      message: `The payload of Lines cannot be written as JSON: data.lines.0.at is ${kind}. ${remedy}`,
    });
  });

  test('is refused without a name that the schema does not declare: it may be data', async () => {
    await expect(commit(new Map(), 'ada@example.com')).rejects.toThrow('data.lines.0.* is a Map');
  });

  test.each([
    ['undefined', undefined],
    ['an object that chose its JSON', { toJSON: () => 'text' }],
    ['an object of a class', new Price()],
  ])('does not include %s', async (_what, value) => {
    await expect(commit(value)).resolves.toHaveLength(1);
  });
});

test('a payload is validated as its consumers will read it: without a member that is undefined', async () => {
  const Counted = defineEvent({
    source: 'things',
    type: 'Counted',
    version: 1,
    aggregateType: 'Thing',
    schema: z.strictObject({ n: z.int() }),
  });
  const data = { n: 1, note: undefined };
  const [envelope] = await rig().outbox.commit({ events: [Counted.create({ aggregateId: '1', data })] });
  expect(envelope?.data).toEqual({ n: 1 });
});

test('an answer that was lost does not write twice', async () => {
  let calls = 0;
  const { memory, clock, rows, happened, telemetry } = rig();
  const flaky = {
    ...memory,
    transact: async (...args: Parameters<typeof memory.transact>) => {
      await memory.transact(...args);
      calls += 1;
      if (calls === 1) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    },
  };
  const committed = createOutbox({ config: consumerConfig, table: flaky, clock, telemetry }).commit({
    writes: [put],
    events: [happened(1)],
  });
  await clock.advance(1_000);
  await expect(committed).resolves.toHaveLength(1);
  expect(calls).toBe(2);
  expect(rows()).toHaveLength(1);
  expect(telemetry.counted('EventsCommitted')).toBe(1);
});

describe('committed events are counted', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
    vi.restoreAllMocks();
  });

  test('after the commit, entries among its writes too; a refused commit has none', async () => {
    const { memory: table, clock, happened } = rig();
    const telemetry = { ...memoryTelemetry(), flush: vi.fn() };
    const outbox = createOutbox({ config: consumerConfig, table, clock, telemetry });
    const entries = await outbox.entries([happened(1)]);
    expect(telemetry.counted('EventsCommitted')).toBe(0);
    await outbox.commit({ writes: [put, ...entries], events: [happened(2), happened(3)] });
    expect(telemetry.counted('EventsCommitted')).toBe(3);
    await expect(outbox.commit({ writes: [put], events: [happened(4)] })).rejects.toThrow();
    expect(telemetry.counted('EventsCommitted')).toBe(3);
    expect(telemetry.flush).not.toHaveBeenCalled(); // whoever gave it flushes it
  });

  test('in a Lambda function at each commit, and nowhere else', async () => {
    // Powertools prints metrics past `console`, unless it is told that this is development; then it prints none unless told to.
    vi.stubEnv('POWERTOOLS_DEV', 'true');
    vi.stubEnv('POWERTOOLS_METRICS_DISABLED', 'false');
    const print = vi.spyOn(console, 'log').mockImplementation(() => {});
    const { memory: table, clock, happened } = rig();
    await createOutbox({ config: consumerConfig, table, clock }).commit({ events: [happened(1)] });
    expect(print).not.toHaveBeenCalled();

    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'orders');
    const outbox = createOutbox({ config: consumerConfig, table, clock });
    await outbox.commit({ writes: [put] });
    expect(print).not.toHaveBeenCalled();
    await outbox.commit({ events: [happened(2), happened(3)] });
    await outbox.commit({ events: [happened(4)] });
    const metrics = print.mock.calls.map(([line]) => JSON.parse(String(line)) as object);
    expect(metrics).toMatchObject([
      { service: 'things', table: 'Mailroom', EventsCommitted: 2 },
      { service: 'things', table: 'Mailroom', EventsCommitted: 1 },
    ]);
  });
});

test.each(['aws.orders', 'AWS.orders'])('a service named like one of AWS is refused: %s', (service) => {
  const { memory } = rig();
  const config = { ...consumerConfig, service };
  expect(() => createOutbox({ config, table: memory })).toThrow('reserves sources');
});
