import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { createAuditHandler } from '../../../../../lambdas/runtime/operations/audit/audit-handler.ts';
import { lambdaContext, memoryTelemetry } from '../../../../../testing/index.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const EVERY_MS = 15 * MINUTE_MS;

/** A metric of one consumer, with its dimension and time. */
interface Sent {
  readonly consumer: string;
  readonly at: number;
  readonly name: string;
  readonly value: number;
}

function scheduled() {
  const slo = { latencyMs: 30 * MINUTE_MS, percentile: 99 };
  const rig = auditRig([consumerEntry('payments', { slo })]);
  const telemetry = memoryTelemetry();
  const sent: Sent[] = [];
  const backlog: Sent[] = [];
  const handler = createAuditHandler({
    ...rig.deps,
    directory: async () => rig.directory,
    config: { tableName: rig.table.name, sinceMs: HOUR_MS, everyMs: EVERY_MS },
    telemetry,
    deliveryTelemetry: (consumer, at) => ({
      gauge: (name, value) =>
        void (name.startsWith('Deliveries') ? sent : backlog).push({ consumer, at, name, value }),
      duration: (name, value) => void backlog.push({ consumer, at, name, value }),
      flush: () => {},
    }),
  });
  const run = () => handler({}, lambdaContext());
  const warnings = () => telemetry.lines().filter(({ level }) => level === 'warn');
  return { rig, telemetry, handler, run, warnings, sent, backlog };
}

test('a scheduled audit emits how many are missing and duplicated, and names them', async () => {
  const { rig, telemetry, run, warnings } = scheduled();
  const secret = { data: { card: '4111' }, causationId: 'cause' };
  const eventIds = [];
  for (let i = 0; i < 3; i += 1) eventIds.push((await rig.event(20 * MINUTE_MS, {}, secret)).eventId);
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(3);
  expect(telemetry.counted('EventsDuplicated')).toBe(2);
  expect(warnings().map(({ message }) => message)).toEqual([
    'Consumers never received these events: npx cdk-mailroom audit --repair plans to send them',
    'These events were written more than once for one cause',
  ]);
  for (const eventId of eventIds) expect(JSON.stringify(warnings())).toContain(eventId);
  expect(JSON.stringify(telemetry.lines())).not.toContain('4111');
});

test('it emits zeros when all is well, so that its silence means something', async () => {
  const { rig, telemetry, run, warnings } = scheduled();
  const gauges: string[] = [];
  const { gauge } = telemetry;
  telemetry.gauge = (name, value) => {
    gauges.push(`${name} ${value}`);
    gauge(name, value);
  };
  const { eventId } = await rig.event(20 * MINUTE_MS);
  await rig.inbox('payments', eventId);
  await run();
  expect(gauges).toEqual(['EventsMissing 0', 'EventsDuplicated 0', 'RowsUnreadable 0', 'RowsChanged 0']);
  expect(warnings()).toEqual([]);
});

test('it emits the backlog of each consumer: what is neither processed nor left to an operator', async () => {
  const { rig, run, backlog } = scheduled();
  const failing = await rig.event(40 * MINUTE_MS);
  await rig.inbox('payments', failing.eventId, 'FAILED', { attempts: 4, retryAt: rig.clock.now() + HOUR_MS });
  await rig.event(50 * MINUTE_MS);
  for (const status of ['PROCESSED', 'REJECTED', 'DISCARDED'] as const)
    await rig.inbox('payments', (await rig.event(55 * MINUTE_MS)).eventId, status, { attempts: 9 });
  const at = rig.clock.now();
  await run();
  const own = { consumer: 'payments', at };
  expect(backlog).toEqual([
    { ...own, name: 'Backlog', value: 2 },
    { ...own, name: 'OldestUnprocessedAge', value: 50 * MINUTE_MS },
    { ...own, name: 'MessagesOverThreeAttempts', value: 1 },
  ]);
});

test('it checks the given range, and leaves events in flight to the next run', async () => {
  const { rig, telemetry, run } = scheduled();
  await rig.event(HOUR_MS + 1);
  await rig.event(HOUR_MS);
  await rig.event(5 * MINUTE_MS);
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(1);
});

