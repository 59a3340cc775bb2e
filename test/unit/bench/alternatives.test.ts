import { describe, expect, it } from 'vitest';
import { plainConsumer, powertoolsInbox, transactionalInbox } from '../../../bench/alternatives/inboxes.ts';
import { statusIndex } from '../../../bench/alternatives/status-index.ts';
import {
  type BenchRun,
  createRun,
  type ReceivingHalf,
  type System,
} from '../../../bench/alternatives/system.ts';
import { ALTERNATIVES } from '../../../bench/alternatives/systems.ts';
import { publishPending, twoTable } from '../../../bench/alternatives/two-table.ts';
import { DOMAIN, envelope, START, type Workload } from '../../../bench/alternatives/workload.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import { itemBytes } from '../../../lambdas/runtime/store/item-size.ts';
import { manualClock } from '../../../testing/index.ts';

const WORKLOAD: Workload = { events: 12, payloadBytes: 200, consumers: 2, retries: 0, batchSize: 5 };

async function ran(system: System, workload: Partial<Workload>) {
  const aws = createMeteredAws(system.tables);
  await system.run(aws, { ...WORKLOAD, ...workload });
  return aws;
}

describe.each(ALTERNATIVES)('$name', (system) => {
  it.each([5, 12])('brings every event to every consumer once when %d of 12 fail once', async (retries) => {
    const aws = await ran(system, { retries });
    const rows = aws.items(DOMAIN.name);
    const handled = rows.filter(({ PK }) => String(PK).startsWith('HANDLED#'));
    expect(rows).toHaveLength(12 + 2 * 12);
    expect(new Set(handled.map(({ PK }) => PK)).size).toBe(2 * 12);
    expect(handled.map(({ times }) => times)).toEqual(Array(24).fill(1));

    const requests = aws.requests();
    const published = requests.filter(({ service }) => service === 'events');
    expect(published.reduce((sum, { billed }) => sum + billed, 0)).toBe(12);
    // Of each consumer, in batches of 5: all messages, and again what failed.
    const invoked = requests.filter(({ step, service }) => step === 'consume' && service === 'lambda');
    expect(invoked).toHaveLength(2 * (3 + Math.ceil(retries / 5)));
  });
});

/**
 * Write units and DynamoDB calls of one event, worked out by hand; `kb` is what the outbox row takes, in started KB. Domain
 * rows and records of an inbox take one.
 */
const BY_HAND: Record<
  string,
  (kb: number) => Record<'write' | 'relay' | 'consume', readonly [number, number]>
> = {
  // A put; a put.
  direct: () => ({ write: [1, 1], relay: [0, 0], consume: [1, 1] }),
  // A transaction counts its two rows twice, on both sides.
  'stream-only+transactional-inbox': (kb) => ({
    write: [2 + 2 * kb, 1],
    relay: [0, 0],
    consume: [2 + 2, 1],
  }),
  // And the mark.
  'two-table+transactional-inbox': (kb) => ({
    write: [2 + 2 * kb, 1],
    relay: [kb, 1],
    consume: [2 + 2, 1],
  }),
  // The index: an entry put with the row, not counted twice; left alone by the claim; deleted at the end. 8 polls.
  'status-index+transactional-inbox': (kb) => ({
    write: [2 + 2 * kb + 1, 1],
    relay: [kb + kb + 1, 8 + 2],
    consume: [2 + 2, 1],
  }),
  // The record in progress, the handler's write, the record completed.
  'status-index+powertools': (kb) => ({
    write: [2 + 2 * kb + 1, 1],
    relay: [kb + kb + 1, 8 + 2],
    consume: [1 + 1 + 1, 3],
  }),
};

/** What more an event costs that fails once at the bus and once in its consumer: write units of relay and consume. */
const RETRY_BY_HAND: Record<string, (kb: number) => readonly [relay: number, consume: number]> = {
  direct: () => [0, 0],
  'stream-only+transactional-inbox': () => [0, 0],
  // The roll-back, and a second mark.
  'two-table+transactional-inbox': (kb) => [2 * kb, 0],
  // The release, and a second claim.
  'status-index+transactional-inbox': (kb) => [2 * kb, 0],
  // And the record deleted, and put once more.
  'status-index+powertools': (kb) => [2 * kb, 2],
};

