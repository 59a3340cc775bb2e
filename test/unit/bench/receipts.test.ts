import { describe, expect, it } from 'vitest';
import { receiptTable } from '../../../bench/alternatives/receipts.ts';
import { measure } from '../../../bench/cost/measure.ts';
import { outboxSide, type Variant } from '../../../bench/receipts/outbox-side.ts';
import { createRelayStream } from '../../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../../lambdas/runtime/relay/relay-sweep.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { createOutbox } from '../../../lambdas/runtime/write/outbox.ts';
import { manualClock, memoryBus, memoryTable, memoryTelemetry } from '../../../testing/index.ts';
import { consumerConfig, relayConfig, ThingHappened } from '../../support/runtime-bench.ts';

const MARKS: Variant = { name: 'marks' };
const RECEIPTS: Variant = { name: 'receipts', bornDays: 35 };
const DAY_MS = 86_400_000;

/** An outbox and a relay in memory. */
function world(variant: Variant) {
  const clock = manualClock();
  const random = (count: number) => crypto.getRandomValues(new Uint8Array(count));
  const memory = memoryTable({ clock });
  const { bornDays } = variant;
  const table: Table = bornDays === undefined ? memory : receiptTable(memory, { clock, random, bornDays });
  const bus = memoryBus({ clock });
  const parts = { table, bus, clock, random, telemetry: memoryTelemetry() };
  const commit = async () => {
    const event = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } });
    const [envelope] = await createOutbox({ ...parts, config: consumerConfig }).commit({ events: [event] });
    return String(envelope?.eventId);
  };
  const relay = createRelayStream({ ...parts, config: relayConfig });
  const sweep = createRelaySweep({ ...parts, config: relayConfig });
  const bornAt = clock.now();
  return {
    clock,
    memory,
    table,
    commit,
    published: () => bus.published().length,
    relay: () => relay({ Records: memory.stream().filter(({ eventName }) => eventName === 'INSERT') }),
    /** Sweeps the minute in which everything here is committed. */
    sweep: () =>
      sweep.handler({ since: bornAt, until: bornAt + 60_000 }, { getRemainingTimeInMillis: () => 120_000 }),
    row: () => memory.items().find(({ PK }) => String(PK).startsWith('OUTBOX#')),
  };
}

describe('receipts instead of marks', () => {
  it.for([
    { payloadBytes: 200, batchSize: 25, marks: 5, receipts: 4.04 },
    { payloadBytes: 1_024, batchSize: 25, marks: 8, receipts: 6.04 },
    { payloadBytes: 4_096, batchSize: 25, marks: 17, receipts: 12.04 },
    { payloadBytes: 200, batchSize: 1, marks: 5, receipts: 5 },
  ])(
    'save units: $payloadBytes B in batches of $batchSize',
    async ({ payloadBytes, batchSize, ...units }) => {
      const workload = {
        events: 5 * Math.min(5, batchSize),
        payloadBytes,
        consumers: 0,
        retries: 0,
        batchSize,
      };
      expect((await measure(outboxSide(MARKS), workload)).whole.writeUnits).toBeCloseTo(units.marks);
      expect((await measure(outboxSide(RECEIPTS), workload)).whole.writeUnits).toBeCloseTo(units.receipts);
    },
  );

  it('lose an event that nobody has looked at until its row expires; marks do not', async () => {
    for (const [variant, published] of [
      [MARKS, 1],
      [RECEIPTS, 0],
    ] as const) {
      const { clock, memory, commit, sweep, published: count } = world(variant);
      await commit();
      clock.jumpTo(clock.now() + 36 * DAY_MS); // no relay, no sweep
      memory.expire();
      await sweep();
      expect(count()).toBe(published);
    }
  });

  it('keep an event that somebody has seen unpublished', async () => {
    const { clock, memory, table, commit, sweep, published, row } = world(RECEIPTS);
    await commit();
    const { PK, SK, leaseUntil } = row() ?? {};
    const key = { PK: String(PK), SK: String(SK) };
    await table.updateEach([{ key, set: { leaseUntil: 0 }, when: { status: 'PENDING', leaseUntil } }]);
    clock.jumpTo(clock.now() + 36 * DAY_MS);
    memory.expire();
    await sweep();
    expect(published()).toBe(1);
    expect(row()).toMatchObject({ status: 'PUBLISHED', publishedBy: 'sweep' });
  });

  it('leave the row PENDING; who reads the receipts too sees it PUBLISHED, and the sweep leaves it alone', async () => {
    const { clock, memory, table, commit, relay, sweep, published, row } = world(RECEIPTS);
    const eventId = await commit();
    await relay();
    const { PK, SK } = row() ?? {};
    expect(row()).toMatchObject({ status: 'PENDING' });
    expect(memory.items().filter((item) => String(item.PK).startsWith('RECEIPT#'))).toMatchObject([
      { eventIds: new Set([eventId]) },
    ]);
    expect(await table.get({ PK: String(PK), SK: String(SK) })).toMatchObject({ status: 'PUBLISHED' });
    clock.jumpTo(clock.now() + DAY_MS);
    expect(await sweep()).toMatchObject({ published: 0, pending: 0 });
    expect(published()).toBe(1);
  });

  it('do not tell the relay of a row that went DEAD meanwhile; a mark does', async () => {
    for (const [variant, ok] of [
      [MARKS, false],
      [RECEIPTS, true],
    ] as const) {
      const { memory, table, commit, row } = world(variant);
      await commit();
      const { PK, SK } = row() ?? {};
      const key = { PK: String(PK), SK: String(SK) };
      await memory.updateEach([{ key, set: { status: 'DEAD' }, when: { status: 'PENDING' } }]);
      const mark = { key, set: { status: 'PUBLISHED' }, when: { status: 'PENDING' } };
      expect(await table.updateEach([mark])).toMatchObject([{ ok }]);
    }
  });
});
