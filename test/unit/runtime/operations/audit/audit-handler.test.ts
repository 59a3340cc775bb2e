import { expect, test } from 'vitest';
import { createAuditHandler } from '../../../../../lambdas/runtime/operations/audit/audit-handler.ts';
import { lambdaContext, memoryTelemetry } from '../../../../../testing/index.ts';
import { auditRig, consumerEntry, MINUTE_MS } from './audit-rig.ts';

const HOUR_MS = 60 * MINUTE_MS;

function scheduled() {
  const rig = auditRig([consumerEntry('payments')]);
  const telemetry = memoryTelemetry();
  const handler = createAuditHandler({
    ...rig.deps,
    directory: async () => rig.directory,
    config: { tableName: rig.table.name, sinceMs: HOUR_MS },
    telemetry,
  });
  const run = () => handler({}, lambdaContext());
  const warnings = () => telemetry.lines().filter(({ level }) => level === 'warn');
  return { rig, telemetry, handler, run, warnings };
}

test('a scheduled audit emits how many are missing and doubled, and names them', async () => {
  const { rig, telemetry, run, warnings } = scheduled();
  const secret = { data: { card: '4111' }, causationId: 'cause' };
  const eventIds = [];
  for (let i = 0; i < 3; i += 1) eventIds.push((await rig.event(20 * MINUTE_MS, {}, secret)).eventId);
  await run();
  expect(telemetry.counted('EventsMissing')).toBe(3);
  expect(telemetry.counted('EventsDoubled')).toBe(2);
  expect(warnings().map(({ message }) => message)).toEqual([
    'Consumers never received these events: npx mailroom audit --repair plans to send them',
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
  expect(gauges).toEqual(['EventsMissing 0', 'EventsDoubled 0', 'RowsUnreadable 0']);
  expect(warnings()).toEqual([]);
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

test('it fails loudly when the audit fails, and emits nothing', async () => {
  const { rig, telemetry, run } = scheduled();
  rig.table.query = () => Promise.reject(new Error('The table does not answer'));
  await expect(run()).rejects.toThrow('The table does not answer');
  expect(telemetry.lines()).toEqual([]);
});
