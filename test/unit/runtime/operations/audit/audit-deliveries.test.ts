import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { HEARTBEAT } from '../../../../../lambdas/runtime/events/heartbeat-event.ts';
import {
  createDeliveries,
  errorBudgets,
} from '../../../../../lambdas/runtime/operations/audit/audit-deliveries.ts';
import type { InboxRow } from '../../../../../lambdas/runtime/store/inbox-row.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const SLO = { latencyMs: 30 * MINUTE_MS, percentile: 90 };
const DAY = Date.UTC(2026, 0, 1);
const LATER = DAY + 13 * 60 * MINUTE_MS;

/** A Mailroom whose consumer payments has an SLO of half an hour, and whose consumer inventory has none. It is noon. */
const watched = () => auditRig([consumerEntry('payments', { slo: SLO }), consumerEntry('inventory')]);

type Rig = ReturnType<typeof watched>;

/** Writes an event of `agoMs` ago that payments processed `tookMs` later. */
async function processed({ event, inbox }: Rig, agoMs: number, tookMs: number, row: Partial<InboxRow> = {}) {
  const { eventId, occurredAt } = await event(agoMs);
  await inbox('payments', eventId, 'PROCESSED', { processedAt: occurredAt + tookMs, ...row });
}

/** The counts of payments: published, processed, within the SLO. */
async function counts(rig: Rig, range: Parameters<Rig['run']>[0] = {}) {
  const { deliveries } = await rig.run({ earlier: true, ...range });
  return deliveries
    .filter(({ consumer }) => consumer === 'payments')
    .map(({ from, published, processed, withinSlo }) => [from - DAY, published, processed, withinSlo]);
}

const TWO_HOURS = 120 * MINUTE_MS;
/** From shortly before midnight. */
const wide = (rig: Rig) => ({ since: rig.clock.now() - 13 * 60 * MINUTE_MS });

