import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { auditFindings, auditJson, auditText } from '../../../cli/reports/audit/audit-text.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../../lambdas/runtime/operations/audit/audit.ts';
import { minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import { unwrapped } from '../../support/captured-io.ts';
import { auditRig, consumerEntry } from '../runtime/operations/audit/audit-rig.ts';
import { countedBytes, review } from './support/captured-output.ts';

const commands = {
  repair: 'npx cdk-mailroom audit --repair',
  apply: 'npx cdk-mailroom audit --repair --apply',
  doctor: 'npx cdk-mailroom doctor',
  restore: ['npx cdk deploy mailroom-dev --revert-drift'],
  recheck: { at: Date.UTC(2026, 0, 1, 12, 4, 1), command: 'npx cdk-mailroom audit --since 75m' },
};
const NO_ROWS = { repaired: [], unrepaired: [] };
const place = { stack: 'mailroom-dev', account: '111122223333', region: 'eu-west-1' };

/** An audit of five events that one consumer never received, and whose queue holds messages. */
async function lost(queued: number) {
  const rig = auditRig([consumerEntry('payments')], countedBytes());
  for (let i = 0; i < 5; i += 1) await rig.event(20 * MINUTE_MS);
  rig.queues.holds.set('payments-queue', queued);
  return { rig, report: await rig.run() };
}

test('an audit that cannot tell says so, how certain it is, and what to run when', async () => {
  const { report } = await lost(3);
  expect(auditFindings(report)).toEqual(['5 inconclusive (at least 2 missing)']);
  await review('audit-inconclusive', `$ mailroom audit\n\n${auditText({ report }, commands)}\n`);
});

test('what differs from its declaration is a finding', async () => {
  const rig = auditRig([consumerEntry('payments')]);
  for (const [name, rule] of rig.rules) rig.rules.set(name, { ...rule, enabled: false });
  const report = await rig.run();
  expect(auditFindings(report)).toEqual(['payments: its rule is disabled']);
  expect(report.drift).toHaveLength(1);
});

test('a cancelled event is final: it is counted, and neither a finding nor late where there is an SLO', async () => {
  const slo = { latencyMs: 1_000, percentile: 99 };
  const rig = auditRig([consumerEntry('payments', { slo })]);
  const now = rig.clock.now();
  await rig.event(20 * MINUTE_MS, { status: 'CANCELLED', dueAt: now - 20 * MINUTE_MS });
  // Due in 1 s, within the range of the command, which ends 2 s ahead.
  await rig.event(-1_000, { status: 'PENDING', dueAt: now + 1_000 });
  const report = await rig.run({ until: now + 2_000 });
  expect(report).toMatchObject({ events: 2, cancelled: 1, pending: 1, deliveries: [], missing: [] });
  expect(auditFindings(report)).toEqual([]);
});

test('an event within the grace period is neither a finding nor accounted for', async () => {
  const rig = auditRig([consumerEntry('payments')], countedBytes());
  await rig.event(MINUTE_MS);
  const report = await rig.run();
  expect(auditFindings(report)).toEqual([]);
  await review('audit-too-recent', `$ mailroom audit\n\n${auditText({ report }, commands)}\n`);
});

test('it claims no loss while the queue can hold them all, and names the time that makes it certain', async () => {
  const { rig } = await lost(5);
  rig.ages.set('payments-queue', rig.clock.now() - 30 * MINUTE_MS);
  rig.atLeastMs.set('payments-queue', 30 * MINUTE_MS);
  const report = await rig.run();
  expect(auditFindings(report)).toEqual(['5 inconclusive']);
  await review('audit-inconclusive-until', `$ mailroom audit\n\n${auditText({ report }, commands)}\n`);
});

test('the plan of a repair begins with stack, account and region, and says what it sends, what not, and why', async () => {
  const { report } = await lost(0);
  const [first, ...events] = report.missing;
  if (first === undefined) throw new Error('Nothing is missing');
  const unsent = [{ ...first, why: 'its outbox row has expired, and its payload with it' }];
  const inconclusive = (await lost(3)).report.inconclusive;
  const result = {
    report: { ...report, inconclusive },
    repair: { applied: false, place, events, unsent, rows: NO_ROWS },
  };
  await review('audit-repair-plan', `$ mailroom audit --repair\n\n${auditText(result, commands)}\n`);
});

test('a repair that sent all says so; one that left something does not', async () => {
  const { report } = await lost(0);
  const repair = { applied: true, place, events: report.missing, unsent: [], rows: NO_ROWS };
  const all = { report: { ...report, repaired: 5 }, repair };
  expect(auditFindings(all.report)).toEqual([]);
  await review('audit-repaired', `$ mailroom audit --repair --apply\n\n${auditText(all, commands)}\n`);
  expect(auditFindings({ ...report, repaired: 4 })).toEqual(['1 missing']);
});

test('rows that were changed by hand are findings, each with its repair', async () => {
  const rig = auditRig([consumerEntry('payments')], countedBytes());
  const now = rig.clock.now();
  const held = { status: 'PENDING', leaseUntil: Date.UTC(2031, 0) } as const;
  for (let number = 0; number < 2; number += 1) await rig.event(20 * MINUTE_MS, held);
  await rig.event(-40 * MINUTE_MS, { status: 'PENDING' });
  const { eventId } = await rig.event(10 * MINUTE_MS);
  await rig.inbox('payments', eventId, 'REJECTED', { type: 'OrderPlaced' });
  const ahead = [minuteOf(now + 40 * MINUTE_MS)];
  const audit = createAudit({ ...rig.deps, listed: { isRejected: async () => false } });
  const report = await audit.run({ since: now - 60 * MINUTE_MS, until: now + 2_000, ahead });
  expect(auditFindings(report)).toEqual(['4 changed by hand']);
  await review('audit-changed-rows', `$ mailroom audit\n\n${auditText({ report }, commands)}\n`);
  const [first, ...repaired] = report.changedRows;
  if (first === undefined) throw new Error('Nothing was changed');
  const unrepaired = [{ ...first, why: 'it has changed since the audit read it' }];
  for (const applied of [false, true]) {
    const rows = { repaired, unrepaired };
    const repair = { applied, place, events: [], unsent: [], rows };
    const result = { report: { ...report, repairedRows: applied ? repaired.length : 0 }, repair };
    const name = applied ? 'audit-changed-rows-repaired' : 'audit-changed-rows-plan';
    await review(name, `$ mailroom audit --repair\n\n${auditText(result, commands)}\n`);
    expect(auditFindings(result.report)).toEqual([`${applied ? 1 : 4} changed by hand`]);
  }
  expect(auditJson({ report: { ...report, repairedRows: 4 } }).verdict).toBe(
    '4 changed by hand, now put right',
  );
});

test('the document has the verdict of the text', async () => {
  const { report } = await lost(0);
  expect(auditJson({ report }).verdict).toBe('5 missing');
  expect(auditJson({ report: { ...report, repaired: 5 } }).verdict).toBe('5 missing, now sent');
});

/** An audit of events that payments processed in the given times; one more event per day was rejected by it. */
async function delivered(tookMs: readonly number[], percentile: number) {
  const rig = auditRig([
    consumerEntry('payments', { slo: { latencyMs: 30_000, percentile } }),
    consumerEntry('inventory'),
  ]);
  for (const agoMs of [60 * MINUTE_MS, 13 * 60 * MINUTE_MS]) {
    const rejected = await rig.event(agoMs);
    await rig.inbox('payments', rejected.eventId, 'REJECTED');
    for (const ms of tookMs) {
      const { eventId, occurredAt } = await rig.event(agoMs);
      for (const consumer of ['payments', 'inventory'])
        await rig.inbox(consumer, eventId, 'PROCESSED', { processedAt: occurredAt + ms });
    }
  }
  return rig.run({ since: rig.clock.now() - 14 * 60 * MINUTE_MS, earlier: true });
}

test('the deliveries of each consumer are shown by UTC day, with what is left of its error budget', async () => {
  const report = await delivered([1_000, 30_000, 30_001], 75);
  const _text = stripVTControlCharacters(auditText({ report, byDay: true }, commands));
  expect(auditText({ report }, commands)).not.toContain('Deliveries');
  expect(auditJson({ report }).errorBudgets).toMatchObject([{ missed: 4, allowed: 2, left: -2 }]);
  const generous = await delivered([1_000], 50);
  expect(auditJson({ report: generous }).errorBudgets).toMatchObject([{ missed: 2, allowed: 2, left: 0 }]);
});

test('a rate is rounded down: nothing less than all is 100 %', async () => {
  const report = await delivered([1_000], 99);
  const [first] = report.deliveries;
  const deliveries = first === undefined ? [] : [{ ...first, published: 1_000_000, processed: 999_999 }];
  expect(auditText({ report: { ...report, deliveries }, byDay: true }, commands)).toContain('99.99 %');
  expect(auditText({ report: { ...report, deliveries: [] }, byDay: true }, commands)).toContain(
    'No deliveries to count.',
  );
});

test('the document has a row per consumer and day, with its rate', async () => {
  const report = await delivered([1_000, 40_000, 1_000], 99);
  const { deliveries, errorBudgets } = auditJson({ report });
  expect(deliveries).toContainEqual({
    consumer: 'payments',
    day: '2025-12-31',
    published: 4,
    processed: 3,
    withinSlo: 2,
    rate: 0.75,
  });
  expect(deliveries).toHaveLength(4);
  expect(errorBudgets).toEqual([
    {
      consumer: 'payments',
      latencyMs: 30_000,
      percentile: 99,
      published: 8,
      allowed: 0,
      missed: 4,
      left: -4,
    },
  ]);
});

test('an event that is missing again after a repair points at what loses it, before it is sent once more', async () => {
  const rig = auditRig([consumerEntry('payments')]);
  await rig.event(20 * MINUTE_MS);
  expect(auditText({ report: await rig.run() }, commands)).not.toContain('doctor');
  await rig.repair(await rig.run());
  await rig.clock.advance(20 * MINUTE_MS);
  const text = unwrapped(auditText({ report: await rig.run() }, commands));
  expect(text).toMatch(/published \S+ \S+, sent again \S+ \S+/);
  expect(text).toContain('1 of them missing again after a repair, so what loses them is still there.');
  expect(text.indexOf('npx cdk-mailroom doctor')).toBeLessThan(
    text.indexOf('npx cdk-mailroom audit --repair'),
  );
});
