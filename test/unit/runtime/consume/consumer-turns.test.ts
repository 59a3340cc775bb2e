import { describe, expect, test } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { consumer, inboxRow, mortal, type Parts, send } from './consumer-rig.ts';

/** A consumer of 30 s with the constructs' defaults. */
const { maxAttempts } = defaultConfig();
const MAX_RECEIVE_COUNT = 105;

const statusOf = (parts: Parts, events: readonly ReturnType<typeof send>[]) =>
  events.map((event) => inboxRow(parts, event)?.status);

describe('after a process died once', () => {
  test.each([3_000, 15_000, 27_000])(
    'a message whose handler takes %d ms is processed, whatever new neighbours it meets in each batch',
    async (tookMs) => {
      const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
      const event = send(parts, { aggregateId: 'slow' });
      let deaths = 0;
      const neighbours: ReturnType<typeof send>[] = [];
      const { drain } = mortal(
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
        if (neighbours.length < 20) neighbours.push(send(parts, { aggregateId: 'neighbour' }));
      });
      expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
      expect(new Set(statusOf(parts, neighbours))).toEqual(new Set(['PROCESSED']));
      expect(parts.queue.deadLetters()).toEqual([]);
    },
  );

  test('all ten of its batch are processed, 15 s each, and no attempt is counted', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const events = Array.from({ length: 10 }, (_, n) => send(parts, { aggregateId: `${n}` }));
    let deaths = 0;
    const { drain } = mortal(
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
    for (const event of events)
      expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.queue.deadLetters()).toEqual([]);
  });
});

describe('a message that ran out of time', () => {
  test('a message whose neighbors used up the time runs first the next time, then alone, and is processed', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    // One processor for all of a batch: ten handlers of 5 s of work need 50 s, and the function has 30.
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
    const events = Array.from({ length: 10 }, (_, n) => send(parts, { aggregateId: `${n}` }));
    const { drain } = consumer(
      parts,
      [leased(ThingHappened, async (_event, ctx) => working(ctx.signal))],
      parts.table,
      { maxAttempts: 1 },
    );
    await drain(500);
    expect(statusOf(parts, events)).toEqual(Array.from({ length: 10 }, () => 'PROCESSED'));
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test('is reported on its row and in the log, while it still runs and when its attempts are exhausted', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const event = send(parts);
    const { deliver, drain } = mortal(
      parts,
      () => [leased(ThingHappened, () => parts.clock.sleep(1_000_000))],
      { maxAttempts: 2 },
    );
    await deliver();
    const said = "The handler was still running when the function's time was up";
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSING',
      outOfTime: true,
      lastError: said,
      fingerprint: `worker OUT_OF_TIME: ${said}`,
    });
    const next = parts.queue.messages()[0]?.visibleAt ?? 0;
    await parts.clock.advance(next - parts.clock.now());
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
    expect(inboxRow(parts, event)?.lastError).toContain(said);
    const logged = parts.telemetry.lines().map(({ message }) => message);
    expect(logged).toContain('A handler ran out of time');
  });

  test('in every attempt spreads them over the retry schedule: a provider that hangs for 30 minutes kills nothing', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const event = send(parts);
    const up = parts.clock.now() + 30 * 60_000;
    const { drain } = mortal(
      parts,
      () => [
        leased(ThingHappened, async () => {
          if (parts.clock.now() < up) await parts.clock.sleep(1_000_000);
        }),
      ],
      { maxAttempts },
    );
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a message whose handler obeys its signal is counted only if it ran alone', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const attempts: number[] = [];
    const event = send(parts);
    const { drain } = consumer(
      parts,
      [
        leased(ThingHappened, async (_event, ctx) => {
          attempts.push(ctx.attempt);
          await new Promise((_resolve, reject) =>
            ctx.signal.addEventListener('abort', () => reject(new Error('aborted'))),
          );
        }),
      ],
      parts.table,
      { maxAttempts: 2 },
    );
    await drain(100);
    expect(attempts).toEqual([1, 1, 1, 2]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
    expect(inboxRow(parts, event)).not.toHaveProperty('unfinished');
  });
});

describe('a message that kills its process', () => {
  test('a message that kills its process runs alone from its third claim on, is counted only then, and affects no other message', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const killer = send(parts, { aggregateId: 'killer' });
    const others: ReturnType<typeof send>[] = [];
    const batches: string[] = [];
    const { drain } = mortal(
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
      reason: 'ATTEMPTS_SPENT',
      lastError: expect.stringContaining('The function ended before its handler did'),
    });
    for (const other of others)
      expect(inboxRow(parts, other)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('within an effect is counted all the same, though each of its claims waits for the effect first', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const killer = send(parts);
    const { drain } = mortal(
      parts,
      ({ kill }) => [leased(ThingHappened, async (_event, ctx) => ctx.once('charge', () => kill()))],
      { maxAttempts: 2 },
    );
    await drain();
    expect(inboxRow(parts, killer)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
  });

  test('begins anew when it is redriven', async () => {
    const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
    const event = send(parts);
    let fixed = false;
    const { drain } = mortal(
      parts,
      ({ kill }) => [
        leased(ThingHappened, async () => {
          if (!fixed) await kill();
        }),
      ],
      { maxAttempts: 1 },
    );
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED' });
    expect(inboxRow(parts, event)).not.toHaveProperty('unfinished');
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

test('a function that does not start for 4 hours spends receives and no attempts', async () => {
  const parts = rig({ maxReceiveCount: MAX_RECEIVE_COUNT });
  const event = send(parts);
  const up = parts.clock.now() + 4 * 3_600_000;
  const { queue, clock } = parts;
  while (clock.now() < up) {
    await queue.deliver(() => Promise.reject(new Error('Runtime.ImportModuleError')));
    await clock.advance(180_000); // the default visibility timeout
  }
  expect(queue.deadLetters()).toEqual([]);
  await consumer(parts, [leased(ThingHappened, async () => {})]).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
});
