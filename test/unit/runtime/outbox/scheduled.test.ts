import { describe, expect, test, vi } from 'vitest';
import { MailroomError, TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { entryEventId } from '../../../../lambdas/runtime/outbox/outbox-entry.ts';
import { leaseOf, pendingRow } from '../../../../lambdas/runtime/outbox/pending-row.ts';
import { relayContext } from '../../../../lambdas/runtime/relay/relay-context.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { isCancellation } from '../../../../lambdas/runtime/store/dynamo/cancellation.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { requeueDead } from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import {
  claimEvents,
  failEvent,
  releaseEvents,
} from '../../../../lambdas/runtime/store/dynamo/outbox-writes.ts';
import { createAtOncePublisher } from '../../../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { eventIdTime } from '../../../../lambdas/runtime/store/event-id.ts';
import type { OutboxRow } from '../../../../lambdas/runtime/store/outbox-row.ts';
import { asRow } from '../../../../lambdas/runtime/store/row-schema.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/lambda-context.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';
import { stream } from '../relay/relay-stream-rig.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const paid = { Put: { Item: { PK: 'THING#1', SK: 'PAID' } } };

/** A rig with one event that is due after a while. */
async function scheduled(inMs = HOUR_MS) {
  const parts = rig();
  const dueAt = parts.clock.now() + inMs;
  const due = (n: number, deliverAt = dueAt) =>
    ThingHappened.create({ aggregateId: `thing-${n}`, data: { n }, deliverAt });
  const [event] = await parts.outbox.commit({ events: [due(1)] });
  const eventId = event?.eventId ?? '';
  const row = () => parts.rows().find(({ SK }) => SK.endsWith(eventId)) as OutboxRow;
  const { table, bus, clock, telemetry } = parts;
  const deps = { config: relayConfig, table, bus, clock, telemetry };
  const sweep = (punctual = false) =>
    runThrough(
      clock,
      createRelaySweep({ ...deps, config: { ...relayConfig, punctual } })({}, lambdaContext()),
    );
  const pending = () => pendingRow({ ...row() }) ?? expect.unreachable();
  return {
    ...parts,
    dueAt,
    due,
    event,
    eventId,
    row,
    pending,
    sweep,
    context: relayContext(deps, 'sweep', 4),
  };
}

/** The id of an event that was never committed. */
function anotherThan(eventId: string): string {
  return `${eventId.slice(0, -1)}${eventId.endsWith('1') ? 2 : 1}`;
}

describe('an event with deliverAt', () => {
  test('stands in its due minute, under a lease that ends when it is due', async () => {
    const { row, event, eventId, dueAt, clock } = await scheduled();
    expect(eventIdTime(eventId)).toBe(dueAt);
    expect(row()).toMatchObject({ status: 'PENDING', leaseUntil: dueAt, dueAt, scheduledAt: clock.now() });
    expect(event).toMatchObject({ occurredAt: dueAt });
  });

  test('gives its producer no turn to publish it at once', async () => {
    const { table, bus, due, happened, rows, publishedIds, clock } = await scheduled();
    const config = { busName: 'bus', timeoutMs: 1_000, publishedRetentionDays: 7 };
    const publishAtOnce = createAtOncePublisher({ config, bus });
    const outbox = createOutbox({ config: consumerConfig, table, clock, publishAtOnce });
    const [, ordinary] = await outbox.commit({ events: [due(2), happened(3)] });
    expect(publishedIds()).toEqual([ordinary?.eventId]);
    expect(rows().filter((row) => 'dueAt' in row)).toHaveLength(2);
    for (const row of rows()) expect('producerUntil' in row).toBe(!('dueAt' in row));
  });

  test('is an ordinary event if it was due up to five minutes ago', async () => {
    const { outbox, due, clock, rows } = await scheduled();
    for (const deliverAt of [clock.now(), clock.now() - 5 * 60_000]) {
      const [event] = await outbox.commit({ events: [due(2, deliverAt)] });
      expect(eventIdTime(event?.eventId ?? '')).toBe(clock.now());
      expect(rows().find(({ SK }) => SK.endsWith(event?.eventId ?? ''))).not.toHaveProperty('dueAt');
    }
  });

  test.for([
    [
      'in seconds',
      (now: number) => Math.floor(now / 1_000),
      /deliverAt must be .* but it is \d{10}\. If it is in seconds, multiply it by 1000\./,
    ],
    [
      'longer ago',
      (now: number) => now - 5 * 60_000 - 1,
      /deliverAt must be a time in epoch milliseconds, from 5 minutes ago/,
    ],
    ['in microseconds', (now: number) => now * 1_000, /but it is \d{16}\. If it is in microseconds, divide/],
    ['in nanoseconds', (now: number) => now * 1_000_000, /in nanoseconds, by 1000000\./],
    [
      'beyond the maximum',
      (now: number) => now + 366 * DAY_MS + 1,
      /schedule an event whose handler schedules the next one\./,
    ],
    ['not whole', (now: number) => now + 0.5, /deliverAt must be .* but it is \d{13}\.5\./],
    ['not a number', () => Number.NaN, /deliverAt must be .* but it is NaN\./],
    ['a text', () => '2026-12-01' as unknown as number, /deliverAt must be/],
  ] as const)('is refused if the time is %s', async ([, deliverAt, message]) => {
    const { outbox, due, clock } = await scheduled();
    await expect(outbox.commit({ events: [due(2, deliverAt(clock.now()))] })).rejects.toThrow(message);
  });

  test('is accepted up to the maximum', async () => {
    const { outbox, due, clock } = await scheduled();
    await expect(outbox.commit({ events: [due(2, clock.now() + 366 * DAY_MS)] })).resolves.toHaveLength(1);
  });

  test('is refused if its definition declares a sequence', async () => {
    const { outbox, dueAt } = await scheduled();
    const Numbered = defineEvent({ ...ThingHappened, type: 'Numbered', sequence: true });
    const event = Numbered.create({ aggregateId: 'a', data: { n: 1 }, sequence: 1, deliverAt: dueAt });
    await expect(outbox.commit({ events: [event] })).rejects.toThrow(
      /has deliverAt, but its definition declares a sequence/,
    );
  });

  test('is published by the sweep after it is due, and counts neither as rescued nor as late', async () => {
    const { sweep, clock, publishedIds, eventId, telemetry, row } = await scheduled(10_000);
    await sweep();
    expect(publishedIds()).toEqual([]);
    await clock.advance(4 * 60_000);
    await sweep();
    expect(publishedIds()).toEqual([eventId]);
    expect(row()).toMatchObject({ status: 'PUBLISHED', publishedBy: 'sweep' });
    expect(telemetry.counted('EventsPublished')).toBe(1);
    expect(telemetry.counted('EventsRescued')).toBe(0);
  });

  test('is published within its minute by a punctual sweep, and not before', async () => {
    const { sweep, clock, publishedIds, eventId } = await scheduled(10_000);
    await sweep(true);
    expect(publishedIds()).toEqual([]);
    await clock.advance(13_000);
    await sweep();
    expect(publishedIds()).toEqual([]);
    await sweep(true);
    expect(publishedIds()).toEqual([eventId]);
  });

  test('counts nowhere until it is due, and keeps its minute unsettled', async () => {
    const parts = rig();
    const { memory, clock, telemetry, publishedIds } = parts;
    const outbox = createOutbox({ config: { ...consumerConfig, shards: 1 }, table: memory, clock });
    const deliverAt = clock.now() + 10_000;
    const due = [1, 2].map((n) => ThingHappened.create({ aggregateId: 'thing', data: { n }, deliverAt }));
    await outbox.commit({ events: due });
    const table: Table = { ...memory, query: (query) => memory.query({ ...query, limit: 1 }) };
    const call = (event: unknown) =>
      runThrough(clock, createRelaySweep({ ...parts, table, config: relayConfig })(event, lambdaContext()));
    await clock.advance(1_000);
    const unsettled = () => memory.items().filter(({ PK }) => String(PK).startsWith('SWEEP#'));

    expect(await call({ since: clock.now() - 1 })).toMatchObject({ pending: 0 });
    expect(unsettled()).toHaveLength(1);
    expect(await call({})).toMatchObject({
      pending: 0,
      oldestPendingMs: 0,
      oldestLeaseMs: 0,
      complete: true,
    });
    expect(telemetry.counted('PendingEvents')).toBe(0);
    expect(unsettled()).toHaveLength(1);

    await clock.advance(11_001);
    expect(await call({})).toMatchObject({ published: 2, pending: 0 });
    expect(publishedIds()).toHaveLength(2);
    expect(unsettled()).toEqual([]);
  });

  test('is skipped by the stream until it is due by every clock, without a word', async () => {
    const parts = await scheduled(10_000);
    for (const waitMs of [0, 10_000, 1_800]) {
      await parts.clock.advance(waitMs);
      expect(await stream(parts)()).toEqual({ batchItemFailures: [] });
      expect(parts.publishedIds()).toEqual([]);
    }
    expect(parts.telemetry.lines()).toEqual([]);
    await parts.clock.advance(300);
    expect(await stream(parts)()).toEqual({ batchItemFailures: [] });
    expect(parts.publishedIds()).toEqual([parts.eventId]);
    expect(parts.row()).toMatchObject({ publishedBy: 'stream' });
  });

  test('says nothing about clocks, although its id is far ahead of its record', async () => {
    const parts = await scheduled(5 * 60_000);
    await parts.clock.advance(5 * 60_000 + 2_001);
    await stream(parts)();
    expect(parts.publishedIds()).toHaveLength(1);
    expect(parts.telemetry.lines()).toEqual([]);
  });
});

describe('a lease of a scheduled event is later than its due time', () => {
  test.for(['claim', 'release', 'failure'] as const)(
    'after a %s by a clock that is far behind',
    async (what) => {
      const { context, pending, row, dueAt } = await scheduled();
      if (what === 'claim') await claimEvents(context, [pending()]);
      if (what === 'release') await releaseEvents(context, [{ row: pending(), leaseUntil: dueAt }]);
      if (what === 'failure')
        await failEvent(context, pending(), new MailroomError('PUBLISH_FAILED', 'No.'), false);
      expect(row()).toMatchObject({ status: 'PENDING', leaseUntil: dueAt + 1 });
    },
  );

  test('after a requeue by a clock that is behind', async () => {
    const { context, pending, row, dueAt, outbox, eventId, table, clock } = await scheduled();
    await failEvent(context, pending(), new MailroomError('PUBLISH_FAILED', 'No.'), true);
    expect(row()).toMatchObject({ status: 'DEAD' });
    expect(await outbox.cancel(eventId)).toBe('too-late');
    await requeueDead({ table, clock }, eventId);
    expect(row()).toMatchObject({ status: 'PENDING', leaseUntil: dueAt + 1 });
    expect(await outbox.cancel(eventId)).toBe('too-late');
  });

  test('and otherwise as its writer wants', () => {
    expect(leaseOf({ dueAt: 5 }, 9)).toBe(9);
    expect(leaseOf({}, 9)).toBe(9);
  });
});

describe('a cancellation', () => {
  test('is final: the event is never published, and its row outlives the due time by a week', async () => {
    const { outbox, eventId, row, dueAt, clock, sweep, publishedIds } = await scheduled();
    expect(await outbox.cancel(eventId)).toBe('cancelled');
    expect(row()).toMatchObject({
      status: 'CANCELLED',
      cancelledAt: clock.now(),
      cancelledBy: 'things',
      expiresAt: Math.ceil(dueAt / 1_000) + 7 * 86_400,
    });
    expect(await outbox.cancel(eventId)).toBe('cancelled');
    await clock.advance(HOUR_MS + 4 * 60_000);
    await sweep();
    expect(publishedIds()).toEqual([]);
    expect(row()).toMatchObject({ status: 'CANCELLED', leaseUntil: dueAt });
  });

  test('keeps the row for a week from now, if the event is overdue', async () => {
    const { outbox, eventId, row, clock } = await scheduled();
    await clock.advance(2 * HOUR_MS);
    expect(await outbox.cancel(eventId)).toBe('cancelled');
    expect(row()).toMatchObject({ expiresAt: Math.ceil(clock.now() / 1_000) + 7 * 86_400 });
  });

  test('is too late once a relay has claimed the event, and for an ordinary event', async () => {
    const { outbox, eventId, context, pending, happened, clock } = await scheduled();
    await clock.advance(HOUR_MS + 3_000);
    await claimEvents(context, [pending()]);
    expect(await outbox.cancel(eventId)).toBe('too-late');
    const [ordinary] = await outbox.commit({ events: [happened(2)] });
    expect(await outbox.cancel(ordinary?.eventId ?? '')).toBe('too-late');
  });

  test('answers that the event is absent, and refuses what is not an event id', async () => {
    const { outbox, eventId } = await scheduled();
    expect(await outbox.cancel(anotherThan(eventId))).toBe('absent');
    await expect(outbox.cancel('order-1')).rejects.toMatchObject({ code: 'BAD_EVENT_ID' });
  });

  test('is tried again if another transaction holds the row', async () => {
    const { outbox, eventId, memory, row, clock } = await scheduled();
    const conflict = Object.assign(new Error('busy'), { name: 'TransactionConflictException' });
    const write = vi.spyOn(memory, 'write').mockRejectedValueOnce(conflict);
    expect(await runThrough(clock, outbox.cancel(eventId))).toBe('cancelled');
    expect(write).toHaveBeenCalledTimes(2);
    expect(row()).toMatchObject({ status: 'CANCELLED' });
  });

  test('is refused to another service, which is told the owner', async () => {
    const { memory, clock, eventId, row } = await scheduled();
    const other = createOutbox({ config: { ...consumerConfig, service: 'strangers' }, table: memory, clock });
    await expect(other.cancel(eventId)).rejects.toThrow(
      `Event ${eventId} of things cannot be cancelled by strangers`,
    );
    expect(row()).toMatchObject({ status: 'PENDING' });
  });

  test('commits with its transaction, or refuses it', async () => {
    const { outbox, eventId, row, memory } = await scheduled();
    await outbox.commit({ writes: [outbox.cancellation(eventId), paid] });
    expect(row()).toMatchObject({ status: 'CANCELLED' });
    expect(memory.item({ PK: 'THING#1', SK: 'PAID' })).toBeDefined();
    const again = { Put: { Item: { PK: 'THING#2', SK: 'PAID' } } };
    await expect(outbox.commit({ writes: [outbox.cancellation(eventId), again] })).rejects.toMatchObject({
      code: 'TRANSACTION_CANCELLED',
    });
    expect(memory.item({ PK: 'THING#2', SK: 'PAID' })).toBeUndefined();
  });

  test('is the only update of an outbox row that a commit may contain', async () => {
    const { outbox, eventId } = await scheduled();
    const { Update } = outbox.cancellation(eventId);
    expect(isCancellation({ Update: { ...Update, TableName: 'Mailroom' } })).toBe(true);
    for (const forged of [
      { ...Update, ConditionExpression: undefined },
      { ...Update, UpdateExpression: `${Update.UpdateExpression}, attempts = :cancelledAt` },
      { ...Update, Key: { PK: 'OUTBOX#2026-01-01T00:00#00', SK: Update.Key?.SK } },
      {
        ...Update,
        ExpressionAttributeValues: { ...Update.ExpressionAttributeValues, ':CANCELLED': 'PUBLISHED' },
      },
      { ...Update, ExpressionAttributeValues: { ...Update.ExpressionAttributeValues, ':expiresAt': 1 } },
    ])
      await expect(outbox.commit({ writes: [{ Update: forged as typeof Update }] })).rejects.toMatchObject({
        code: 'BAD_WRITE',
      });
  });
});

describe('a rescheduled event', () => {
  test('is cancelled in the transaction that commits the new one', async () => {
    const { outbox, eventId, due, dueAt, row, rows } = await scheduled();
    const moved = await outbox.reschedule(eventId, due(1, dueAt + HOUR_MS));
    expect(row()).toMatchObject({ status: 'CANCELLED' });
    expect(moved).toMatchObject({ status: 'rescheduled', event: { occurredAt: dueAt + HOUR_MS } });
    expect(rows()).toHaveLength(2);
  });

  test('stays as it is if it cannot be cancelled', async () => {
    const { outbox, eventId, due, rows, clock, sweep } = await scheduled(10_000);
    const later = due(1, clock.now() + HOUR_MS);
    expect(await outbox.reschedule(anotherThan(eventId), later)).toEqual({ status: 'absent' });
    await clock.advance(4 * 60_000);
    await sweep();
    expect(await outbox.reschedule(eventId, later)).toEqual({ status: 'too-late' });
    expect(await outbox.cancel(eventId)).toBe('too-late');
    expect(rows()).toHaveLength(1);
  });

  test('is not reported as absent if the table throttled its cancellation', async () => {
    const { outbox, eventId, due, dueAt, memory, row } = await scheduled();
    const throttled = new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }]);
    vi.spyOn(memory, 'transact').mockRejectedValue(throttled);
    await expect(outbox.reschedule(eventId, due(1, dueAt + HOUR_MS))).rejects.toBe(throttled);
    expect(row()).toMatchObject({ status: 'PENDING' });
  });

  test('is not scheduled twice', async () => {
    const { outbox, eventId, due, dueAt, rows } = await scheduled();
    await outbox.reschedule(eventId, due(1, dueAt + 1));
    expect(await outbox.reschedule(eventId, due(1, dueAt + 2))).toEqual({ status: 'cancelled' });
    expect(rows()).toHaveLength(2);
  });

  test('reports an invalid new event, and changes nothing', async () => {
    const { outbox, eventId, due, row } = await scheduled();
    await expect(outbox.reschedule(eventId, due(1, 1_700_000_000))).rejects.toMatchObject({
      code: 'INVALID_EVENT',
    });
    expect(row()).toMatchObject({ status: 'PENDING' });
  });
});

