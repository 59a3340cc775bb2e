import fc from 'fast-check';
import { expect, test } from 'vitest';
import { holderOf } from '../../lambdas/runtime/inbox/limit-places.ts';
import { freePlace, takePlace } from '../../lambdas/runtime/store/dynamo/limit-place.ts';
import { limitKey } from '../../lambdas/runtime/store/keys.ts';
import { memoryTable } from '../../testing/index.ts';
import { runs, seededBytes } from './support/runs.ts';

const START = 1_780_000_000_000;
const FUNCTION_MS = 900_000;

/** A message with more receives is never processed: those that a queue of a Mailroom allows by default, with functions of a minute. */
const RECEIVES_MAX = 65;

interface Setting {
  readonly concurrency: number;
  /** The duration of each message's run, milliseconds. `Infinity`: it crashes, and its message is received again when its function has stopped. */
  readonly runMs: readonly number[];
  /** The delays of receives, milliseconds, used in turn. */
  readonly lateMs: readonly number[];
  /** The time between two arrivals, milliseconds. @default they arrive together */
  readonly everyMs?: number | undefined;
  readonly seed?: number | undefined;
}

/** A message that comes, or the end of its run. */
interface Moment {
  readonly message: number;
  readonly at: number;
  readonly since?: number | undefined;
  /** Of its attempt: each waits from the start. */
  readonly receives: number;
  readonly ends?: { readonly holder: string; readonly ms: number; readonly estimateMs: number | undefined };
}

/** Runs messages of one key through its bucket, by workers without patience. */
async function simulate({ concurrency, runMs, lateMs, everyMs = 1, seed = 1 }: Setting) {
  const random = seededBytes(seed);
  const table = memoryTable();
  const key = limitKey({ name: 'bank' }, 'merchant');
  const moments: Moment[] = runMs.map((_, message) => ({
    message,
    at: START + message * everyMs,
    receives: 1,
  }));
  const crashed = new Set<number>();
  let drawn = 0;
  let running = 0;
  const found = { most: 0, processed: 0, ranMs: 0, endedAt: START, waits: [] as number[] };
  while (moments.length > 0) {
    const next = moments.reduce((first, moment) => (moment.at < first.at ? moment : first));
    moments.splice(moments.indexOf(next), 1);
    const { message, at, since, receives, ends } = next;
    const deps = { table, clock: { now: () => at, sleep: async () => {} }, random };
    if (ends !== undefined) {
      running -= 1;
      const { holder, ms, estimateMs } = ends;
      await freePlace(deps, { key, holder, ran: { ms, estimateMs } });
      found.processed += 1;
      found.ranMs += ms;
      found.endedAt = at;
      continue;
    }
    if (receives > RECEIVES_MAX) continue; // as in the dead-letter queue
    const holder = holderOf(at + FUNCTION_MS, `${message}-${receives}`);
    const receivesLeft = RECEIVES_MAX - receives;
    const place = { concurrency, holder, ticket: String(message), since, receivesLeft };
    const answer = await takePlace(deps, { key, place }, { hasSlot: since !== undefined, patienceMs: 0 });
    const late = lateMs[drawn++ % lateMs.length] ?? 0;
    if (answer.is !== 'token') {
      const until = answer.is === 'slot' ? answer.slotAt : answer.is === 'head' ? answer.againAt : at + 5_000;
      const hiddenMs = Math.ceil(Math.max(1, until - at) / 1_000) * 1_000;
      moments.push({ message, at: at + hiddenMs + late, since: since ?? at, receives: receives + 1 });
      continue;
    }
    const ms = runMs[message] ?? 0;
    if (ms === Number.POSITIVE_INFINITY && !crashed.has(message)) {
      crashed.add(message);
      moments.push({ message, at: at + FUNCTION_MS + late, receives: 1 });
      continue;
    }
    running += 1;
    found.waits.push(at - START - message * everyMs);
    found.most = Math.max(found.most, running);
    const ranMs = Math.min(FUNCTION_MS, ms);
    moments.push({
      message,
      at: at + ranMs,
      receives,
      ends: { holder, ms: ranMs, estimateMs: answer.runMs },
    });
  }
  return found;
}

const lateness = (max: number) => fc.array(fc.integer({ min: 0, max }), { minLength: 1, maxLength: 20 });

test.each([
  ['of 200 ms or 14 min', [200, 840_000], 4_000, 60],
  ['of 200 ms or 14 min, delivered up to 20 s late', [200, 840_000], 20_000, 40],
  ['of 14 min', [840_000], 4_000, 40],
  ['of 200 ms or 55 s', [200, 55_000], 4_000, 100],
  ['of 1 s', [1_000], 4_000, 150],
  ['of 10 s, some of which crash', [10_000, 10_000, 10_000, Number.POSITIVE_INFINITY], 4_000, 40],
])(
  'runs %s: no more at once than places, and no attempt waits for more than 65 receives',
  async (_text, lengths, lateMax, most) => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 4 }),
        fc.array(fc.constantFrom(...lengths), { minLength: most / 2, maxLength: most }),
        lateness(lateMax),
        fc.nat(),
        async (concurrency, runMs, lateMs, seed) => {
          const found = await simulate({ concurrency, runMs, lateMs, seed });
          expect(found.most).toBeLessThanOrEqual(concurrency);
          expect(found.processed).toBe(runMs.length);
        },
      ),
      runs(2),
    );
  },
);

test('after an incident with long runs, short ones are not behind its line for more than half an hour', async () => {
  const incident = Array.from({ length: 12 }, () => 60_000);
  const after = Array.from({ length: 400 }, () => 200);
  const { processed, endedAt } = await simulate({
    concurrency: 3,
    runMs: [...incident, ...after],
    lateMs: [0, 500, 1_500, 900],
  });
  expect(processed).toBe(412);
  expect(endedAt - START).toBeLessThan(45 * 60_000);
});

test('messages that are delivered up to a minute late use the place for 40 % of the time', async () => {
  const { ranMs, endedAt, processed } = await simulate({
    concurrency: 1,
    runMs: Array.from({ length: 80 }, () => 20_000),
    lateMs: [25_000, 60_000, 31_000, 44_000, 52_000, 38_000, 27_000],
    everyMs: 1_000,
  });
  expect(processed).toBe(80);
  expect(ranMs / (endedAt - START)).toBeGreaterThan(0.4);
});

test('nine of ten short runs beside rare long ones start within ten minutes, and all within twenty', async () => {
  const { waits, processed } = await simulate({
    concurrency: 1,
    runMs: Array.from({ length: 600 }, (_, n) => (n % 150 === 10 ? 60_000 : 200)),
    lateMs: [100],
    everyMs: 2_000,
  });
  const inTime = waits.filter((ms) => ms < 10 * 60_000).length;
  expect(processed).toBe(600);
  expect(inTime / waits.length).toBeGreaterThan(0.9);
  expect(Math.max(...waits)).toBeLessThan(20 * 60_000);
});
