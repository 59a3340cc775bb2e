import { describe, expect, test, vi } from 'vitest';
import { MINUTE_MS } from '../../../../../lambdas/runtime/base/units.ts';
import { createLedger } from '../../../../../lambdas/runtime/operations/audit/audit-ledger.ts';
import { inboxKey, SWEEP_STATE_KEY } from '../../../../../lambdas/runtime/store/keys.ts';
import { auditRig, consumerEntry, SHARDS } from './audit-rig.ts';

const LONG_AGO = 20 * MINUTE_MS;

describe('the audit accounts for every published event at every consumer', () => {
  test('the audit accounts for an event by what its inbox row says', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    for (const status of ['PROCESSED', 'PROCESSING', 'FAILED', 'REJECTED', 'DISCARDED'] as const) {
      const { eventId } = await rig.event(LONG_AGO);
      await rig.inbox('payments', eventId, status);
    }
    const report = await rig.run();
    expect(report).toMatchObject({ events: 5, published: 5, missing: [], drift: [], incomplete: [] });
    expect(report.consumers.payments).toEqual({
      expected: 5,
      processed: 1,
      inFlight: 1,
      failed: 1,
      rejected: 1,
      discarded: 1,
      unreadable: 0,
      deadLetters: 0,
      waiting: 0,
      inconclusive: 0,
      unproven: 0,
      missing: 0,
    });
  });

  test('the audit expects no delivery of events that were not published, or that a consumer does not subscribe to', async () => {
    const rig = auditRig();
    await rig.event(LONG_AGO, { status: 'PENDING' });
    await rig.event(LONG_AGO, { status: 'DEAD' });
    await rig.event(LONG_AGO, { status: 'DISCARDED' });
    await rig.event(LONG_AGO, { status: 'CANCELLED' });
    await rig.event(LONG_AGO, { type: 'OrderSeen' });
    await rig.event(LONG_AGO, { source: 'somebody-else' });
    const report = await rig.run();
    expect(report).toMatchObject({
      events: 6,
      published: 2,
      pending: 1,
      dead: 1,
      discarded: 1,
      cancelled: 1,
      unreadable: 0,
    });
    expect(report.consumers).toMatchObject({ payments: { expected: 0 }, inventory: { expected: 0 } });
  });

  test('the audit expects a filtered event only where the filter matches, also before it is published', async () => {
    const filter = { country: ['CH'] };
    const events = [{ source: 'orders', type: 'OrderPlaced', filter }];
    const slo = { latencyMs: 1_000, percentile: 99 };
    const rig = auditRig([consumerEntry('payments', { events, slo }), consumerEntry('inventory', { slo })]);
    for (const status of ['PUBLISHED', 'PENDING', 'DEAD'] as const)
      for (const country of ['CH', 'AT']) await rig.event(LONG_AGO, { status }, { data: { country } });
    const report = await rig.run();
    expect(report.consumers).toMatchObject({
      payments: { expected: 1, missing: 1 },
      inventory: { expected: 2, missing: 2 },
    });
    expect(report.deliveries).toMatchObject([
      { consumer: 'inventory', published: 6 },
      { consumer: 'payments', published: 3 },
    ]);
  });

  test('the audit counts the events of a producer with more shards than the sweep, and names the command that publishes them', async () => {
    const random = (length: number) => new Uint8Array(length).fill(63);
    const rig = auditRig([consumerEntry('payments')], random);
    const until = rig.clock.now();
    await rig.event(1, { status: 'PENDING' }, {}, 64);
    const range = { since: until - 2 * 60 * MINUTE_MS, until };
    const report = await rig.run(range);
    expect(report).toMatchObject({ events: 1, pending: 1, readUntil: until });
    expect(report.incomplete).toEqual([
      expect.stringContaining('npx cdk-mailroom sweep --since 2h --shards 64'),
    ]);
    await rig.table.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 64 } } });
    await expect(rig.run(range)).resolves.toMatchObject({ events: 1, pending: 1, incomplete: [] });
  });

  test('the audit looks for higher shards in one minute of each half hour, the newest among them, and in eight at most', async () => {
    const rig = auditRig();
    const until = rig.clock.now();
    const query = vi.spyOn(rig.table, 'query');
    await rig.run({ since: until - 40 * MINUTE_MS, until });
    const probed = query.mock.calls.flatMap(([{ pk, limit }]) => (limit === 1 ? [pk] : []));
    expect(probed).toHaveLength(2 * (256 - SHARDS));
    expect(new Set(probed.map((pk) => pk.slice(0, 'OUTBOX#2026-01-01T11:59'.length)))).toEqual(
      new Set(['11:59', '11:39'].map((at) => `OUTBOX#2026-01-01T${at}`)),
    );
    query.mockClear();
    await rig.run({ since: until - 12 * 60 * MINUTE_MS, until });
    expect(query.mock.calls.filter(([{ limit }]) => limit === 1)).toHaveLength(8 * (256 - SHARDS));
  });

  test('reads only the events of its range, to the millisecond', async () => {
    const rig = auditRig();
    const now = rig.clock.now();
    for (const ago of [600_501, 600_500, 300_501, 300_500]) await rig.event(ago);
    const { events } = await rig.run({ since: now - 600_500, until: now - 300_500 });
    expect(events).toBe(2);
  });

  test('reads the inbox rows of a minute together, at all its consumers', async () => {
    const rig = auditRig();
    for (let n = 0; n < 60; n += 1) {
      const { eventId } = await rig.event(LONG_AGO);
      await rig.inbox('payments', eventId);
      await rig.inbox('inventory', eventId, n === 0 ? 'FAILED' : 'PROCESSED');
    }
    const batches: number[] = [];
    const { get, getEach } = rig.table;
    rig.deps.table = {
      ...rig.table,
      get: (key, options) => {
        if (key.PK.startsWith('INBOX#')) batches.push(1);
        return get(key, options);
      },
      getEach: (keys, options) => {
        batches.push(keys.length);
        return getEach(keys, options);
      },
    };
    const { consumers } = await rig.run();
    expect(consumers.payments).toMatchObject({ expected: 60, processed: 60 });
    expect(consumers.inventory).toMatchObject({ expected: 60, processed: 59, failed: 1 });
    expect(batches.reduce((sum, rows) => sum + rows)).toBe(120);
    expect(Math.max(...batches)).toBeLessThanOrEqual(50);
    // At most one batch of each shard's minute is not full.
    expect(batches.filter((rows) => rows < 50).length).toBeLessThanOrEqual(SHARDS);
  });

  test('reads every page of a minute', async () => {
    const rig = auditRig();
    for (let i = 0; i < 20; i += 1) await rig.event(LONG_AGO);
    const { query } = rig.table;
    rig.deps.table = { ...rig.table, query: (options) => query({ ...options, limit: 2 }) };
    expect((await rig.run()).events).toBe(20);
  });

  test('reads the shards that were in use before their number was lowered', async () => {
    const rig = auditRig();
    await rig.table.write({ Put: { Item: { ...SWEEP_STATE_KEY, schema: 1, shards: 256 } } });
    for (let i = 0; i < 20; i += 1) await rig.event(LONG_AGO, {}, {}, 256);
    expect((await rig.run()).events).toBe(20);
  });

  test('counts unreadable rows, and continues', async () => {
    const rig = auditRig();
    await rig.event(LONG_AGO, { envelope: 'no JSON' });
    await rig.event(LONG_AGO, { status: 'LOST' as never });
    await rig.event(LONG_AGO, { envelope: '{"eventId":"another"}' });
    await rig.event(LONG_AGO, { status: 'PENDING' });
    expect(await rig.run()).toMatchObject({ events: 4, pending: 1, unreadable: 3 });
  });

  test('counts unreadable inbox rows as a separate class, and names them', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const strange = [
      [{ status: 'PARKED' }, 'its "status" is "PARKED"; expected '],
      [{ status: undefined }, 'it has no "status"'],
      [{ status: 'PROCESSED', schema: 2 }, 'its "schema" is 2, and this version reads up to 1'],
      [{ status: 'PROCESSING', leaseUntil: 'soon' }, 'its "leaseUntil" is not a time in epoch milliseconds'],
    ] as const;
    const ids: string[] = [];
    for (const [row] of strange) {
      const { eventId } = await rig.event(LONG_AGO + ids.length);
      ids.unshift(eventId);
      const Item = { ...inboxKey('payments', eventId), schema: 1, fence: 'f', attempts: 1, ...row };
      await rig.table.write({ Put: { Item } });
    }
    const report = await rig.run();
    expect(report.consumers.payments).toMatchObject({ expected: 4, unreadable: 4, missing: 0, processed: 0 });
    expect(report.unreadableRows.map(({ eventId }) => eventId)).toEqual(ids.sort());
    for (const [i, [, problem]] of strange.entries()) {
      const finding = report.unreadableRows.find(({ eventId }) => eventId === ids.at(-1 - i));
      expect(finding).toMatchObject({ consumer: 'payments', problem: expect.stringContaining(problem) });
    }
  });

  test('counts a PENDING row that no sweep takes, and a row of a newer version, as unreadable', async () => {
    const rig = auditRig();
    await rig.event(LONG_AGO, { status: 'PENDING', leaseUntil: undefined as never });
    await rig.event(LONG_AGO, { schema: 2 });
    const report = await rig.run();
    expect(report).toMatchObject({ events: 2, published: 0, pending: 0, unreadable: 2 });
    expect(report.unreadableRows.map(({ consumer, problem }) => `${consumer} ${problem}`).sort()).toEqual([
      'null it has no "leaseUntil"',
      'null its "schema" is 2, and this version reads up to 1',
    ]);
  });

  test('treats a message without a lease as one that should have been redelivered', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const { eventId } = await rig.event(LONG_AGO);
    const left = { schema: 1, status: 'PROCESSING', fence: 'f', attempts: 1 };
    await rig.table.write({ Put: { Item: { ...inboxKey('payments', eventId), ...left } } });
    expect((await rig.run()).consumers.payments).toMatchObject({ missing: 1, inFlight: 0 });
    rig.queues.holds.set('payments-queue', 1);
    expect((await rig.run()).consumers.payments).toMatchObject({ missing: 0, inconclusive: 1 });
  });

  test('fails when it does not add up', () => {
    const ledger = createLedger({ ...auditRig([consumerEntry('payments')]).directory });
    ledger.expect('payments');
    expect(() => ledger.close()).toThrow(
      /^1 published events were expected at payments, but 0 were accounted for/,
    );
  });

  test('refuses a range without events in it', async () => {
    const rig = auditRig();
    await expect(rig.run({ since: 10, until: 10 })).rejects.toMatchObject({ code: 'BAD_RANGE' });
    await expect(rig.run({ since: Number.NaN })).rejects.toMatchObject({ code: 'BAD_RANGE' });
  });
});