test('it looks further back where a busy queue hides for long that something is lost', async () => {
  const { rig, telemetry, run } = scheduled();
  await rig.event(100 * MINUTE_MS);
  rig.queues.holds.set('payments-queue', 5);
  rig.atLeastMs.set('payments-queue', 96 * MINUTE_MS);
  rig.ages.set('payments-queue', rig.clock.now() - 96 * MINUTE_MS);
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(1);
});

test('it skips events between the newest ones and those that can be judged only now', async () => {
  const { rig, telemetry, run } = scheduled();
  const blindMs = 5 * HOUR_MS;
  rig.atLeastMs.set('payments-queue', blindMs);
  const ages = [
    30 * MINUTE_MS,
    HOUR_MS,
    HOUR_MS + MINUTE_MS,
    blindMs - MINUTE_MS,
    blindMs + MINUTE_MS,
    blindMs + HOUR_MS + MINUTE_MS,
  ];
  for (const age of ages) await rig.event(age);
  const summary = await run();
  expect(summary.events).toBe(3);
  expect(telemetry.counted('EventsMissing')).toBe(3);
});

test('a queue without an end to its receives, or that is gone, does not keep it from the others', async () => {
  const { rig, telemetry, run } = scheduled();
  rig.atLeastMs.set('payments-queue', Number.POSITIVE_INFINITY);
  await rig.event(20 * MINUTE_MS);
  await rig.event(HOUR_MS + 1);
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(1);
  rig.deps.ages.atLeastMs = async () => {
    throw new Error('no such queue');
  };
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(1);
});

test('it emits how many rows were changed by hand', async () => {
  const { rig, telemetry, run } = scheduled();
  const leaseUntil = rig.clock.now() + 1_500 * DAY_MS;
  const { eventId } = await rig.event(20 * MINUTE_MS, {
    status: 'PENDING',
    leaseUntil,
    publishedAt: undefined,
  });
  expect(await run()).toMatchObject({ pending: 1, changedRows: 1 });
  expect(telemetry.counted('RowsChanged')).toBe(1);
  expect(JSON.stringify(telemetry.lines())).toContain(eventId);
});

test('it emits how many rows cannot be read, names them, and still finds what is missing', async () => {
  const { rig, telemetry, run, warnings } = scheduled();
  const { eventId } = await rig.event(20 * MINUTE_MS);
  await rig.inbox('payments', eventId, 'PARKED' as never);
  const newer = await rig.event(20 * MINUTE_MS, { schema: 2 });
  await rig.event(20 * MINUTE_MS);
  const summary = await run();
  expect(telemetry.counted('RowsUnreadable')).toBe(2);
  expect(telemetry.counted('EventsMissing')).toBe(1);
  expect(summary).toMatchObject({ unreadable: 1, unreadableRows: 2, missing: 1 });
  const named = JSON.stringify(warnings());
  expect(named).toContain(eventId);
  expect(named).toContain(newer.eventId);
});

test('it does not alarm for events that a queue may hold, and does not call them accounted for', async () => {
  const { rig, telemetry, run, warnings } = scheduled();
  for (let i = 0; i < 3; i += 1) await rig.event(20 * MINUTE_MS);
  rig.queues.holds.set('payments-queue', 2);
  const summary = await run();
  expect(telemetry.counted('EventsMissing')).toBe(0);
  expect(summary).toMatchObject({
    missing: 0,
    inconclusive: 3,
    consumers: { payments: { inconclusive: 3 } },
  });
  expect(warnings()).toMatchObject([
    { extra: { inconclusive: [{ consumer: 'payments', events: 3, queued: 2, missingAtLeast: 1 }] } },
  ]);
});

test('it names 50 of a long list, and how many there are', async () => {
  const { rig, run, warnings } = scheduled();
  for (let i = 0; i < 60; i += 1) await rig.event(20 * MINUTE_MS);
  await run();
  const [{ extra } = { extra: undefined }] = warnings();
  expect(extra).toMatchObject({ count: 60 });
  expect((extra as { missing: unknown[] }).missing).toHaveLength(50);
});

test('it ends 10 s before its function is stopped, so that its results are still sent', async () => {
  const { handler } = scheduled();
  await expect(handler({}, { getRemainingTimeInMillis: () => 10_000 })).resolves.toMatchObject({
    incomplete: 1,
  });
  await expect(handler({}, { getRemainingTimeInMillis: () => 10_001 })).resolves.toMatchObject({
    incomplete: 0,
  });
});

