import { describe, expect, test } from 'vitest';
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../../../../lambdas/runtime/operations/audit/audit.ts';
import { minuteOf } from '../../../../../lambdas/runtime/store/event-id.ts';
import { rejectedKey } from '../../../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../../../lambdas/runtime/store/row-schema.ts';
import { auditRig, consumerEntry } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;

/** The audit of the command, which reads an hour ahead, and the pointers. */
function audited() {
  const rig = auditRig([consumerEntry('payments')]);
  const listed = {
    isRejected: async (consumer: string, eventId: string) =>
      (await rig.table.get(rejectedKey(consumer, eventId), { consistent: true })) !== undefined,
  };
  const run = () => {
    const until = rig.clock.now() + 2_000;
    const ahead = Array.from({ length: 60 }, (_, i) => minuteOf(until + (i + 1) * MINUTE_MS));
    const range = { since: until - HOUR_MS, until, ahead };
    return createAudit({ ...rig.deps, listed }).run(range);
  };
  return { ...rig, listed, audit: run };
}

describe('the audit lists an event', () => {
  test('that is leased until a time that no relay sets, and no other', async () => {
    const { event, audit, clock } = audited();
    const leased = (inMs: number) => event(LONG_AGO, { status: 'PENDING', leaseUntil: clock.now() + inMs });
    const { eventId } = await leased(21 * MINUTE_MS);
    await leased(19 * MINUTE_MS);
    await leased(-MINUTE_MS);
    await event(LONG_AGO, { leaseUntil: clock.now() + DAY_MS });
    const { changedRows } = await audit();
    const until = clock.now() + 21 * MINUTE_MS;
    expect(changedRows).toEqual([
      { kind: 'held', eventId, consumer: null, type: 'OrderPlaced', until, store: null },
    ]);
  });

  test('that is dated in the future, and neither counts it nor one that is scheduled or a minute ahead', async () => {
    const { event, audit, clock } = audited();
    const { eventId } = await event(-40 * MINUTE_MS, { status: 'PENDING' });
    await event(-59_000, { status: 'PENDING' });
    await event(-40 * MINUTE_MS, { status: 'PENDING', dueAt: clock.now() + 40 * MINUTE_MS });
    await event(-40 * MINUTE_MS, { status: 'PUBLISHED' });
    const { changedRows, events } = await audit();
    expect(changedRows).toMatchObject([{ kind: 'ahead', eventId, until: clock.now() + 40 * MINUTE_MS }]);
    expect(events).toBe(0);
  });

  test('once, if its minute is read in the range and after it', async () => {
    const { event, deps, clock } = audited();
    const { eventId } = await event(LONG_AGO, { status: 'PENDING', leaseUntil: clock.now() + DAY_MS });
    const range = {
      since: clock.now() - HOUR_MS,
      until: clock.now(),
      ahead: [minuteOf(clock.now() - LONG_AGO)],
    };
    const { changedRows } = await createAudit(deps).run(range);
    expect(changedRows.map((row) => row.eventId)).toEqual([eventId]);
  });

  test('unless its source is undeclared, which has its own finding', async () => {
    const { event, deps, directory, clock } = audited();
    await event(LONG_AGO, { status: 'PENDING', leaseUntil: clock.now() + DAY_MS, source: 'strangers' });
    const mailroom = { ...directory.mailroom, sources: ['orders'] };
    const audit = createAudit({ ...deps, directory: { ...directory, mailroom } });
    expect(await audit.run({ since: clock.now() - HOUR_MS, until: clock.now() })).toMatchObject({
      changedRows: [],
    });
  });
});

describe('a rejected message without its pointer', () => {
  test('is listed, one with its pointer is not', async () => {
    const { event, inbox, audit, table } = audited();
    const [lost, kept] = [await event(LONG_AGO), await event(LONG_AGO)];
    for (const { eventId } of [lost, kept])
      await inbox('payments', eventId, 'REJECTED', { type: 'OrderPlaced' });
    await table.write({ Put: { Item: { ...rejectedKey('payments', kept.eventId), schema: SCHEMA } } });
    const { changedRows } = await audit();
    expect(changedRows).toEqual([
      {
        kind: 'unlisted',
        eventId: lost.eventId,
        consumer: 'payments',
        type: 'OrderPlaced',
        until: null,
        store: null,
      },
    ]);
  });

  test('is not found if a redrive took it up after the walk', async () => {
    const { event, inbox, deps, clock, listed } = audited();
    const { eventId } = await event(LONG_AGO);
    await inbox('payments', eventId, 'REJECTED');
    const isRejected = async (...message: [string, string]) => {
      await inbox('payments', eventId, 'REJECTED', { fence: 'rejected again' });
      return listed.isRejected(...message);
    };
    const audit = createAudit({ ...deps, listed: { isRejected } });
    expect(await audit.run({ since: clock.now() - HOUR_MS, until: clock.now() })).toMatchObject({
      changedRows: [],
    });
  });

  test('is not looked for without the pointers', async () => {
    const { event, inbox, run } = audited();
    const { eventId } = await event(LONG_AGO);
    await inbox('payments', eventId, 'REJECTED');
    expect((await run()).changedRows).toEqual([]);
  });
});

describe('a failed message', () => {
  test.each([
    ['without a time', undefined],
    ['of 2031', Date.UTC(2031, 0)],
  ])('whose retry is one %s is missing once its queue is empty', async (_what, retryAt) => {
    const { event, inbox, audit, queues, clock } = audited();
    const { eventId } = await event(LONG_AGO);
    await inbox('payments', eventId, 'FAILED', { claimedAt: clock.now() - LONG_AGO, retryAt });
    queues.holds.set('payments-queue', 1);
    expect(await audit()).toMatchObject({ missing: [], consumers: { payments: { inconclusive: 1 } } });
    queues.holds.clear();
    expect((await audit()).missing).toMatchObject([{ eventId, consumer: 'payments', row: 'FAILED' }]);
  });

  test('is left alone within the longest retry, and just after its claim', async () => {
    const { event, inbox, audit, clock } = audited();
    const waiting = { claimedAt: clock.now() - LONG_AGO, retryAt: clock.now() + 12 * HOUR_MS };
    const recent = { claimedAt: clock.now() - MINUTE_MS };
    for (const more of [waiting, recent])
      await inbox('payments', (await event(LONG_AGO)).eventId, 'FAILED', more);
    expect(await audit()).toMatchObject({ missing: [], consumers: { payments: { failed: 2 } } });
  });
});