describe('the time of an audit', () => {
  test('is bounded: it reports the range that it did not reach', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    await rig.event(50 * MINUTE_MS);
    await rig.event(MINUTE_MS);
    const { get, getEach } = rig.table;
    const late = <A extends unknown[], R>(call: (...args: A) => R) => {
      return (...args: A) => {
        rig.clock.jumpTo(rig.clock.now() + 50_000);
        return call(...args);
      };
    };
    rig.deps.table = { ...rig.table, get: late(get), getEach: late(getEach) };
    const report = await rig.run({ endsBy: rig.clock.now() + 100_000 });
    expect(report).toMatchObject({ events: 1, missing: [] });
    expect(report.consumers.payments).toMatchObject({ expected: 1, waiting: 1 });
    expect(report.incomplete).toEqual([
      'There was not enough time for all events committed from 2026-01-01T11:10Z on.',
      'There was not enough time to judge 1 events of payments.',
    ]);
  });

  test('is shared: the walk leaves time to judge the events that it found', async () => {
    const rig = auditRig([consumerEntry('payments')]);
    const { eventId } = await rig.event(55 * MINUTE_MS);
    const { query } = rig.table;
    rig.deps.table = {
      ...rig.table,
      query: (...args) => {
        rig.clock.jumpTo(rig.clock.now() + 1_000);
        return query(...args);
      },
    };
    const report = await rig.run({ endsBy: rig.clock.now() + 100_000 });
    expect(report.missing).toMatchObject([{ eventId }]);
    expect(report.incomplete).toEqual([
      expect.stringContaining('There was not enough time for all events committed'),
    ]);
  });

  test('ends when it is told to stop', async () => {
    const rig = auditRig();
    await rig.event(MINUTE_MS);
    const report = await rig.run({ signal: AbortSignal.abort() });
    expect(report.events).toBe(0);
    expect(report.incomplete).toHaveLength(1);
  });
});

