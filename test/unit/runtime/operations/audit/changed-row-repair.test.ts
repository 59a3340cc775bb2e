import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../../../../lambdas/runtime/operations/audit/audit.ts';
import type { ChangedRow } from '../../../../../lambdas/runtime/operations/audit/audit-changed-rows.ts';
import {
  planChangedRows,
  repairChangedRows,
} from '../../../../../lambdas/runtime/operations/audit/changed-row-repair.ts';
import { listRejected } from '../../../../../lambdas/runtime/store/dynamo/inbox-operator.ts';
import { makeDue } from '../../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import {
  eventIdShard,
  eventIdTime,
  minuteOf,
  outboxKeyOf,
} from '../../../../../lambdas/runtime/store/event-id.ts';
import type { RejectedRow } from '../../../../../lambdas/runtime/store/inbox-row.ts';
import { inboxKey, rejectedKey, unsettledKey } from '../../../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../../../lambdas/runtime/store/outbox-row.ts';
import { readRejectedPointer } from '../../../../../lambdas/runtime/store/stored-rows.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;
const NOTE = { by: 'ada', reason: 'a script wrote to the table' };

/** A PENDING event, and what a repair makes of it. @param agoMs - negative: dated in the future */
async function repaired(kind: ChangedRow['kind'], agoMs: number, row: (now: number) => Partial<OutboxRow>) {
  const rig = auditRig([consumerEntry('payments')]);
  const now = rig.clock.now();
  const { eventId } = await rig.event(agoMs, { status: 'PENDING', ...row(now) });
  const found: ChangedRow = { kind, eventId, consumer: null, type: 'OrderPlaced', until: null, store: null };
  const result = await repairChangedRows(rig.deps, [found], NOTE);
  const pointer = unsettledKey(eventIdShard(eventId), minuteOf(eventIdTime(eventId)));
  return {
    rig,
    now,
    found,
    result,
    row: rig.table.item(outboxKeyOf(eventId)),
    pointer: rig.table.item(pointer),
  };
}

