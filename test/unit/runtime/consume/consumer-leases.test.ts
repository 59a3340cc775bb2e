import { describe, expect, test, vi } from 'vitest';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { RetryLater } from '../../../../lambdas/runtime/errors.ts';
import type { Envelope } from '../../../../lambdas/runtime/event.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, inboxRow, type Parts, send } from './consumer-rig.ts';

describe('a leased handler', () => {
  test.each([
    [300_000, 11_500],
    [15_000, 11_500],
    [12_000, 10_875],
  ])('is completed in time, of %d ms, also when a renewal hangs', async (timeoutMs, endsAfterMs) => {
    const parts = rig();
    const event = send(parts);
    let writes = 0;
    const table = {
      ...parts.memory,
      write: async (write: Parameters<typeof parts.memory.write>[0]) => {
        if (write.Update?.Key?.SK === 'MESSAGE') writes += 1;
        if (writes === 2) await parts.clock.sleep(18_000); // the renewal
        return parts.memory.write(write);
      },
    };
    const startedAt = parts.clock.now();
    await consumer(parts, [leased(ThingHappened, () => parts.clock.sleep(10_500))], table).deliver(timeoutMs);
    expect(parts.clock.now() - startedAt).toBeGreaterThanOrEqual(endsAfterMs);
    expect(parts.clock.now() - startedAt).toBeLessThan(endsAfterMs + 100);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('is shown again when its retry is due, although an earlier renewal is answered later', async () => {
    const parts = rig();
    send(parts);
    let writes = 0;
    const table = {
      ...parts.memory,
      write: async (write: Parameters<typeof parts.memory.write>[0]) => {
        const item = await parts.memory.write(write);
        if (write.Update?.Key?.SK === 'MESSAGE') writes += 1;
        if (writes === 2) await parts.clock.sleep(18_000); // the renewal
        return item;
      },
    };
    const handler = leased(ThingHappened, async () => {
      await parts.clock.sleep(10_500);
      throw new RetryLater(0);
    });
    const hides = vi.spyOn(parts.queue, 'changeVisibility');
    await consumer(parts, [handler], table).deliver(30_000);
    await parts.clock.advance(18_000);
    expect(hides.mock.calls.map(([, seconds]) => seconds)).toEqual([0]);
  });

  test('waits for a renewal that hides its message, so that its own delay is set last', async () => {
    const parts = rig();
    const event = send(parts);
    const change = parts.queue.changeVisibility.bind(parts.queue);
    vi.spyOn(parts.queue, 'changeVisibility').mockImplementationOnce(async (...args) => {
      await parts.clock.sleep(500);
      await change(...args);
    });
    const handler = leased(ThingHappened, async () => {
      await parts.clock.sleep(10_100);
      throw new Error('bank answered 503');
    });
    await consumer(parts, [handler]).deliver();
    await parts.clock.advance(1_000);
    expect(parts.queue.changeVisibility).toHaveBeenCalledTimes(2);
    expect(parts.queue.messages()[0]?.visibleAt).toBe(inboxRow(parts, event)?.retryAt);
  });

  test('ends its renewals with itself', async () => {
    const parts = rig();
    send(parts);
    const startedAt = parts.clock.now();
    await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();
    expect(parts.clock.now() - startedAt).toBeLessThan(500);
    expect(parts.clock.sleeping()).toBe(0);
  });

  /** Runs a handler for 35 s. @returns when it was renewed, in seconds, and for how long its message was hidden then */
  async function renewals(
    change: { readonly leaseMs?: number; readonly visibilityTimeoutMs?: number },
    renew: () => Promise<unknown> = async () => {},
    handle: (ctx: LeasedContext) => Promise<unknown> = async () => {},
  ) {
    const parts = rig();
    send(parts);
    const startedAt = parts.clock.now();
    const times: number[] = [];
    const write: Table['write'] = async (wanted) => {
      if (wanted.Update?.UpdateExpression === 'SET leaseUntil = :leaseUntil') {
        times.push((parts.clock.now() - startedAt) / 1_000);
        await renew();
      }
      return parts.memory.write(wanted);
    };
    const hide = vi.spyOn(parts.queue, 'changeVisibility');
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await handle(ctx);
      await parts.clock.sleep(35_000);
    });
    await consumer(parts, [handler], { ...parts.memory, write }, change).deliver(200_000);
    return { times, hidden: hide.mock.calls.map(([, seconds]) => seconds), parts };
  }

  test.each([
    [30_000, 60_000, [10, 20, 30], [60, 60, 60]],
    [60_000, 30_000, [10, 20, 30], [30, 30, 30]],
    [30_000, 0, [10, 20, 30], [1, 1, 1]],
  ])(
    'with a lease of %d ms and a visibility timeout of %d ms is renewed after %j s',
    async (leaseMs, visibilityTimeoutMs, expected, seconds) => {
      const { times, hidden } = await renewals({ leaseMs, visibilityTimeoutMs });
      expect(times).toEqual(expected);
      expect(hidden).toEqual(seconds);
    },
  );

  test('is renewed again after a renewal failed, which is logged', async () => {
    const failure = async () => {
      throw Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
    };
    const { times, parts } = await renewals({}, failure);
    expect(times).toEqual([10, 20, 30]);
    const failed = parts.telemetry
      .lines()
      .filter(({ message }) => message.startsWith('A lease renewal failed'));
    expect(failed).toHaveLength(3);
  });

  test('is not renewed after its commit', async () => {
    const { times } = await renewals({}, undefined, (ctx) => ctx.commit({ writes: [domainRow] }));
    expect(times).toEqual([]);
  });

  test('whose effect is running when the time is up is stopped with its function, not answered for', async () => {
    const parts = rig();
    const event = send(parts);
    let answered = false;
    const { handle } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => ctx.once('charge', () => parts.clock.sleep(1_000_000))),
    ]);
    const Records = parts.queue.receive();
    void handle({ Records }, lambdaContext({ clock: parts.clock, timeoutMs: 20_000 })).finally(() => {
      answered = true;
    });
    await parts.clock.advance(20_000); // Lambda stops it here
    expect(answered).toBe(false);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING' });
  });

  test('longer than its lease and its visibility is kept up by one renewal', async () => {
    const parts = rig();
    let second = 0;
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async () => {
        for (let i = 0; i < 10; i += 1) {
          await parts.clock.sleep(10_000);
          second += parts.queue.receive().length;
        }
      }),
    ]);
    await deliver(200_000);
    expect(second).toBe(0);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.queue.messages()).toEqual([]);
  });

  test('a handler that lost its lease gets an error and can write nothing', async () => {
    const parts = rig();
    const event = send(parts);
    const steal = () => {
      const row = inboxRow(parts, event);
      return parts.memory.write({
        Put: { Item: { ...row, fence: 'other', leaseUntil: parts.clock.now() + 100_000 } },
      });
    };
    let aborted: unknown;
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await steal();
        ctx.signal.addEventListener('abort', () => {
          aborted = ctx.signal.reason;
        });
        await parts.clock.sleep(15_000);
        await ctx.commit({ writes: [domainRow] });
      }),
    ]);
    await expect(deliver(60_000)).resolves.toMatchObject({ failed: [expect.any(String)] });
    expect(aborted).toMatchObject({ code: 'FENCE_LOST' });
    const messages = parts.telemetry.lines().map(({ message }) => message);
    expect(messages.filter((message) => message.includes('renewal'))).toEqual([]);
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'other' });
  });

  test("a handler that still runs when its function's time is up keeps its lease, and the message waits for the end", async () => {
    const parts = rig();
    const event = send(parts);
    const { deliver } = consumer(parts, [leased(ThingHappened, () => parts.clock.sleep(1_000_000))]);
    const startedAt = parts.clock.now();
    await deliver(20_000);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', endsBy: startedAt + 20_000 });
    const [message] = parts.queue.messages();
    expect(message?.visibleAt).toBeGreaterThan(startedAt + 20_000);
    expect(message?.visibleAt).toBeLessThan(startedAt + 24_001);
  });
});

