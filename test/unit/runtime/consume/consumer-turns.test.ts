import { describe, expect, test } from 'vitest';
import { type LeasedContext, leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, crashable, inboxRow, oneMessage, type Parts, send } from './consumer-rig.ts';

/** A consumer of 30 s with the constructs' defaults. */
const { maxAttempts } = defaultConfig();
const maxReceiveCount = 105;
const OUT_OF_TIME = "The handler was still running when the function's time was up.";

const one = () => oneMessage({}, { maxReceiveCount });
const batchOf = (parts: Parts, count: number) =>
  Array.from({ length: count }, (_, n) => send(parts, { aggregateId: `${n}` }));

function expectProcessed(parts: Parts, events: readonly ReturnType<typeof send>[], attempts?: number) {
  for (const event of events)
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      ...(attempts === undefined ? {} : { attempts }),
    });
}

describe('after its process died once,', () => {
  test.each([3_000, 15_000, 27_000])(
    'a message whose handler takes %d ms is processed, whichever new messages its batches contain',
    async (tookMs) => {
      const parts = rig({ maxReceiveCount });
      const event = send(parts, { aggregateId: 'slow' });
      const neighbors: ReturnType<typeof send>[] = [];
      let deaths = 0;
      const { drain } = crashable(
        parts,
        ({ kill }) => [
          leased(ThingHappened, async ({ aggregateId }) => {
            if (aggregateId === 'slow' && deaths === 0) {
              deaths += 1;
              await kill();
            }
            await parts.clock.sleep(aggregateId === 'slow' ? tookMs : 28_500);
          }),
        ],
        { maxAttempts },
      );
      await drain(2_000, 10, () => {
        if (neighbors.length < 20) neighbors.push(send(parts, { aggregateId: 'neighbor' }));
      });
      expectProcessed(parts, [event], 1);
      expectProcessed(parts, neighbors);
      expect(parts.queue.deadLetters()).toEqual([]);
    },
  );

  test('a batch of ten messages of 15 s is processed, and no attempt is counted', async () => {
    const parts = rig({ maxReceiveCount });
    const events = batchOf(parts, 10);
    let deaths = 0;
    const { drain } = crashable(
      parts,
      ({ kill }) => [
        leased(ThingHappened, async () => {
          await parts.clock.sleep(5_000);
          if (deaths === 0) {
            deaths += 1;
            await kill();
          }
          await parts.clock.sleep(10_000);
        }),
      ],
      { maxAttempts },
    );
    await drain();
    expectProcessed(parts, events, 1);
    expect(parts.queue.deadLetters()).toEqual([]);
  });
});

describe('a message that ran out of time', () => {
  test('because of its batch runs at once the next time, then alone, and is processed', async () => {
    const parts = rig({ maxReceiveCount });
    const events = batchOf(parts, 10);
    // One processor for the whole batch: ten handlers of 5 s of work need 50 s, and the function has 30.
    let running = 0;
    const working = async (signal: AbortSignal) => {
      running += 1;
      for (let doneMs = 0; doneMs < 5_000; doneMs += 500 / running) {
        await parts.clock.sleep(500);
        if (signal.aborted) break;
      }
      running -= 1;
      signal.throwIfAborted();
    };
    const handler = leased(ThingHappened, (_event, ctx) => working(ctx.signal));
    await consumer(parts, [handler], parts.table, { maxAttempts: 1 }).drain(500);
    expectProcessed(parts, events);
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test('is reported on its row and in the log, while it still runs and when its attempts are exhausted', async () => {
    const parts = one();
    const handlers = [leased(ThingHappened, () => parts.clock.sleep(1_000_000))];
    const { deliver, drain } = crashable(parts, () => handlers, { maxAttempts: 2 });
    await deliver();
    expect(parts.row()).toMatchObject({
      status: 'PROCESSING',
      outOfTime: true,
      lastError: OUT_OF_TIME,
      fingerprint: `worker OUT_OF_TIME: ${OUT_OF_TIME}`,
    });
    await parts.clock.advance(parts.waitsMs());
    await drain();
    expect(parts.row()).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      lastError: expect.stringContaining(OUT_OF_TIME),
      fingerprint: `worker OUT_OF_TIME: ${OUT_OF_TIME}`,
    });
    expect(parts.logged()).toContain('A handler ran out of time');
  });

  test('in every attempt follows the retry schedule, and survives a provider that hangs for 30 minutes', async () => {
    const parts = one();
    const up = parts.clock.now() + 30 * 60_000;
    const handler = leased(ThingHappened, async () => {
      if (parts.clock.now() < up) await parts.clock.sleep(1_000_000);
    });
    await crashable(parts, () => [handler], { maxAttempts }).drain();
    expect(parts.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('counts an attempt only if it ran alone, also when its handler obeys the signal', async () => {
    const parts = one();
    const attempts: number[] = [];
    const handler = async ({ attempt, signal }: LeasedContext) => {
      attempts.push(attempt);
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new Error('aborted'))),
      );
    };
    await parts.drain(handler, { maxAttempts: 2 }, 100);
    expect(attempts).toEqual([1, 1, 1, 2]);
    expect(parts.row()).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' });
    expect(parts.row()).not.toHaveProperty('unfinished');
  });
});

