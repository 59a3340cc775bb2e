import { readFileSync } from 'node:fs';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { jumpingClock } from '../../../bench/alternatives/workload.ts';
import { createMeteredAws } from '../../../bench/aws/metered-aws.ts';
import {
  demandOf,
  outboxUnits,
  SWEEP_SECONDS_MAX,
  spreadUnits,
  sweepLoad,
} from '../../../bench/capacity/load.ts';
import { carries, highestRate, throttledShare } from '../../../bench/capacity/placement.ts';
import { planCapacity } from '../../../bench/capacity/plan.ts';
import { PARTITION, SHARDS_MAX } from '../../../bench/capacity/quotas.ts';
import { capacityTables } from '../../../bench/capacity.ts';
import { MAILROOM, UNCOMPRESSED } from '../../../bench/cost/mailroom.ts';
import { withTables } from '../../../bench/part.ts';
import { itemBytes } from '../../../lambdas/runtime/store/item-size.ts';
import { rig } from '../../support/runtime-rig.ts';

const targets = fc.record({
  eventsPerSecond: fc.integer({ min: 1, max: 2_000_000 }),
  payloadBytes: fc.integer({ min: 20, max: 20_000 }),
  consumers: fc.integer({ min: 0, max: 10 }),
});

const more = fc.integer({ min: 2, max: 20 });

const demand = demandOf(200, 1);

test.each([200, 1_024, 4_096])(
  'an event of %i B takes no more units than planned, and as many where random text saves none',
  (payloadBytes) => {
    const text = readFileSync(new URL('./units-per-event.txt', import.meta.url), 'utf8');
    const part = text.split(`${UNCOMPRESSED.name}, payload of ${payloadBytes} B\n`)[1] ?? '';
    const measured = ['write', 'relay', 'consume'].map((step) =>
      Number(new RegExp(`^  ${step} +([\\d.]+) write units`, 'm').exec(part)?.[1]),
    );
    const { domainUnits, putUnits, markUnits, consumerUnits } = demandOf(payloadBytes, 1);
    const planned = [domainUnits + putUnits, markUnits, consumerUnits];
    if (payloadBytes < 4_096) expect(planned).toEqual(measured);
    for (const [step, units] of planned.entries())
      expect(units).toBeGreaterThanOrEqual(measured[step] ?? NaN);
  },
);

test('the row of a plan is about as large as one that the outbox writes', async () => {
  const { outbox, happened } = rig();
  const [entry] = await outbox.entries([happened(1)]);
  const payloadBytes = JSON.stringify({ n: 1 }).length;
  // Names and ids of other lengths, and what the mark adds.
  expect(demandOf(payloadBytes, 1).rowBytes - itemBytes({ ...entry?.Put.Item })).toBeLessThan(150);
  expect(demandOf(payloadBytes, 1).rowBytes).toBeGreaterThan(itemBytes({ ...entry?.Put.Item }));
});

test('a plan reckons with what a real sweep reads', async () => {
  // An envelope of 500 B is stored as text, as a plan assumes for every size.
  const load = { eventsPerSecond: 20, payloadBytes: 500 };
  const aws = createMeteredAws(MAILROOM.transactional.tables, { clock: jumpingClock() });
  await MAILROOM.transactional.standing?.(aws, load);
  const measured = aws.requests().reduce((sum, { readUnits }) => sum + readUnits, 0);
  const placement = { demand: demandOf(load.payloadBytes, 1), shards: 8, partitions: 4 };
  const planned = sweepLoad({ ...placement, eventsPerSecond: load.eventsPerSecond }).readUnits;
  expect(Math.abs(planned / measured - 1)).toBeLessThan(0.05);
});

