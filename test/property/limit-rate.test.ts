import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CLOCK_SKEW_MS } from '../../lambdas/runtime/base/clock.ts';
import { TOKEN_LATE_MS } from '../../lambdas/runtime/consume/limited-run.ts';
import { paceOf } from '../../lambdas/runtime/consume/limits.ts';
import { takeToken } from '../../lambdas/runtime/store/dynamo/limit-bucket.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { limitKey } from '../../lambdas/runtime/store/keys.ts';
import { memoryTable } from '../../testing/index.ts';
import { runs } from './support/runs.ts';

/** As of a consumer with a lease of 30 seconds: see `consume/limited-run.ts`. */
const PATIENCE_MS = 2_000;
const SLOT_PATIENCE_MS = 7_500;
const START = 1_780_000_000_000;

interface Setting {
  readonly perSecond: number;
  readonly burst: number;
  /** How far each worker's clock is ahead, milliseconds. */
  readonly aheadMs: readonly number[];
  /** When each message arrives, after the start, milliseconds. */
  readonly arrivals: readonly number[];
  /** How late each receive is, and each start after its token, milliseconds: drawn one by one. */
  readonly lateMs: readonly number[];
}

/** A message that asks at a time, and has waited for its slot. */
interface Asking {
  readonly message: number;
  readonly at: number;
  readonly hasSlot: boolean;
  readonly receives: number;
}

/** Runs messages through one bucket. @returns the true times at which their handlers started, and the receives that each needed */
async function simulate({ perSecond, burst, aheadMs, arrivals, lateMs }: Setting) {
  const table = memoryTable();
  const key = limitKey({ name: 'bank' }, 'merchant');
  const pace = paceOf({ perSecond, burst });
  const waiting: Asking[] = arrivals.map((at, message) => ({
    message,
    at: START + at,
    hasSlot: false,
    receives: 1,
  }));
  const started: { readonly message: number; readonly at: number; readonly receives: number }[] = [];
  let drawn = 0;
  const late = () => lateMs[drawn++ % lateMs.length] ?? 0;
  for (let next = first(waiting); next !== undefined; next = first(waiting)) {
    const { message, at, hasSlot, receives } = next;
    const ahead = aheadMs[receives % aheadMs.length] ?? 0;
    const clock = { now: () => at + ahead, sleep: async () => {} };
    const deps = { table, clock, random: systemRandomBytes };
    const answer = await takeToken(
      deps,
      { key, pace },
      { hasSlot, patienceMs: hasSlot ? SLOT_PATIENCE_MS : PATIENCE_MS },
    );
    if (answer.is === 'token') {
      const startsAt = Math.max(at, answer.startsAt - ahead);
      started.push({ message, at: startsAt + Math.min(TOKEN_LATE_MS, late()), receives });
      continue;
    }
    const slotAt = answer.is === 'slot' ? answer.slotAt - ahead : at + 5_000;
    const hiddenMs = Math.ceil(Math.max(1, slotAt - at) / 1_000) * 1_000;
    waiting.push({
      message,
      at: at + hiddenMs + late(),
      hasSlot: answer.is === 'slot' || hasSlot,
      receives: receives + 1,
    });
  }
  return started;
}

function first(waiting: Asking[]): Asking | undefined {
  waiting.sort((a, b) => a.at - b.at);
  return waiting.shift();
}

/** The most that starts exceed the burst and what the rate allows, in any period. */
function excess(
  times: readonly number[],
  { perSecond, burst }: Pick<Setting, 'perSecond' | 'burst'>,
): number {
  const sorted = times.toSorted((a, b) => a - b);
  let most = Number.NEGATIVE_INFINITY;
  for (const [i, from] of sorted.entries()) {
    for (const [j, to] of sorted.entries()) {
      if (j < i) continue;
      most = Math.max(most, j - i + 1 - burst - (perSecond * (to - from)) / 1_000);
    }
  }
  return most;
}

const rate = fc.record({
  perSecond: fc.constantFrom(0.5, 1, 3, 10, 50),
  burst: fc.integer({ min: 1, max: 20 }),
  arrivals: fc.array(fc.integer({ min: 0, max: 30_000 }), { minLength: 1, maxLength: 120 }),
});