describe('a message that kills its process', () => {
  test('runs alone from its third claim on: only these attempts count, and it affects no other message', async () => {
    const parts = rig({ maxReceiveCount });
    const killer = send(parts, { aggregateId: 'killer' });
    const others: ReturnType<typeof send>[] = [];
    const batches: string[] = [];
    const { drain } = crashable(
      parts,
      ({ kill }) => {
        const batch = batches.push('') - 1;
        return [
          leased(ThingHappened, async ({ aggregateId }, ctx) => {
            batches[batch] += `${aggregateId} ${ctx.attempt} `;
            await parts.clock.sleep(1_000);
            if (aggregateId === 'killer') await kill();
          }),
        ];
      },
      { maxAttempts: 3 },
    );
    await drain(2_000, 10, () => {
      if (others.length < 30) others.push(send(parts, { aggregateId: 'other' }));
    });
    const withKiller = batches.filter((batch) => batch.includes('killer')).map((batch) => batch.trim());
    expect(withKiller.slice(2)).toEqual(['killer 1', 'killer 2', 'killer 3']);
    expect(inboxRow(parts, killer)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      lastError: expect.stringContaining('The function ended before its handler did'),
    });
    expectProcessed(parts, others, 1);
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('within an effect is rejected, although each of its claims waits for the effect first', async () => {
    const parts = one();
    const { drain } = crashable(
      parts,
      ({ kill }) => [leased(ThingHappened, (_event, ctx) => ctx.once('charge', () => kill()))],
      { maxAttempts: 2 },
    );
    await drain();
    expect(parts.row()).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' });
  });

  test('within its schema leaves a claim, so it is rejected', async () => {
    const parts = one();
    const { drain } = crashable(
      parts,
      ({ kill }) => {
        const schema = { '~standard': { version: 1, vendor: 'test', validate: () => kill() } } as const;
        return [leased({ ...ThingHappened, schema }, async () => {})];
      },
      { maxAttempts: 1 },
    );
    await drain();
    expect(parts.row()).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' });
  });

  test('starts again at attempt 1 when it is redriven', async () => {
    const parts = one();
    let fixed = false;
    const { drain } = crashable(
      parts,
      ({ kill }) => [
        leased(ThingHappened, async () => {
          if (!fixed) await kill();
        }),
      ],
      { maxAttempts: 1 },
    );
    await drain();
    expect(parts.row()).toMatchObject({ status: 'REJECTED' });
    expect(parts.row()).not.toHaveProperty('unfinished');
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(parts.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

test('a function that does not start for 4 hours uses up receives and no attempts', async () => {
  const { queue, clock, ...parts } = one();
  const up = clock.now() + 4 * 3_600_000;
  while (clock.now() < up) {
    await queue.deliver(() => Promise.reject(new Error('Runtime.ImportModuleError')));
    await clock.advance(180_000); // the default visibility timeout
  }
  expect(queue.deadLetters()).toEqual([]);
  await parts.drain(() => {});
  expect(parts.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
});
