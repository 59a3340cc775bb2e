import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  BUS_DELIVERY_MS,
  CALL_MS,
  CONSUMER_BATCH_MS,
  STREAM_POLLS_PER_SECOND,
} from '../../../bench/assumptions.ts';
import { BURSTS, burstTable } from '../../../bench/burst.ts';
import { CLOCK_SKEW_MS } from '../../../lambdas/runtime/base/clock.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { producerConfig } from '../../../testing/index.ts';
import { BURST_MS, type BurstReport, simulateBurst, VISIBILITY_MS } from '../../support/burst.ts';
import { line } from './cost-page.ts';

const ORDERS = 2_000;
const POLL_MS = 1_000 / STREAM_POLLS_PER_SECOND;

/** The longest wait for the sweep: the rest of a minute, until its first age, and until the next pass. */
const SWEEP_WAITS_MS = 3 * MINUTE_MS;

const reports: Record<string, BurstReport> = {};

// One hook per burst: the deadline of a hook is for one simulation, also on a busy machine.
for (const [name, plan] of Object.entries(BURSTS))
  beforeAll(async () => {
    reports[name] = await simulateBurst({ ...plan, orders: ORDERS });
  });

const reportOf = (name: string) => reports[name] as BurstReport;
const longest = (times: readonly number[]) => times.at(-1) ?? Number.NaN;
const longestPass = ({ passes }: BurstReport) => Math.max(...passes.map(({ ms }) => ms));

/** The names of the bursts that are as given. */
function burstsWhere(is: (plan: (typeof BURSTS)[string]) => unknown): string[] {
  return Object.entries(BURSTS).flatMap(([name, plan]) => (is(plan) ? [name] : []));
}

describe('2,000 orders in 5 minutes', () => {
  test.each(Object.keys(BURSTS))(
    '%s: every event is published, and each consumer applies it once',
    (name) => {
      const { publishMs, processMs, lost, notOnce, charges } = reportOf(name);
      const counts = { published: publishMs.length, processed: processMs.length };
      expect(counts).toEqual({ published: ORDERS, processed: 2 * ORDERS });
      expect({ lost, notOnce, charges }).toEqual({ lost: 0, notOnce: 0, charges: ORDERS });
    },
  );

  test.each(Object.keys(BURSTS))('%s: a pass ends before the next one begins', (name) => {
    for (const { ms } of reportOf(name).passes) expect(ms).toBeLessThan(MINUTE_MS);
  });

  test.each(burstsWhere(({ failures }) => !failures))('%s: nothing is published or charged twice', (name) => {
    const { republished, duplicates, bankCalls } = reportOf(name);
    expect({ republished, duplicates, bankCalls }).toEqual({
      republished: 0,
      duplicates: 0,
      bankCalls: ORDERS,
    });
  });

  test.each(burstsWhere(({ failures }) => failures))('%s: events, messages and calls repeat', (name) => {
    const { republished, duplicates, bankCalls } = reportOf(name);
    expect(republished).toBeGreaterThan(0);
    expect(duplicates).toBeGreaterThan(2 * republished);
    expect(bankCalls).toBeGreaterThan(ORDERS);
  });

  test('the stream relay publishes each event within one poll and two batches', () => {
    const { publishMs, processMs, passes } = reportOf('stream and sweep');
    // Of the batch before: invocation, publish, mark. Of its own: invocation, publish.
    expect(longest(publishMs)).toBeLessThanOrEqual(POLL_MS + 5 * CALL_MS);
    // The receive, the invocation, the claim, both writes of the effect, the commit.
    const consumerMs = BUS_DELIVERY_MS + CONSUMER_BATCH_MS + 6 * CALL_MS;
    expect(longest(processMs)).toBeLessThanOrEqual(longest(publishMs) + consumerMs);
    expect(passes).toEqual([]);
  });

  test('the sweep publishes what a failing stream relay misses', () => {
    const report = reportOf('stream and sweep, with failures');
    const rescued = report.passes.reduce((sum, { published }) => sum + published, 0);
    expect(rescued).toBeGreaterThan(0);
    expect(rescued).toBeLessThan(ORDERS / 2);
    expect(longest(report.publishMs)).toBeLessThan(SWEEP_WAITS_MS + longestPass(report));
  });

  test('the sweep alone publishes a minute of the burst per pass, after one to three minutes', () => {
    const report = reportOf('sweep alone');
    const minutes = BURST_MS / MINUTE_MS;
    expect(report.passes.map(({ published }) => published)).toEqual(Array(minutes).fill(ORDERS / minutes));
    expect(report.publishMs[0]).toBeGreaterThan(MINUTE_MS);
    expect(longest(report.publishMs)).toBeLessThan(SWEEP_WAITS_MS + longestPass(report));
  });

  test('the sweep alone keeps to that while calls fail', () => {
    const report = reportOf('sweep alone, with failures');
    expect(report.publishMs[0]).toBeGreaterThan(MINUTE_MS);
    expect(longest(report.publishMs)).toBeLessThan(SWEEP_WAITS_MS + longestPass(report));
    expect(report.lastProcessedMs).toBeLessThan(SWEEP_WAITS_MS + VISIBILITY_MS);
  });

  test('a sweep every 10 seconds publishes each event once its stream lease is over', () => {
    const { publishMs } = reportOf('sweep alone, `sweepEvery` 10 s');
    const leasedMs = producerConfig().bornLeaseMs + CLOCK_SKEW_MS;
    expect(publishMs[0]).toBeGreaterThan(leasedMs);
    // An invocation sweeps the youngest minutes after 10 to 40 s, so the longest gap, to the next invocation's, is 30 s.
    expect(longest(publishMs)).toBeLessThan(leasedMs + 30_000 + 1_000);
  });
});

test.each([0, MINUTE_MS - 1])(
  'the bounds of the sweep hold if it starts %i ms after the minute',
  async (sweepPhaseMs) => {
    const { publishMs, lost, notOnce } = await simulateBurst({ orders: 100, stream: false, sweepPhaseMs });
    expect({ lost, notOnce }).toEqual({ lost: 0, notOnce: 0 });
    expect(publishMs[0]).toBeGreaterThan(MINUTE_MS);
    expect(publishMs.at(-1)).toBeLessThan(SWEEP_WAITS_MS + 1_000);
  },
);

test('docs/scaling.md shows the figures of the burst', () => {
  const page = readFileSync(new URL('../../../docs/scaling.md', import.meta.url), 'utf8');
  for (const row of burstTable(reports).rows)
    expect(page, 'Renew it with: npm run bench -- burst --docs').toContain(line(row));
});