describe('events that were written twice for one cause', () => {
  const cause = 'the-cause';

  test('are named', async () => {
    const rig = auditRig([]);
    const event = () => rig.event(LONG_AGO, {}, { causationId: cause, data: { total: 1 } });
    const eventIds = [(await event()).eventId, (await event()).eventId, (await event()).eventId].sort();
    expect((await rig.run()).duplicated).toEqual([
      { causationId: cause, source: 'orders', type: 'OrderPlaced', aggregateId: 'order-1', eventIds },
    ]);
  });

  test.each([
    ['another cause', {}, { causationId: 'another', data: { total: 1 } }],
    ['another aggregate', {}, { causationId: cause, aggregateId: 'order-2', data: { total: 1 } }],
    ['other data', {}, { causationId: cause, data: { total: 2 } }],
    ['another sequence', {}, { causationId: cause, data: { total: 1 }, sequence: 2 }],
    ['another type', { type: 'OrderSeen' }, { causationId: cause, data: { total: 1 } }],
    ['another source', { source: 'others' }, { causationId: cause, data: { total: 1 } }],
  ])('are not those with %s', async (_what, row, envelope) => {
    const rig = auditRig([]);
    await rig.event(LONG_AGO, {}, { causationId: cause, data: { total: 1 } });
    await rig.event(LONG_AGO, row, envelope);
    expect((await rig.run()).duplicated).toEqual([]);
  });

  test('are not those without a cause', async () => {
    const rig = auditRig([]);
    for (const _ of [1, 2]) await rig.event(LONG_AGO, {}, { data: { total: 1 } });
    expect((await rig.run()).duplicated).toEqual([]);
  });
});
