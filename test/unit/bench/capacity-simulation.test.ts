import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { demandOf } from '../../../bench/capacity/demand.ts';
import { createPartitions, SLOTS } from '../../../bench/capacity/partitions.ts';
import { planCapacity } from '../../../bench/capacity/plan.ts';
import { createRandom, poisson } from '../../../bench/capacity/random.ts';
import { type SimulationSettings, simulate } from '../../../bench/capacity/simulation.ts';

const demand = demandOf(200, 1);

const settings: SimulationSettings = {
  demand,
  eventsPerSecond: 300,
  shards: 8,
  partitions: 4,
  seconds: 90,
  seed: 1,
};

const situations = fc.record({
  eventsPerSecond: fc.integer({ min: 0, max: 2_000 }),
  shards: fc.integer({ min: 1, max: 256 }),
  partitions: fc.integer({ min: 1, max: 40 }),
  seed: fc.integer(),
  consumers: fc.integer({ min: 0, max: 3 }),
});

describe('the simulation', () => {
  test('loses no commit: what arrived is done or waits', () => {
    fc.assert(
      fc.property(situations, ({ consumers, ...situation }) => {
        const result = simulate({ ...situation, demand: demandOf(200, consumers), seconds: 5 });
        expect(result.arrived).toBe(result.done + result.waiting);
        expect(result.p50Ms).toBeLessThanOrEqual(result.p99Ms);
        expect(result.throttledShare).toBeLessThanOrEqual(result.worstMinuteShare);
      }),
      { numRuns: 40 },
    );
  });

  test('is the same for the same seed, and another for another', () => {
    expect(simulate(settings)).toEqual(simulate(settings));
    expect(simulate({ ...settings, seed: 2 })).not.toEqual(simulate(settings));
  });

  test('never takes more than its partitions have', () => {
    const seconds = 30;
    const { done } = simulate({ ...settings, eventsPerSecond: 3_000, partitions: 2, seconds });
    // What is committed at the least: the put and the domain row. A full bucket stood ready in the beginning.
    expect(done * (demand.putUnits + demand.domainUnits)).toBeLessThanOrEqual(2 * 1_000 * (seconds + 1));
    expect(done).toBeGreaterThan(0);
  });

  test('where nothing is scarce, nothing is throttled and nothing waits', () => {
    expect(simulate({ ...settings, eventsPerSecond: 50 })).toMatchObject({
      throttledShare: 0,
      waiting: 0,
      p99Ms: 0,
    });
  });

  test('a burst is throttled, and drained after it', () => {
    const burst = { fromSecond: 10, seconds: 5, times: 20 };
    const result = simulate({ ...settings, eventsPerSecond: 100, burst });
    expect(result.throttledShare).toBeGreaterThan(0.1);
    expect(result.waiting).toBe(0);
    expect(result.p99Ms).toBeGreaterThan(1_000);
    expect(
      simulate({ ...settings, eventsPerSecond: 100, burst, keptSeconds: 300 }).throttledShare,
    ).toBeLessThan(result.throttledShare);
  });
});

describe('a plan', () => {
  test.each([
    { eventsPerSecond: 200, payloadBytes: 1_024, consumers: 3 },
    { eventsPerSecond: 1_000, payloadBytes: 200, consumers: 1 },
    { eventsPerSecond: 500, payloadBytes: 4_096, consumers: 1 },
  ])('$eventsPerSecond events/s of $payloadBytes B: it carries them, and half of it does not', (target) => {
    const plan = planCapacity(target);
    const { shards, partitions } = plan.mailroom;
    const planned = { ...plan.mailroom, seconds: 120, seed: 7 };
    const half = { ...planned, shards: Math.floor(shards / 2), partitions: Math.floor(partitions / 2) };
    expect(simulate(planned).throttledShare).toBeLessThan(0.01);
    expect(simulate(half).throttledShare).toBeGreaterThan(0.01);
  });
});

describe('partitions', () => {
  test('of a transaction both writes have their units, or none is made', () => {
    const partitions = createPartitions(2, 1);
    expect(partitions.take(0, 999)).toBe(true);
    expect(partitions.takeBoth(0, 2, SLOTS - 1, 2)).toBe(false);
    expect(partitions.take(SLOTS - 1, 1_000)).toBe(true);
    expect(partitions.take(0, 1)).toBe(true);
    expect(partitions.take(0, 1)).toBe(false);
  });

  test('a partition that both writes fall on must have the units of both', () => {
    const partitions = createPartitions(1, 1);
    expect(partitions.takeBoth(0, 600, 1, 600)).toBe(false);
    expect(partitions.takeBoth(0, 600, 1, 400)).toBe(true);
  });

  test('one that throttles long enough splits, and each half has a bucket of its own', () => {
    const partitions = createPartitions(1, 1, 3);
    for (let second = 0; second < 3; second += 1) {
      expect(partitions.count()).toBe(1);
      expect(partitions.take(0, 1_001)).toBe(false);
      partitions.fill(1);
    }
    expect(partitions.count()).toBe(2);
    expect(partitions.take(0, 1_000)).toBe(true);
    expect(partitions.take(SLOTS - 1, 1_000)).toBe(true);
  });
});

test.each([0.3, 20, 400])('arrivals are %s on average', (mean) => {
  const random = createRandom(1);
  const counts = Array.from({ length: 5_000 }, () => poisson(mean, random));
  const average = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const variance = counts.reduce((sum, count) => sum + (count - average) ** 2, 0) / counts.length;
  expect(Math.abs(average / mean - 1)).toBeLessThan(0.1);
  expect(Math.abs(variance / mean - 1)).toBeLessThan(0.2);
});