describe('the deliveries of a consumer', () => {
  test('are counted by when an event was committed, processed, and processed in time', async () => {
    const rig = watched();
    await processed(rig, TWO_HOURS, 1_000);
    await processed(rig, TWO_HOURS, SLO.latencyMs);
    await processed(rig, TWO_HOURS, SLO.latencyMs + 1);
    await rig.event(TWO_HOURS);
    expect(await counts(rig, wide(rig))).toEqual([[0, 4, 3, 2]]);
  });

  test('belong to the UTC day of the commit, to the millisecond', async () => {
    const rig = watched();
    const noon = 12 * 60 * MINUTE_MS;
    await processed(rig, noon + 1, 1_000); // processed on the next day
    await processed(rig, noon, 1_000);
    await processed(rig, 60 * MINUTE_MS, 1_000);
    expect(await counts(rig, wide(rig))).toEqual([
      [-DAY_MS, 1, 1, 1],
      [0, 2, 2, 2],
    ]);
  });

  test.each<[string, InboxRow['status'], Partial<InboxRow>, number[][]]>([
    ['rejected', 'REJECTED', {}, [[0, 1, 0, 0]]],
    ['discarded', 'DISCARDED', {}, [[0, 1, 0, 0]]],
    ['failed', 'FAILED', { retryAt: LATER }, [[0, 1, 0, 0]]],
    ['held by a worker', 'PROCESSING', { endsBy: LATER }, [[0, 1, 0, 0]]],
    [
      'resolved late',
      'PROCESSED',
      { processedAt: DAY + 11 * 60 * MINUTE_MS, resolvedBy: 'ada' },
      [[0, 1, 1, 0]],
    ],
    [
      'resolved in time',
      'PROCESSED',
      { processedAt: DAY + 10 * 60 * MINUTE_MS, resolvedBy: 'ada' },
      [[0, 1, 1, 1]],
    ],
    ['redriven and processed late', 'PROCESSED', { processedAt: DAY + 11 * 60 * MINUTE_MS }, [[0, 1, 1, 0]]],
    ['processed without a time', 'PROCESSED', {}, [[0, 1, 1, 0]]],
    ['unreadable', 'PARKED' as never, {}, []],
  ])('with a message that is %s', async (_what, status, row, expected) => {
    const rig = watched();
    const { eventId } = await rig.event(TWO_HOURS);
    await rig.inbox('payments', eventId, status, row);
    expect(await counts(rig, wide(rig))).toEqual(expected);
  });

  test('omit an event that is not processed until it is late', async () => {
    const rig = watched();
    const row = { retryAt: LATER };
    for (const agoMs of [SLO.latencyMs, SLO.latencyMs + 1]) {
      const { eventId } = await rig.event(agoMs);
      for (const consumer of ['payments', 'inventory']) await rig.inbox(consumer, eventId, 'FAILED', row);
    }
    expect(await counts(rig, wide(rig))).toEqual([[0, 1, 0, 0]]);
    // Without an SLO, late is later than the grace period.
    const { deliveries } = await rig.run({ ...wide(rig), graceMs: 20 * MINUTE_MS });
    expect(deliveries).toContainEqual({
      consumer: 'inventory',
      from: DAY,
      published: 2,
      processed: 0,
      withinSlo: null,
    });
  });

  test('deliveries that may still arrive count only where they have missed an SLO', async () => {
    const rig = watched();
    await rig.event(TWO_HOURS);
    await rig.event(SLO.latencyMs);
    for (const queue of ['payments-queue', 'inventory-queue']) rig.queues.holds.set(queue, 2);
    const report = await rig.run({ ...wide(rig), earlier: true });
    expect(report.inconclusive.map(({ consumer }) => consumer).sort()).toEqual(['inventory', 'payments']);
    expect(report.deliveries).toEqual([
      { consumer: 'payments', from: DAY, published: 1, processed: 0, withinSlo: 0 },
    ]);
  });

  test('omit events that need not be there, and heartbeats', async () => {
    const rig = auditRig([
      consumerEntry('payments', { slo: SLO, events: [{ source: 'orders', type: 'OrderPlaced' }, HEARTBEAT] }),
    ]);
    await processed(rig, TWO_HOURS, 1_000);
    const { eventId } = await rig.event(TWO_HOURS, { source: HEARTBEAT.source, type: HEARTBEAT.type });
    await rig.inbox('payments', eventId, 'PROCESSED', { processedAt: DAY });
    const report = await rig.run({ ...wide(rig), earlier: true });
    expect(report.consumers.payments).toMatchObject({ expected: 2, processed: 2 });
    expect(report.deliveries).toMatchObject([{ published: 1 }]);
    const undeclared = auditRig([consumerEntry('payments', { slo: SLO, changedAt: DAY + DAY_MS })]);
    await undeclared.event(TWO_HOURS);
    undeclared.versions.set('payments', []);
    expect(await undeclared.run(wide(undeclared))).toMatchObject({
      consumers: { payments: { unproven: 1 } },
      deliveries: [],
      errorBudgets: [],
    });
  });

  test('deliveries of an unpublished event count as missed where there is an SLO, unless it was discarded', async () => {
    const rig = watched();
    for (const status of ['PENDING', 'DEAD', 'DISCARDED'] as const) await rig.event(TWO_HOURS, { status });
    await rig.event(SLO.latencyMs, { status: 'PENDING' });
    expect((await rig.run({ ...wide(rig), earlier: true })).deliveries).toEqual([
      { consumer: 'payments', from: DAY, published: 2, processed: 0, withinSlo: 0 },
    ]);
  });

  test('have no SLO for a consumer whose directory entry has none, or none that can be read', async () => {
    for (const slo of [undefined, null, 'fast', { latencyMs: '30', percentile: 99 }]) {
      const rig = auditRig([consumerEntry('payments', { slo: slo as never })]);
      const { eventId } = await rig.event(TWO_HOURS);
      await rig.inbox('payments', eventId, 'PROCESSED', { processedAt: DAY });
      const report = await rig.run({ ...wide(rig) });
      expect(report.deliveries).toMatchObject([{ published: 1, processed: 1, withinSlo: null }]);
      expect(report.errorBudgets).toEqual([]);
    }
  });
});

describe('the error budget of a consumer', () => {
  test('is what its SLO allows in the range, less what missed it', async () => {
    const rig = watched();
    for (let event = 0; event < 25; event += 1) {
      const missed = event < 3;
      await processed(rig, (event % 2) * 11 * 60 * MINUTE_MS + TWO_HOURS - 1, missed ? SLO.latencyMs + 1 : 0);
    }
    const { errorBudgets: budgets } = await rig.run(wide(rig));
    expect(budgets).toEqual([
      { consumer: 'payments', ...SLO, published: 25, allowed: 2, missed: 3, left: -1 },
    ]);
  });

  test.each([
    [300, 99, 3],
    [1_000, 99.9, 1],
    [99, 99, 0],
    [7_000, 99.7, 21],
  ])('an error budget of %i events at %d %% allows %i to miss it', (published, percentile, allowed) => {
    const directory = {
      ...watched().directory,
      consumers: [consumerEntry('payments', { slo: { ...SLO, percentile } })],
    };
    const delivery = {
      consumer: 'payments',
      from: DAY,
      published,
      processed: published,
      withinSlo: published,
    };
    expect(errorBudgets(directory, [delivery])).toMatchObject([{ allowed, missed: 0, left: allowed }]);
  });
});

test('deliveries are listed by period, then by consumer', () => {
  const { directory } = watched();
  const deliveries = createDeliveries({ directory, periodMs: DAY_MS, graceMs: 0, now: DAY });
  expect(deliveries.found()).toEqual([]);
});