describe('what one event costs', () => {
  const cases = ALTERNATIVES.flatMap((system) =>
    [
      { payloadBytes: 200, kb: 1 },
      { payloadBytes: 1_024, kb: 2 },
      { payloadBytes: 4_096, kb: 5 },
    ].map((size) => ({ system, name: system.name, ...size })),
  );

  it.each(cases)('$name, $payloadBytes bytes', async ({ system, payloadBytes, kb }) => {
    const one = { events: 1, consumers: 1, payloadBytes };
    const units = unitsByStep(await ran(system, one));
    expect(units).toEqual(BY_HAND[system.name]?.(kb));

    const again = unitsByStep(await ran(system, { ...one, retries: 1 }));
    const more = (step: 'relay' | 'consume') => again[step][0] - units[step][0];
    expect([more('relay'), more('consume')]).toEqual(RETRY_BY_HAND[system.name]?.(kb));
  });
});

describe('a message that comes twice', () => {
  it.each<[ReceivingHalf, number]>([
    [plainConsumer, 2],
    [powertoolsInbox, 1],
    [transactionalInbox, 1],
  ])('is handled as often as its inbox lets it: $name', async (receiving, times) => {
    const aws = createMeteredAws([DOMAIN, ...receiving.tables]);
    const handle = receiving.consumer(createRun(aws, WORKLOAD), 'consumer-1');
    await handle(envelope(0, 200));
    await handle(envelope(0, 200));
    expect(aws.items(DOMAIN.name)).toEqual([expect.objectContaining({ times })]);
  });
});

describe('a relay that dies before it publishes', () => {
  const clock = manualClock(START);
  const dying = (run: BenchRun): BenchRun => ({ ...run, publish: () => Promise.reject(new Error('died')) });

  it('leaves the event to the next claim, where it is claimed under a lease', async () => {
    const aws = createMeteredAws([DOMAIN, ...statusIndex.tables], { clock });
    const run = createRun(aws, { ...WORKLOAD, events: 1 });
    await statusIndex.write(run, 0);
    await expect(statusIndex.relay?.(dying(run))).rejects.toThrow('died');
    await expect(statusIndex.relay?.(run)).rejects.toThrow('still not published');
    await clock.advance(30_001);
    await statusIndex.relay?.(run);
    expect(aws.takePublished()).toHaveLength(1);
  });

  it('loses the event where it is marked first', async () => {
    const aws = createMeteredAws([DOMAIN, ...twoTable.tables], { clock });
    const run = createRun(aws, { ...WORKLOAD, events: 2 });
    await twoTable.write(run, 0);
    await expect(twoTable.relay?.(dying(run))).rejects.toThrow('died');
    await twoTable.write(run, 1);
    expect(await publishPending(run)).toBe(1);
    expect(aws.takePublished().map(({ Detail }) => JSON.parse(Detail).aggregateId)).toEqual([
      'order-00000001',
    ]);
  });
});

describe('what stands without events', () => {
  const standing = async (name: string, eventsPerSecond: number) => {
    const system = ALTERNATIVES.find((one) => one.name === name);
    const aws = createMeteredAws(system?.tables ?? []);
    const times = await system?.standing?.(aws, { eventsPerSecond, payloadBytes: 1_024 });
    const reads = aws.requests().filter(({ step }) => step === 'standing');
    const units = reads.reduce((sum, { readUnits }) => sum + readUnits, 0) * (times ?? Number.NaN);
    return { aws, units };
  };

  it('reads the whole outbox twelve times a minute with two tables', async () => {
    expect((await standing('two-table+transactional-inbox', 0)).units).toBe(12 * 0.5);
    const { aws, units } = await standing('two-table+transactional-inbox', 1_000);
    const bytes = itemBytes(aws.items('outbox')[0] ?? {});
    const byHand = (12 * 86_400 * 1_000 * bytes * 0.5) / 4_096;
    expect(Math.abs(units / byHand - 1)).toBeLessThan(0.01);
  });

  it('polls eight shards a second with an index, which costs extra only as long as it finds nothing', async () => {
    expect((await standing('status-index+powertools', 0)).units).toBe(60 * 8 * 0.5);
    expect((await standing('status-index+powertools', 1_000)).units).toBeLessThan(0.001);
  });
});

/** Write units and DynamoDB calls by step. */
function unitsByStep(aws: Awaited<ReturnType<typeof ran>>) {
  const of = (step: string): readonly [number, number] => {
    const requests = aws
      .requests()
      .filter((request) => request.step === step && request.service === 'dynamodb');
    return [requests.reduce((sum, { writeUnits }) => sum + writeUnits, 0), requests.length];
  };
  return { write: of('write'), relay: of('relay'), consume: of('consume') };
}