describe('the repair of an event', () => {
  test('that is held ends its lease in a minute, and makes its minute unsettled', async () => {
    const { rig, now, found, result, row, pointer } = await repaired('held', LONG_AGO, (at) => ({
      leaseUntil: at + DAY_MS,
      attempts: 3,
    }));
    expect(result).toEqual({ repaired: [found], unrepaired: [] });
    expect(row).toMatchObject({ status: 'PENDING', leaseUntil: now + MINUTE_MS, attempts: 3 });
    expect(row).not.toHaveProperty('dueAt');
    expect(pointer).toMatchObject({ token: expect.any(String) });
    const { items } = await rig.table.query({ pk: 'OPERATIONS#2026-01' });
    expect(items).toMatchObject([
      { ...NOTE, command: 'audit --repair', subject: `outbox: held ${found.eventId}` },
    ]);
  });

  test('whose due time was changed makes it due, and it can never be cancelled: it may have been published', async () => {
    const due = (at: number) => ({ leaseUntil: at + 900 * DAY_MS, dueAt: at + 900 * DAY_MS });
    const { now, row } = await repaired('held', LONG_AGO, due);
    expect(row).toMatchObject({ dueAt: now, leaseUntil: now + MINUTE_MS });
    const tooLate = await repaired('too-late', -900 * DAY_MS, due);
    expect(tooLate.row).toMatchObject({ dueAt: now, leaseUntil: now + MINUTE_MS });
    expect(tooLate.pointer).toBeDefined();
  });

  test('that is dated in the future has its own minute swept, and keeps a lease that a relay may hold', async () => {
    const leased = await repaired('ahead', -40 * MINUTE_MS, (at) => ({ leaseUntil: at + 19 * MINUTE_MS }));
    expect(leased.row).toMatchObject({ leaseUntil: leased.now + 19 * MINUTE_MS });
    expect(leased.pointer).toBeDefined();
    const born = await repaired('ahead', -40 * MINUTE_MS, (at) => ({ leaseUntil: at + 40.5 * MINUTE_MS }));
    expect(born.row).toMatchObject({ leaseUntil: born.now + MINUTE_MS });
    // Its stream relay may be about to publish it, as after each commit.
    const due = await repaired('ahead', -40 * MINUTE_MS, (at) => ({ leaseUntil: at - 1 }));
    expect(due.row).toMatchObject({ leaseUntil: due.now + MINUTE_MS });
  });

  test.each([
    ['is not PENDING any more', { status: 'PUBLISHED' }],
    ['has a lease that a relay may hold', { leaseUntil: Date.UTC(2026, 0, 1, 12, 20) }],
    ['has another finding now', { leaseUntil: 0, dueAt: Date.UTC(2026, 0, 1) }],
  ] as const)('leaves one that %s as it is', async (_what, row) => {
    const { result, pointer, ...found } = await repaired('held', LONG_AGO, (at) => ({
      leaseUntil: at + DAY_MS,
      ...row,
    }));
    expect(result).toMatchObject({
      repaired: [],
      unrepaired: [{ why: expect.stringContaining('has changed') }],
    });
    expect(found.row).toMatchObject(row);
    expect(pointer).toBeUndefined();
  });

  test('leaves one that is scheduled at the limit, by a producer whose clock is ahead', async () => {
    const dueInMs = 366 * DAY_MS + 30 * MINUTE_MS;
    const due = (at: number) => ({ leaseUntil: at + dueInMs, dueAt: at + dueInMs });
    const { now, row, result } = await repaired('too-late', -dueInMs, due);
    expect(result).toMatchObject({ repaired: [] });
    expect(row).toMatchObject(due(now));
  });

  test.each([
    ['status', { status: 'PUBLISHED' }],
    ['lease', { leaseUntil: Date.UTC(2030, 0) }],
    ['due time', { dueAt: Date.UTC(2026, 5) }],
  ] as const)('is refused if its %s has changed since it was read', async (_what, change) => {
    const rig = auditRig();
    const seen = { leaseUntil: Date.UTC(2031, 0), dueAt: Date.UTC(2031, 0) };
    const { eventId } = await rig.event(LONG_AGO, { status: 'PENDING', ...seen, ...change });
    expect(await makeDue(rig.deps, eventId, seen)).toBe(false);
    expect(rig.table.item(outboxKeyOf(eventId))).toMatchObject({ ...seen, ...change });
    expect((await rig.table.query({ pk: unsettledKey(eventIdShard(eventId), '').PK })).items).toEqual([]);
  });

  test('with a newer schema changes nothing', async () => {
    const rig = auditRig();
    const leaseUntil = Date.UTC(2031, 0);
    const { eventId } = await rig.event(LONG_AGO, { status: 'PENDING', leaseUntil, schema: 2 });
    expect(await makeDue(rig.deps, eventId, { leaseUntil })).toBe(false);
  });
});