describe('the deliveries that it emits', () => {
  /** What CloudWatch shows: the Maximum of each period, and the sum of these over time. */
  function shown(sent: readonly Sent[], name: string): number {
    const highest = new Map<number, number>();
    for (const { at, value } of sent.filter((one) => one.name === name))
      highest.set(at, Math.max(value, highest.get(at) ?? 0));
    return [...highest.values()].reduce((sum, value) => sum + value, 0);
  }

  test.each([
    ['on time', () => EVERY_MS],
    ['now early, now late', (run: number) => EVERY_MS + (run % 2 === 0 ? 1 : -1) * 2 * MINUTE_MS],
    ['twice as often', () => EVERY_MS / 2],
    ['every second time', () => 2 * EVERY_MS],
  ])('count each event once, although runs overlap: %s', async (_when, intervalMs) => {
    const { rig, run, sent } = scheduled();
    const start = rig.clock.now();
    let runs = 0;
    let nextRunAt = start;
    // An event each minute for two hours. Every tenth is processed an hour late; the first one is not processed.
    for (let minute = 0; minute < 200; minute += 1) {
      if (minute < 120) {
        const { eventId, occurredAt } = await rig.event(0);
        const processedAt = occurredAt + (minute % 10 === 9 ? HOUR_MS : 1_000);
        if (minute > 0) await rig.inbox('payments', eventId, 'PROCESSED', { processedAt });
      }
      if (rig.clock.now() >= nextRunAt) {
        await run();
        nextRunAt += intervalMs(runs);
        runs += 1;
      }
      await rig.clock.advance(MINUTE_MS);
    }
    expect(shown(sent, 'DeliveriesPublished')).toBe(120);
    expect(shown(sent, 'DeliveriesProcessed')).toBe(119);
    expect(shown(sent, 'DeliveriesWithinSlo')).toBe(119 - 12);
    const emitted = sent.filter(({ name }) => name === 'DeliveriesPublished');
    // The runs did overlap.
    expect(emitted.length).toBeGreaterThan(new Set(emitted.map(({ at }) => at)).size);
  });

  test('are only those of whole periods', async () => {
    const { rig, run, sent } = scheduled();
    await rig.clock.advance(7 * MINUTE_MS);
    // It is 12:07: the range is 11:07 to 12:02, and its whole periods are those from 11:15 to 12:00.
    for (const ago of [55, 50, 20, 6]) {
      const { eventId, occurredAt } = await rig.event(ago * MINUTE_MS);
      await rig.inbox('payments', eventId, 'PROCESSED', { processedAt: occurredAt });
    }
    await run();
    const at = (minute: number) => Date.UTC(2026, 0, 1, 11, minute);
    expect(sent.filter(({ name }) => name === 'DeliveriesPublished')).toMatchObject([
      { consumer: 'payments', at: at(15), value: 1 },
      { consumer: 'payments', at: at(45), value: 1 },
    ]);
  });

  test('are not those that the run had no time to read', async () => {
    const { rig, handler, sent } = scheduled();
    const { eventId } = await rig.event(40 * MINUTE_MS);
    await rig.inbox('payments', eventId);
    await handler({}, { getRemainingTimeInMillis: () => 10_000 });
    expect(sent).toEqual([]);
  });

  test.each([
    [30 * MINUTE_MS, 3],
    [30 * MINUTE_MS + 1, 0],
  ])(
    'are left out for an SLO of %i ms if no run can tell whether each event met it',
    async (latencyMs, metrics) => {
      const { rig, run, sent } = scheduled();
      const [entry] = rig.directory.consumers;
      Object.assign(entry ?? {}, { slo: { latencyMs, percentile: 99 } });
      const { eventId } = await rig.event(40 * MINUTE_MS);
      await rig.inbox('payments', eventId);
      await run();
      expect(sent).toHaveLength(metrics);
    },
  );
});

test('it fails loudly when the audit fails, and emits nothing', async () => {
  const { rig, telemetry, run } = scheduled();
  rig.table.query = () => Promise.reject(new Error('The table does not answer'));
  await expect(run()).rejects.toThrow('The table does not answer');
  expect(telemetry.lines()).toEqual([]);
});