describe('what falls on a partition', () => {
  test('two keys on the same of two partitions: one in two', () => {
    // 450 events/s × 3 units on each key: alone it is 1,350, and two are 2,700, of 950 that are usable.
    const placement = { demand: demandOf(200, 0), eventsPerSecond: 900, shards: 2, partitions: 2 };
    const spread = 900;
    const of = (keys: number) => Math.max(0, 1 - 950 / (keys * 1_350 + spread));
    const outbox = (of(1) + of(2)) / 2;
    const domain = of(0) / 4 + of(1) / 2 + of(2) / 4;
    expect(throttledShare(placement)).toBeCloseTo(1 - (1 - outbox) * (1 - domain), 10);
  });

  test('one partition takes what it takes', () => {
    const placement = { demand, shards: 1, partitions: 1 };
    const units = outboxUnits(demand) + spreadUnits(demand);
    expect(highestRate(placement) * units).toBeGreaterThan(PARTITION.writeUnits * 0.94);
    expect(highestRate(placement) * units).toBeLessThan(PARTITION.writeUnits * 0.96);
  });
});

describe('a plan', () => {
  test('holds: its table carries its events, its sweep ends, its shards fit into a byte', () => {
    fc.assert(
      fc.property(targets, (target) => {
        const { mailroom, mailrooms } = planCapacity(target);
        expect(carries(mailroom)).toBe(true);
        expect(mailroom.sweep.seconds).toBeLessThanOrEqual(SWEEP_SECONDS_MAX);
        expect(mailroom.shards).toBeLessThanOrEqual(SHARDS_MAX);
        expect(mailroom.partitions).toBeLessThanOrEqual(400);
        expect(mailroom.eventsPerSecond * mailrooms).toBeCloseTo(target.eventsPerSecond, 3);
      }),
    );
  });

  test('needs as much for more events, larger ones and more consumers', () => {
    const size = (target: Parameters<typeof planCapacity>[0]) => {
      const { mailrooms, bill } = planCapacity(target);
      return { mailrooms, usd: bill.total };
    };
    fc.assert(
      fc.property(targets, more, (target, times) => {
        const base = size(target);
        for (const larger of [
          { ...target, eventsPerSecond: target.eventsPerSecond * times },
          { ...target, payloadBytes: target.payloadBytes * times },
          { ...target, consumers: target.consumers + times },
        ]) {
          const grown = size(larger);
          expect(grown.mailrooms).toBeGreaterThanOrEqual(base.mailrooms);
          expect(grown.usd).toBeGreaterThanOrEqual(base.usd);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('a peak is planned for, and the average is paid for', () => {
    const calm = planCapacity({ eventsPerSecond: 100 });
    const peaky = planCapacity({ eventsPerSecond: 100, peakEventsPerSecond: 1_000 });
    expect(calm.mailroom.warmWriteUnits).toBeUndefined();
    expect(peaky.mailroom.partitions).toBeGreaterThan(calm.mailroom.partitions);
    expect(peaky.mailroom.shards).toBeGreaterThan(calm.mailroom.shards);
    expect(peaky.bill.writes).toBe(calm.bill.writes);
  });
});

test('docs/scaling.md shows what the code plans today (npm run bench -- capacity --docs)', () => {
  const docs = readFileSync(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
  const tables = capacityTables();
  for (const name of ['capacity', 'capacity-limits']) expect(docs).toContain(`<!-- bench:${name} -->`);
  expect(withTables(docs, tables)).toBe(docs);
});

test('docs/faq.md and docs/cost.md name the price of 10 million events a day that the code plans today', () => {
  const { bill } = planCapacity({ eventsPerSecond: 116, payloadBytes: 1_024, consumers: 1 });
  const month = `${Math.ceil(bill.total).toLocaleString('en-US')} USD a month`;
  const day = Math.round(10 * bill.perMillionEvents);
  const page = (name: string) => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
  expect(page('faq')).toContain(
    `${day} USD a day: ${month}, ${bill.perMillionEvents.toFixed(2)} per million`,
  );
  expect(page('cost')).toContain(`10 million events a day cost [${month}]`);
});
