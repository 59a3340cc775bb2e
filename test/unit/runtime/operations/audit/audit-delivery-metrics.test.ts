import { expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { createAuditHandler } from '../../../../../lambdas/runtime/operations/audit/audit-handler.ts';
import { outboxKeyOf } from '../../../../../lambdas/runtime/store/event-id.ts';
import { lambdaContext, memoryTelemetry } from '../../../../../testing/index.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const SLO = { latencyMs: 5 * MINUTE_MS, percentile: 99 };

/** Scheduled audits whose metrics are read with the statistic Maximum over one period, and added. */
function audits(sinceMs: number, everyMs: number) {
  const rig = auditRig([consumerEntry('payments', { slo: SLO })]);
  const maxima = new Map<string, number>();
  const run = createAuditHandler({
    ...rig.deps,
    directory: async () => rig.directory,
    config: { tableName: rig.table.name, sinceMs, everyMs },
    telemetry: memoryTelemetry(),
    deliveryTelemetry: (_consumer, at) => ({
      gauge: (name, value) => {
        const key = `${name} ${at}`;
        maxima.set(key, Math.max(value, maxima.get(key) ?? 0));
      },
      duration: () => {},
      flush: () => {},
    }),
  });
  const sum = (name: string) =>
    [...maxima].reduce((total, [key, value]) => (key.startsWith(`${name} `) ? total + value : total), 0);
  const { clock } = rig;
  /** Audits on schedule, `minutes` long. */
  async function pass(
    minutes: number,
    runs: (index: number) => boolean,
    each: (minute: number) => Promise<void>,
  ) {
    for (let minute = 0; minute < minutes; minute += 1) {
      await each(minute);
      await clock.advance(MINUTE_MS);
      const index = (minute - 7) / (everyMs / MINUTE_MS);
      if (Number.isInteger(index) && runs(index)) await run({}, lambdaContext());
    }
  }
  const totals = () => ['DeliveriesPublished', 'DeliveriesProcessed', 'DeliveriesWithinSlo'].map(sum);
  return { rig, pass, totals };
}

const always = () => true;

test.each([
  ['of a consumer', 'PUBLISHED'],
  ['of the bus', 'PENDING'],
] as const)(
  'an outage %s that is longer than a run looks back misses the SLO, and its events are processed',
  async (_what, status) => {
    const { rig, pass, totals } = audits(HOUR_MS, 15 * MINUTE_MS);
    // SQS may redeliver a message for hours, so a run also reads the events of that time ago.
    rig.atLeastMs.set('payments-queue', 5.25 * HOUR_MS);
    const waiting: string[] = [];
    const isDown = (minute: number) => minute >= 60 && minute < 240;
    const process = (eventId: string, processedAt: number) =>
      rig.inbox('payments', eventId, 'PROCESSED', { processedAt });
    await pass(300, always, async (minute) => {
      if (minute === 240) {
        for (const eventId of waiting) {
          const row = await rig.table.get(outboxKeyOf(eventId), { consistent: true });
          const published = { ...row, status: 'PUBLISHED', publishedAt: rig.clock.now() };
          await rig.table.write({ Put: { Item: published as never } });
          await process(eventId, rig.clock.now());
        }
        rig.queues.holds.set('payments-queue', 0);
      }
      const event = await rig.event(0, isDown(minute) ? { status } : {});
      if (isDown(minute)) waiting.push(event.eventId);
      else await process(event.eventId, event.occurredAt + 500);
      if (isDown(minute) && status === 'PUBLISHED') rig.queues.holds.set('payments-queue', waiting.length);
    });
    await pass(12 * 60, always, async () => {});
    // Those of the last five minutes of the outage were in time.
    expect(totals()).toEqual([300, 300, 125]);
  },
);

test('a run that is left out leaves no event out, also where runs are rare', async () => {
  const { rig, pass, totals } = audits(95 * MINUTE_MS, 30 * MINUTE_MS);
  await pass(
    480,
    (index) => index !== 5,
    async () => {
      const { eventId, occurredAt } = await rig.event(0);
      await rig.inbox('payments', eventId, 'PROCESSED', { processedAt: occurredAt + 500 });
    },
  );
  await pass(90, always, async () => {});
  expect(totals()).toEqual([480, 480, 480]);
});