test('with right clocks and punctual starts, no period has more runs than the burst and the rate allow', async () => {
  await fc.assert(
    fc.asyncProperty(rate, async (given) => {
      const setting = { ...given, aheadMs: [0], lateMs: [0] };
      const started = await simulate(setting);
      expect(started).toHaveLength(given.arrivals.length);
      expect(
        excess(
          started.map(({ at }) => at),
          setting,
        ),
      ).toBeLessThan(0.001);
      expect(Math.max(...started.map(({ receives }) => receives))).toBeLessThanOrEqual(2);
    }),
    runs(100),
  );
});

test('wrong clocks and late starts add no more than the runs of their time, once, and no message starves', async () => {
  const skew = fc.integer({ min: 0, max: CLOCK_SKEW_MS });
  await fc.assert(
    fc.asyncProperty(
      rate,
      fc.array(skew, { minLength: 1, maxLength: 4 }),
      fc.array(fc.integer({ min: 0, max: TOKEN_LATE_MS }), { minLength: 1, maxLength: 20 }),
      async (given, aheadMs, lateMs) => {
        const setting = { ...given, aheadMs, lateMs };
        const started = await simulate(setting);
        expect(started).toHaveLength(given.arrivals.length);
        const mayExceed = (given.perSecond * (CLOCK_SKEW_MS + TOKEN_LATE_MS)) / 1_000;
        expect(
          excess(
            started.map(({ at }) => at),
            setting,
          ),
        ).toBeLessThan(mayExceed + 0.001);
        expect(Math.max(...started.map(({ receives }) => receives))).toBeLessThanOrEqual(8);
      },
    ),
    runs(100),
  );
});

test('messages that arrive at once start in the order of their slots, and within the time that the rate takes for all', async () => {
  const setting = {
    perSecond: 10,
    burst: 1,
    aheadMs: [0],
    lateMs: [0, 400, 900],
    arrivals: Array.from({ length: 400 }, (_, n) => n),
  };
  const started = await simulate(setting);
  expect(Math.max(...started.map(({ receives }) => receives))).toBeLessThanOrEqual(3);
  expect(Math.max(...started.map(({ at }) => at)) - START).toBeLessThan(50_000);
  const places = started.toSorted((a, b) => a.at - b.at).map(({ message }) => message);
  // Each message starts about when it has its slot: it is not passed by those that asked two seconds of slots after it.
  for (const [place, message] of places.entries()) expect(Math.abs(place - message)).toBeLessThan(60);
});

test('receives that come up to five seconds after their slots send no message to the end of the line, whatever the rate', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(0.1, 0.5, 1, 10),
      fc.integer({ min: 1, max: 3 }),
      fc.array(fc.integer({ min: 0, max: 4_000 }), { minLength: 1, maxLength: 20 }),
      async (perSecond, burst, lateMs) => {
        // Up to a second more: SQS hides messages for whole seconds.
        const arrivals = Array.from({ length: 60 }, (_, n) => n);
        const setting = { perSecond, burst, aheadMs: [0], lateMs, arrivals };
        const started = await simulate(setting);
        expect(Math.max(...started.map(({ receives }) => receives))).toBeLessThanOrEqual(2);
        const times = started.map(({ at }) => at);
        expect(excess(times, setting)).toBeLessThan((perSecond * TOKEN_LATE_MS) / 1_000 + 0.001);
      },
    ),
    runs(50),
  );
});

test('changes of the numbers start no more runs than the largest of them allow', async () => {
  const change = fc.record({
    perSecond: fc.constantFrom(0.1, 1, 10, 100),
    burst: fc.constantFrom(1, 5, 50),
    gapsMs: fc.array(fc.integer({ min: 0, max: 200 }), { maxLength: 20 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 20 }), async (changes) => {
      const table = memoryTable();
      const key = limitKey({ name: 'bank' }, 'merchant');
      const times: number[] = [];
      let now = START;
      for (const { gapsMs, ...numbers } of changes) {
        for (const gapMs of gapsMs) {
          now += gapMs;
          const deps = { table, clock: { now: () => now, sleep: async () => {} }, random: systemRandomBytes };
          const asked = { hasSlot: true, patienceMs: 0 };
          const answer = await takeToken(deps, { key, pace: paceOf(numbers) }, asked);
          if (answer.is === 'token') times.push(answer.startsAt);
        }
      }
      const perSecond = Math.max(...changes.map((one) => one.perSecond));
      const burst = Math.max(...changes.map((one) => one.burst));
      expect(excess(times, { perSecond, burst })).toBeLessThan(0.001);
    }),
    runs(50),
  );
});
