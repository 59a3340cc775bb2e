import { describe, expect, test } from 'vitest';
import { DAY_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import type { InboxRow } from '../../../../../lambdas/runtime/store/inbox-row.ts';
import { inboxHistoryKey, inboxKey } from '../../../../../lambdas/runtime/store/keys.ts';
import { startedLongAgo } from '../../../../support/runtime-rig.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;

describe('an event whose row waits for a message that is overdue', () => {
  const overdue = [
    ['failed', { status: 'FAILED', retryAt: Date.UTC(2026, 0, 1, 11, 50) }],
    ['inFlight', { status: 'PROCESSING', leaseUntil: 0, endsBy: Date.UTC(2026, 0, 1, 11, 50) }],
  ] as const;

  async function begun(row: Partial<InboxRow>) {
    const rig = auditRig([consumerEntry('payments')]);
    const event = await rig.event(LONG_AGO);
    const write = (more: Partial<InboxRow>) =>
      rig.table.write({
        Put: {
          Item: {
            ...inboxKey('payments', event.eventId),
            schema: 1,
            status: row.status ?? 'FAILED',
            fence: 'f',
            attempts: 1,
            ...row,
            ...more,
          },
        },
      });
    await write({});
    return { ...rig, event, write };
  }

  test.each(overdue)(
    'is missing when nothing is left of the message: the queue was purged (%s)',
    async (_, row) => {
      const { run, repair, queues, event } = await begun(row);
      const report = await run();
      expect(report.consumers.payments).toMatchObject({ expected: 1, missing: 1 });
      expect(report.missing).toMatchObject([{ eventId: event.eventId, consumer: 'payments' }]);
      expect((await repair(report)).sent).toHaveLength(1);
      expect(queues.sent).toHaveLength(1);
    },
  );

  test.each(overdue)(
    'is inconclusive while the queue holds anything, however young that is (%s)',
    async (_, row) => {
      const { run, queues, ages, atLeastMs, clock } = await begun(row);
      queues.holds.set('payments-queue', 1);
      ages.set('payments-queue', clock.now());
      atLeastMs.set('payments-queue', MINUTE_MS);
      const report = await run();
      expect(report.consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
      // SQS's age leaves it out, so no time makes it certain.
      expect(report.inconclusive).toEqual([
        { consumer: 'payments', events: 1, queued: 1, missingAtLeast: 0, conclusiveAt: null },
      ]);
    },
  );

  test.each(overdue)('is %s until it is overdue for as long as the grace', async (standing, row) => {
    const { run } = await begun(row);
    const report = await run({ graceMs: 11 * MINUTE_MS });
    expect(report.consumers.payments).toMatchObject({ [standing]: 1, missing: 0 });
  });

  test('counts as a dead letter if there is one, and as processed if it was processed meanwhile', async () => {
    const { run, letter, event, write, queues } = await begun(overdue[0][1]);
    letter('payments-dead', event);
    expect((await run()).consumers.payments).toMatchObject({ deadLetters: 1, missing: 0 });
    queues.deadLetters.clear();
    queues.onDepth = async () => {
      await write({ status: 'PROCESSED' });
    };
    expect((await run()).consumers.payments).toMatchObject({ processed: 1, missing: 0 });
  });
});

describe('an event without an inbox row', () => {
  test('is missing if the queue is empty and it has no dead letter: for that consumer only', async () => {
    const rig = auditRig();
    const { eventId } = await rig.event(LONG_AGO);
    await rig.inbox('inventory', eventId);
    const report = await rig.run();
    const publishedAt = rig.clock.now() - LONG_AGO;
    const resentAt = null;
    expect(report.missing).toEqual([
      { eventId, consumer: 'payments', type: 'OrderPlaced', publishedAt, resentAt, row: null },
    ]);
    expect(report.consumers).toMatchObject({
      payments: { missing: 1 },
      inventory: { processed: 1, missing: 0 },
    });
  });

  test('is missing at every consumer if there is no bus: EventBridge accepted it and dropped it', async () => {
    const rig = auditRig();
    await rig.event(LONG_AGO);
    rig.rules.clear();
    const report = await rig.run();
    expect(report.missing.map(({ consumer }) => consumer).sort()).toEqual(['inventory', 'payments']);
    expect(report.drift.map(({ consumer, problem }) => `${consumer}: ${problem}`)).toEqual([
      'payments: no-rule',
      'inventory: no-rule',
    ]);
  });

  test.each(['payments-dead', 'payments-undelivered'])(
    'counts as a dead letter if there is one in %s',
    async (queue) => {
      const rig = auditRig([consumerEntry('payments')]);
      rig.letter(queue, await rig.event(LONG_AGO));
      rig.letter(queue, await rig.event(0));
      const report = await rig.run();
      expect(report.consumers.payments).toMatchObject({ deadLetters: 2, missing: 0, waiting: 0 });
      expect(rig.queues.received, 'dead letters that are still hidden').toEqual(new Set());
    },
  );

  test('is waiting while it was published less than the grace ago', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(4 * MINUTE_MS);
    expect((await rig.run()).consumers.payments).toMatchObject({ waiting: 1, missing: 0 });
    expect((await rig.run({ graceMs: MINUTE_MS })).consumers.payments).toMatchObject({
      waiting: 0,
      missing: 1,
    });
  });

  test('is inconclusive while the queue holds anything that could be it', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 1);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
  });

  test('is missing when all that the queue holds is younger', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 1);
    rig.ages.set('payments-queue', rig.clock.now() - LONG_AGO + 2 * MINUTE_MS);
    expect((await rig.run()).consumers.payments).toMatchObject({ missing: 1 });
    rig.ages.set('payments-queue', rig.clock.now() - LONG_AGO);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
  });

  test('is waiting if another receiver holds dead letters that could be it, and is reported as such', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    const other = rig.letter('payments-dead', await rig.event(LONG_AGO));
    rig.queues.hidden.add(other.messageId);
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ waiting: 2, missing: 0 });
    expect(report.incomplete).toEqual([expect.stringContaining('Some dead letters of payments')]);
  });

  test('is inconclusive when it may be the oldest message of the queue, allowing for clock differences', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 1);
    rig.ages.set('payments-queue', rig.clock.now() - LONG_AGO + 30_000);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
    rig.ages.set('payments-queue', rig.clock.now() - LONG_AGO + 90_000);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 0, missing: 1 });
  });

  test('is inconclusive while a message of the queue is in flight', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO);
    const { depth } = rig.queues;
    rig.queues.depth = async (url) => ({ ...(await depth(url)), inFlight: url === 'payments-queue' ? 1 : 0 });
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
  });

  test('is inconclusive when it became a dead letter after the dead letters were read', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const event = await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 1);
    rig.queues.onDepth = async (url) => {
      if (url !== 'payments-undelivered') return;
      rig.queues.holds.clear();
      rig.letter('payments-dead', event);
    };
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
  });

  test('has the state of a row that was written meanwhile', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const { eventId } = await rig.event(LONG_AGO);
    let looks = 0;
    rig.queues.onDepth = async (url) => {
      if (url === 'payments-queue') looks += 1;
      // The first look is for drift, the second before the dead letters, the third after them.
      if (url === 'payments-queue' && looks === 3) await rig.inbox('payments', eventId);
    };
    expect((await rig.run()).consumers.payments).toMatchObject({ processed: 1, missing: 0 });
    expect(looks).toBe(3);
  });

  test('has the state of a row that only a strongly consistent read returns', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const { eventId } = await rig.event(LONG_AGO);
    await rig.inbox('payments', eventId);
    const { get } = rig.table;
    const table = { ...rig.table };
    table.get = async (key, options) => (options?.consistent === true ? get(key, options) : undefined);
    table.getEach = async (keys) => keys.map(() => undefined);
    rig.deps.table = table;
    expect((await rig.run()).consumers.payments).toMatchObject({ processed: 1, missing: 0 });
  });

  test('is inconclusive when it was redriven in between', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    rig.letter('payments-dead', await rig.event(LONG_AGO));
    rig.queues.onDepth = async (url) => {
      if (url !== 'payments-dead') return;
      rig.queues.deadLetters.clear();
      rig.queues.holds.set('payments-queue', 1);
    };
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 0 });
  });

  test('is inconclusive, not accounted for, when its queue was purged and holds new messages since', async () => {
    const rig = auditRig();
    for (let i = 0; i < 5; i += 1) await rig.event(LONG_AGO);
    const fresh = await rig.event(MINUTE_MS);
    for (const name of ['payments', 'inventory']) rig.queues.holds.set(`${name}-queue`, 3);
    await rig.inbox('inventory', fresh.eventId);
    rig.queues.holds.delete('inventory-queue');
    const report = await rig.run();
    expect(report.consumers).toMatchObject({
      payments: { waiting: 1, inconclusive: 5, missing: 0 },
      inventory: { processed: 1, inconclusive: 0, missing: 5 },
    });
    // Three messages cannot be five events.
    expect(report.inconclusive).toEqual([
      { consumer: 'payments', events: 5, queued: 3, missingAtLeast: 2, conclusiveAt: null },
    ]);
    rig.queues.holds.clear();
    const after = await rig.run();
    expect(after).toMatchObject({ inconclusive: [] });
    expect(after.consumers.payments).toMatchObject({ missing: 5 });
  });

  test('is inconclusive until all that the queue may hold is younger: the report names the time', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(LONG_AGO + MINUTE_MS);
    await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 9);
    const blindMs = 30 * MINUTE_MS;
    rig.ages.set('payments-queue', rig.clock.now() - blindMs);
    rig.atLeastMs.set('payments-queue', blindMs);
    const [doubt] = (await rig.run()).inconclusive;
    expect(doubt).toMatchObject({ events: 2, missingAtLeast: 0 });
    const waitMs = (doubt?.conclusiveAt ?? 0) - rig.clock.now();
    expect(waitMs).toBe(11 * MINUTE_MS);
    await rig.clock.advance(waitMs);
    rig.ages.set('payments-queue', rig.clock.now() - blindMs);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 1, missing: 1 });
    await rig.clock.advance(1);
    rig.ages.set('payments-queue', rig.clock.now() - blindMs);
    expect((await rig.run()).consumers.payments).toMatchObject({ inconclusive: 0, missing: 2 });
  });

  test('is unproven, not inconclusive, if nothing proves that it needs a row, whatever the queue holds', async () => {
    const rig = auditRig([consumerEntry('payments', { changedAt: Date.UTC(2026, 0, 1, 11, 55) })]);
    await rig.event(LONG_AGO);
    rig.queues.holds.set('payments-queue', 1);
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ unproven: 1, inconclusive: 0 });
    expect(report.inconclusive).toEqual([]);
  });

  test('is unproven when the consumer was declared otherwise at the time', async () => {
    const rig = auditRig([consumerEntry('payments', { changedAt: Date.UTC(2026, 0, 1, 11, 45) })]);
    await rig.event(LONG_AGO);
    await rig.event(15 * MINUTE_MS - 59_999); // a changed rule takes effect a minute later
    const late = await rig.event(10 * MINUTE_MS);
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ unproven: 2, missing: 1 });
    expect(report.missing.map(({ eventId }) => eventId)).toEqual([late.eventId]);
    expect((await rig.run({ earlier: true })).consumers.payments).toMatchObject({ unproven: 0, missing: 3 });
  });

  test('is unproven when its row may have expired, also when earlier ones are asked for', async () => {
    const rig = auditRig([consumerEntry('payments', { inboxRetentionDays: 2 })]);
    await startedLongAgo(rig.table, 'payments', 2);
    const now = rig.clock.now();
    await rig.event(2 * DAY_MS);
    await rig.event(2 * DAY_MS - 1);
    const range = { since: now - 2 * DAY_MS, until: now - 2 * DAY_MS + MINUTE_MS, earlier: true };
    expect((await rig.run(range)).consumers.payments).toMatchObject({ unproven: 1, missing: 1 });
  });

  test('is missing until a retention after the first start of its consumer, before which no row can have expired', async () => {
    const rig = auditRig([consumerEntry('payments', { inboxRetentionDays: 2 })]);
    const now = rig.clock.now();
    const history = (since: number) =>
      rig.table.write({
        Put: { Item: { ...inboxHistoryKey('payments'), retentions: [{ days: 2, since }] } },
      });
    await history(now - 2 * DAY_MS + 1);
    await rig.event(30 * DAY_MS);
    const range = { since: now - 30 * DAY_MS, until: now - 29 * DAY_MS, earlier: true };
    expect((await rig.run(range)).consumers.payments).toMatchObject({ unproven: 0, missing: 1 });
    await history(now - 2 * DAY_MS);
    expect((await rig.run(range)).consumers.payments).toMatchObject({ unproven: 1, missing: 0 });
  });

  test('is unproven when its row may have expired under a shorter retention than today’s', async () => {
    const rig = auditRig([consumerEntry('payments', { inboxRetentionDays: 35 })]);
    const now = rig.clock.now();
    const retentions = [
      { days: 2, since: 0 },
      { days: 35, since: now - DAY_MS },
    ];
    await rig.table.write({ Put: { Item: { ...inboxHistoryKey('payments'), retentions } } });
    await rig.event(3 * DAY_MS);
    const range = { since: now - 4 * DAY_MS, until: now - 2 * DAY_MS };
    expect((await rig.run(range)).consumers.payments).toMatchObject({ unproven: 1, missing: 0 });
  });
});