test('an entry names its event, and can be committed long before it is due, but not long after', async () => {
  const { outbox, due, clock, rows, dueAt } = await scheduled();
  const [entry] = await outbox.entries([due(2)]);
  if (entry === undefined) throw new Error('unreachable');
  expect(eventIdTime(entryEventId(entry))).toBe(dueAt);
  await clock.advance(30 * 60_000);
  await outbox.commit({
    writes: [entry, { Put: { Item: { PK: 'THING#1', SK: 'THING', expiryId: entryEventId(entry) } } }],
  });
  expect(rows().map((row) => asRow<OutboxRow>({ ...row }).SK)).toContain(`EVENT#${entryEventId(entry)}`);
  const [late] = await outbox.entries([due(3)]);
  await clock.advance(40 * 60_000);
  await expect(outbox.commit({ writes: late === undefined ? [] : [late] })).rejects.toMatchObject({
    code: 'STALE_ENTRY',
  });
});

test('the entry of a cancelled event cannot be committed again, even when TTL has deleted its row', async () => {
  const { outbox, due, clock, memory, rows } = await scheduled(8 * DAY_MS);
  const [entry] = await outbox.entries([due(2)]);
  if (entry === undefined) throw new Error('unreachable');
  await outbox.commit({ writes: [entry] });
  expect(await outbox.cancel(entryEventId(entry))).toBe('cancelled');
  await clock.advance(7 * DAY_MS + 1_000);
  expect(memory.expire()).toBe(0);
  await expect(outbox.commit({ writes: [entry] })).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });
  await clock.advance(8 * DAY_MS);
  expect(memory.expire()).toBe(1);
  await expect(outbox.commit({ writes: [entry] })).rejects.toMatchObject({ code: 'STALE_ENTRY' });
  expect(rows()).toHaveLength(1);
});