describe('a message that another worker holds', () => {
  const held = (parts: Parts, event: Envelope, leaseMs: number, attempts = 1, more: object = {}) =>
    parts.memory.write({
      Put: {
        Item: {
          ...inboxKey(CONSUMER, event.eventId),
          schema: 1,
          status: 'PROCESSING',
          fence: 'other',
          attempts,
          leaseUntil: parts.clock.now() + leaseMs,
          endsBy: parts.clock.now() + leaseMs + 60_000,
          ...more,
        },
      },
    });

  /** Whoever holds the messages has received them, and SQS shows them again. */
  async function receivedBefore(parts: Parts): Promise<void> {
    parts.queue.receive();
    await parts.clock.advance(60_000);
  }

  test('sleeps for the rest of the lease, then until its worker is stopped; it is never put back at once', async () => {
    const parts = rig();
    const handle = vi.fn();
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    await held(parts, event, 9_500);
    const now = parts.clock.now();
    await deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(now + 10_500);
    expect(parts.queue.messages()[0]?.visibleAt).toBeLessThanOrEqual(now + 11_500);
    await parts.clock.advance(11_500);
    await held(parts, event, 9_500); // renewed: its worker is alive
    const then = parts.clock.now();
    await deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(then + 70_000);
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ attempts: 1, fence: 'other' });
  });

  test('is taken over when its lease has passed: at once, beside the others of its batch', async () => {
    const parts = rig();
    const started: string[] = [];
    const [left, fresh] = [send(parts, { aggregateId: 'left' }), send(parts, { aggregateId: 'fresh' })];
    if (!left || !fresh) throw new Error('unreachable');
    await receivedBefore(parts);
    await held(parts, left, -1, 2);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (event, ctx) => {
        started.push(`${event.aggregateId}, attempt ${ctx.attempt}, ${ctx.remainingMs() / 1_000} s left`);
        await parts.clock.sleep(20_000);
      }),
    ]);
    await deliver();
    expect(started.sort()).toEqual(['fresh, attempt 1, 30 s left', 'left, attempt 2, 30 s left']);
    expect(parts.telemetry.counted('LeasesExpired')).toBe(1);
    expect(inboxRow(parts, left)).toMatchObject({ status: 'PROCESSED' });
  });

  test('is claimed at once where its row has no lease: it is never stuck', async () => {
    const parts = rig();
    const event = send(parts);
    await receivedBefore(parts);
    await held(parts, event, -1);
    await parts.memory.write({
      Update: {
        Key: { ...inboxKey(CONSUMER, event.eventId) },
        UpdateExpression: 'REMOVE leaseUntil, endsBy',
      },
    });
    const handle = vi.fn();
    await consumer(parts, [leased(ThingHappened, handle)]).deliver();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a message that is received for the first time runs, whatever was counted under other messages', async () => {
    const parts = rig();
    const attempts: number[] = [];
    const event = send(parts);
    await held(parts, event, -1, 3);
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
      }),
    ]).deliver();
    expect(attempts).toEqual([1]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('a message whose transactional handler throws in its first run keeps all of its attempts', async () => {
    const parts = rig();
    const attempts: number[] = [];
    const event = send(parts);
    await held(parts, event, -1, 3);
    const { drain } = consumer(parts, [
      transactional(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        if (attempts.length === 1) throw new Error('not now');
        return { writes: [domainRow] };
      }),
    ]);
    await drain();
    expect(attempts).toEqual([1, 1]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('past its attempts is rejected without being run: its process died each time, also when it ran alone', async () => {
    const parts = rig();
    const handle = vi.fn();
    const event = send(parts);
    await receivedBefore(parts);
    await held(parts, event, -1, 3, { unfinished: 2 });
    await consumer(parts, [leased(ThingHappened, handle)]).deliver();
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_SPENT',
      lastError: expect.stringContaining('The function ended before its handler did'),
    });
  });
});