describe('the repair of a rejected message that is not listed', () => {
  const CAUSE = {
    reason: 'INVALID_PAYLOAD',
    rejectedAt: 5,
    lastError: 'no amount',
    fingerprint: 'payments X',
  };

  async function unlisted(row: Partial<RejectedRow> = {}, id?: string) {
    const rig = auditRig([consumerEntry('payments')]);
    const eventId = id ?? (await rig.event(LONG_AGO)).eventId;
    await rig.inbox('payments', eventId, 'REJECTED', row);
    const found: ChangedRow = {
      kind: 'unlisted',
      eventId,
      consumer: 'payments',
      type: null,
      until: null,
      store: null,
    };
    const pointer = () => rig.table.item(rejectedKey('payments', eventId));
    const stored = () => rig.table.item(inboxKey('payments', eventId));
    return { rig, eventId, found, pointer, stored };
  }

  test('writes the pointer that its rejection has written, and neither row nor pointer expires', async () => {
    const { rig, found, pointer, stored } = await unlisted({ ...CAUSE, expiresAt: 1_900_000_000 });
    expect(await repairChangedRows(rig.deps, [found], NOTE)).toMatchObject({ repaired: [found] });
    expect(pointer()).toEqual({ ...rejectedKey('payments', found.eventId), schema: 1, ...CAUSE });
    expect(stored()).toMatchObject({ status: 'REJECTED', fence: 'f', ...CAUSE });
    expect(stored()).not.toHaveProperty('expiresAt');
  });

  test('keeps the expiry of a message that could not be read', async () => {
    const expiresAt = 1_900_000_000;
    const id = `unreadable-${'0'.repeat(32)}`;
    const { rig, found, pointer, stored } = await unlisted({ ...CAUSE, expiresAt }, id);
    await repairChangedRows(rig.deps, [found], NOTE);
    expect([pointer(), stored()]).toMatchObject([{ expiresAt }, { expiresAt }]);
  });

  test('lists one that was set REJECTED by hand without anything else', async () => {
    const { rig, found, pointer } = await unlisted();
    await repairChangedRows(rig.deps, [found], NOTE);
    expect(readRejectedPointer(pointer() ?? {})).toMatchObject({
      reason: 'UNKNOWN',
      rejectedAt: rig.clock.now(),
      lastError: 'its row was changed by hand',
      fingerprint: 'payments UNKNOWN',
    });
  });

  test('leaves alone one that a redrive has taken up, or that was rejected again, which listed it', async () => {
    const { rig, eventId, found, pointer } = await unlisted(CAUSE);
    const seen = rig.table.item(inboxKey('payments', eventId)) as unknown as RejectedRow;
    await rig.inbox('payments', eventId, 'REJECTED', { ...CAUSE, fence: 'of a redrive' });
    expect(await listRejected(rig.deps, { consumer: 'payments', eventId }, seen)).toBe(false);
    await rig.inbox('payments', eventId, 'PROCESSING', CAUSE as Partial<RejectedRow> as never);
    expect(await listRejected(rig.deps, { consumer: 'payments', eventId }, seen)).toBe(false);
    expect(await repairChangedRows(rig.deps, [found], NOTE)).toMatchObject({ repaired: [] });
    expect(pointer()).toBeUndefined();
    await rig.inbox('payments', eventId, 'REJECTED', CAUSE);
    const listed = { ...rejectedKey('payments', eventId), schema: 1, ...CAUSE, sentAt: 4 };
    await rig.table.write({ Put: { Item: listed } });
    expect(await repairChangedRows(rig.deps, [found], NOTE)).toMatchObject({ repaired: [] });
    expect(pointer()).toEqual(listed);
  });
});

test('a row in PostgreSQL, and one that only a clock without a date finds too long, are left with the reason', () => {
  const row: ChangedRow = {
    kind: 'held',
    eventId: 'e',
    consumer: null,
    type: null,
    until: null,
    store: null,
  };
  const unlisted: ChangedRow = { ...row, kind: 'unlisted', consumer: 'payments' };
  expect(planChangedRows({}, [row, { ...row, store: 'postgres' }])).toMatchObject({
    repaired: [row],
    unrepaired: [{ why: expect.stringContaining('PostgreSQL') }],
  });
  expect(planChangedRows({ clockIsTrusted: false }, [row, unlisted])).toMatchObject({
    repaired: [unlisted],
    unrepaired: [{ why: expect.stringContaining('clock') }],
  });
});

test('a failure of one row does not stop the others, and is its reason', async () => {
  const rig = auditRig([consumerEntry('payments')]);
  const row = { status: 'PENDING', leaseUntil: rig.clock.now() + DAY_MS } as const;
  for (let number = 0; number < 2; number += 1) await rig.event(LONG_AGO, row);
  const until = rig.clock.now();
  const { changedRows } = await createAudit(rig.deps).run({ since: until - HOUR_MS, until });
  const [first] = changedRows;
  const table = {
    ...rig.table,
    get: async (...[key, how]: Parameters<typeof rig.table.get>) => {
      if (first !== undefined && key.SK.includes(first.eventId)) throw new Error('The table is away');
      return rig.table.get(key, how);
    },
  };
  expect(await repairChangedRows({ ...rig.deps, table }, changedRows, NOTE)).toMatchObject({
    repaired: changedRows.slice(1),
    unrepaired: [{ eventId: first?.eventId, why: expect.stringContaining('The table is away') }],
  });
});
