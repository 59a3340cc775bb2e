import type { Context, SQSEvent } from 'aws-lambda';
import { describe, expect, test, vi } from 'vitest';
import { createConsumer } from '../../../lambdas/runtime/consumer.ts';
import { AlreadyProcessed, PoisonMessage, TransactionCancelled } from '../../../lambdas/runtime/errors.ts';
import type { Envelope } from '../../../lambdas/runtime/event.ts';
import { mintEventId } from '../../../lambdas/runtime/event-id.ts';
import { type Handler, leased, transactional } from '../../../lambdas/runtime/handler.ts';
import { effectKey, inboxKey, rejectedKey } from '../../../lambdas/runtime/rows.ts';
import { lambdaContext, type QueueHandler } from '../../../lambdas/runtime/testing.ts';
import { bench, consumerConfig, runThrough, ThingHappened } from '../../support/runtime-bench.ts';

type Parts = ReturnType<typeof bench>;

const CONSUMER = consumerConfig.consumer;

/** A consumer on the bench, its queue, and one round of what Lambda does. */
function consumer(
  parts: Parts,
  handlers: readonly Handler[],
  table = parts.table,
  change: Partial<typeof consumerConfig> = {},
) {
  const { queue, clock, telemetry } = parts;
  const config = { ...consumerConfig, ...change };
  const handle = createConsumer({ config, table, queue, handlers, clock, telemetry });
  return {
    handle,
    /** Delivers what is visible to one invocation of the function. */
    deliver: (timeoutMs = 30_000) =>
      runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs }))),
    /** Delivers until the queue is empty, or `rounds` are over. */
    async drain(rounds = 30): Promise<void> {
      for (let round = 0; round < rounds && queue.messages().length > 0; round += 1) {
        await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
        const next = Math.min(...queue.messages().map((message) => message.visibleAt));
        if (Number.isFinite(next)) await clock.advance(Math.max(1, next - clock.now()));
      }
    },
  };
}

function envelope(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const eventId = mintEventId(parts.clock.now(), 2);
  return {
    eventId,
    type: 'ThingHappened',
    version: 2,
    aggregateType: 'Thing',
    aggregateId: '1',
    occurredAt: parts.clock.now(),
    correlationId: 'chain',
    data: { n: 1 },
    ...change,
  };
}

/** The body of an SQS message as EventBridge sends it. */
const body = (detail: unknown) => ({ id: 'e', 'detail-type': 'ThingHappened', source: 'things', detail });

function send(parts: Parts, change: Partial<Envelope> = {}): Envelope {
  const sent = envelope(parts, change);
  parts.queue.send(body(sent));
  return sent;
}

const inboxRow = (parts: Parts, event: Envelope) => parts.memory.item(inboxKey(CONSUMER, event.eventId));
const pointer = (parts: Parts, event: Envelope) => parts.memory.item(rejectedKey(CONSUMER, event.eventId));
const domainRow = {
  Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 }, ConditionExpression: 'attribute_not_exists(PK)' },
};

describe('a leased handler', () => {
  test('is given the event and its message is processed, once', async () => {
    const parts = bench();
    const handle = vi.fn(async () => ({ fine: true }));
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    parts.queue.send(body(event)); // the same event again, as a message of its own
    await deliver();
    await consumer(parts, [leased(ThingHappened, handle)]).drain();
    expect(handle).toHaveBeenCalledExactlyOnceWith(event, expect.objectContaining({ attempt: 1 }));
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      attempts: 1,
      result: '{"fine":true}',
      schema: 1,
      expiresAt: expect.any(Number),
    });
    expect(parts.queue.messages()).toEqual([]);
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test('commits its writes, its events and its message in one transaction', async () => {
    const parts = bench();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) =>
        ctx.commit({ writes: [domainRow], events: [parts.happened(7)] }),
      ),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
    const caused = JSON.parse(parts.rows()[0]?.envelope ?? '') as Envelope;
    expect(caused).toMatchObject({ causationId: event.eventId, correlationId: 'chain', data: { n: 7 } });
  });

  test('that throws is tried again after a backoff, with one attempt more', async () => {
    const parts = bench();
    const attempts: number[] = [];
    const { drain, deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        attempts.push(ctx.attempt);
        if (ctx.attempt < 3) throw new Error('bank answered 503');
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: 'bank answered 503',
      fingerprint: 'worker Error: bank answered #',
    });
    expect(inboxRow(parts, event)).not.toHaveProperty('expiresAt');
    await drain();
    expect(attempts).toEqual([1, 2, 3]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that always throws is rejected when its attempts are spent, and goes to the DLQ by SQS’s own route', async () => {
    const parts = bench();
    const handle = vi.fn(async () => {
      throw new Error('never');
    });
    const event = send(parts);
    await consumer(parts, [leased(ThingHappened, handle)]).drain();
    expect(handle).toHaveBeenCalledTimes(3);
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_SPENT',
      attempts: 3,
    });
    expect(inboxRow(parts, event)?.lastError).toContain('Error: never');
    expect(pointer(parts, event)).toMatchObject({ reason: 'ATTEMPTS_SPENT' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('that throws PoisonMessage is rejected at once; fixed and redriven it is processed, and the pointer goes', async () => {
    const parts = bench();
    let fixed = false;
    const handle = vi.fn(async (_event: unknown, ctx: { attempt: number }) => {
      if (!fixed) throw new PoisonMessage('currency is not supported');
      expect(ctx.attempt).toBe(1);
    });
    const { drain } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    await drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(handle).toHaveBeenCalledTimes(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(pointer(parts, event)).toBeUndefined();
  });

  test('that throws AlreadyProcessed is processed; a downstream 409 or 422 is a failure like others', async () => {
    const parts = bench();
    const one = send(parts, { data: { n: 1 } });
    const two = send(parts, { data: { n: 2 } });
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (event) => {
        if (event.data.n === 1) throw new AlreadyProcessed('imported');
        throw Object.assign(new Error('downstream'), { statusCode: 422, status: 409 });
      }),
    ]);
    await deliver();
    expect(inboxRow(parts, one)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, two)).toMatchObject({ status: 'FAILED' });
  });

  test('a refused domain condition is its failure, not a lost claim and not a success', async () => {
    const parts = bench();
    await parts.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
    const errors: unknown[] = [];
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ writes: [domainRow] }).catch((error: unknown) => {
          errors.push(error);
          throw error;
        });
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(errors).toMatchObject([
      { code: 'TRANSACTION_CANCELLED', reasons: [{ code: 'ConditionalCheckFailed' }] },
    ]);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
  });

  test('commits once, and runs no effect after that; what it throws then is logged', async () => {
    const parts = bench();
    const codes: string[] = [];
    const note = (error: { code: string }) => void codes.push(error.code);
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ writes: [domainRow] });
        await ctx.commit({}).catch(note);
        await ctx.once('late', async () => 1).catch(note);
        throw new Error('after');
      }),
    ]);
    await deliver();
    expect(codes).toEqual(['AFTER_COMMIT', 'AFTER_COMMIT']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.queue.messages()).toEqual([]);
    expect(parts.telemetry.lines()).toContainEqual(
      expect.objectContaining({ message: expect.stringContaining('after its commit') }),
    );
  });

  test('that commits twice at once has one commit; the other is told so', async () => {
    const parts = bench();
    const other = { Put: { Item: { PK: 'OTHER', SK: 'OTHER' } } };
    const ends: string[] = [];
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        const both = await Promise.allSettled([
          ctx.commit({ writes: [domainRow], events: [parts.happened(1)] }),
          ctx.commit({ writes: [other] }),
        ]);
        ends.push(...both.map((end) => end.status));
      }),
    ]);
    await deliver();
    expect(ends).toEqual(['fulfilled', 'rejected']);
    expect(parts.memory.item({ PK: 'OTHER', SK: 'OTHER' })).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('whose first commit happens late, after it was reported as refused, does not pass off the second as done', async () => {
    const parts = bench();
    const other = { Put: { Item: { PK: 'OTHER', SK: 'OTHER' } } };
    let late: (() => Promise<void>) | undefined;
    const table = {
      ...parts.memory,
      transact: async (actions: Parameters<typeof parts.memory.transact>[0]) => {
        if (late === undefined) {
          late = () => parts.memory.transact(actions);
          throw new TransactionCancelled([{ code: 'None' }, { code: 'ConditionalCheckFailed' }]);
        }
        await late();
        await parts.memory.transact(actions);
      },
    };
    const event = send(parts);
    const ends: string[] = [];
    const handler = leased(ThingHappened, async (_event, ctx) => {
      for (const writes of [[domainRow], [other]]) {
        await ctx.commit({ writes }).then(
          () => ends.push('done'),
          (error: { code: string }) => ends.push(error.code),
        );
      }
    });
    await consumer(parts, [handler], table).deliver();
    expect(ends).toEqual(['TRANSACTION_CANCELLED', 'FENCE_LOST']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item({ PK: 'OTHER', SK: 'OTHER' })).toBeUndefined();
  });

  test('that does not await its commit, or its effect, is waited for', async () => {
    const parts = bench();
    const event = send(parts);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        void ctx.once('mail', async () => {
          await parts.clock.sleep(2_000);
          return 'sent';
        });
        void parts.clock.sleep(1_000).then(() => ctx.commit({ writes: [domainRow] }));
        await parts.clock.sleep(1_500);
      }),
    ]);
    await deliver();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.memory.item(effectKey(CONSUMER, event.eventId, 'mail'))).toMatchObject({
      status: 'COMPLETED',
    });
  });

  test('whose commit is begun by an effect that it did not await is waited for, however slow', async () => {
    const parts = bench();
    const table = {
      ...parts.memory,
      transact: async (...args: Parameters<typeof parts.memory.transact>) => {
        await parts.clock.sleep(300);
        await parts.memory.transact(...args);
      },
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      void ctx
        .once('mail', async () => parts.clock.sleep(1_000))
        .then(() => ctx.commit({ writes: [domainRow], events: [parts.happened(1)] }));
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', commitId: expect.any(String) });
    expect(parts.rows()).toHaveLength(1);
  });

  test('is completed in time also when a heartbeat hangs', async () => {
    const parts = bench();
    const event = send(parts);
    let writes = 0;
    const table = {
      ...parts.memory,
      write: async (write: Parameters<typeof parts.memory.write>[0]) => {
        writes += 1;
        if (writes === 2) await parts.clock.sleep(18_000); // the renewal
        return parts.memory.write(write);
      },
    };
    const startedAt = parts.clock.now();
    await consumer(parts, [leased(ThingHappened, () => parts.clock.sleep(10_500))], table).deliver(15_000);
    expect(parts.clock.now() - startedAt).toBeLessThan(15_000);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that swallows a commit of which no answer came is not taken for done', async () => {
    const parts = bench();
    const table = {
      ...parts.memory,
      transact: () => Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })),
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) =>
      ctx.commit({ writes: [domainRow] }).catch(() => {}),
    );
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'socket hang up' });
    await consumer(parts, [handler]).drain();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
  });

  test('that begins a commit after it has returned is refused it, and told so', async () => {
    const parts = bench();
    const codes: string[] = [];
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      void parts.clock
        .sleep(5_000)
        .then(() => ctx.commit({ writes: [domainRow] }))
        .catch((error: { code: string }) => codes.push(error.code));
    });
    await consumer(parts, [handler]).deliver();
    await parts.clock.advance(6_000);
    expect(codes).toEqual(['HANDLER_ENDED']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.telemetry.lines().map(({ message }) => message)).toContainEqual(
      expect.stringContaining('after its handler had returned'),
    );
  });

  test('that says its work was done already, after a commit of which no answer came, is not taken at its word', async () => {
    const parts = bench();
    const table = {
      ...parts.memory,
      transact: () => Promise.reject(Object.assign(new Error('socket hang up'), { name: 'TimeoutError' })),
    };
    const event = send(parts);
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {
        throw new AlreadyProcessed('or so it seems');
      });
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'socket hang up' });
  });

  test.each([[null], [undefined], ['a text'], [{ message: 7 }]])(
    'that throws %j fails alone',
    async (thrown) => {
      for (const kind of [leased, transactional]) {
        const parts = bench();
        const bad = send(parts, { data: { n: 1 } });
        const good = send(parts, { data: { n: 2 } });
        const { deliver } = consumer(parts, [
          kind(ThingHappened, async (event: Envelope<string, { n: number }>) => {
            if (event.data.n === 1) throw thrown;
            return {};
          }),
        ]);
        await expect(deliver()).resolves.toMatchObject({ failed: [expect.any(String)] });
        expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
        expect(inboxRow(parts, bad)?.status).not.toBe('PROCESSED');
      }
    },
  );

  test('whose effect is running when the time is up is stopped with its function, not answered for', async () => {
    const parts = bench();
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

  test('longer than its lease and its visibility is kept up by one heartbeat', async () => {
    const parts = bench();
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

  test('that lost its lease is told so, and can write nothing', async () => {
    const parts = bench();
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
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeUndefined();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', fence: 'other' });
  });

  test('whose commit’s answer was lost is processed, and written once', async () => {
    const parts = bench();
    let lost = 0;
    const table = {
      ...parts.memory,
      transact: async (...args: Parameters<typeof parts.memory.transact>) => {
        await parts.memory.transact(...args);
        lost += 1;
        if (lost <= 2) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
      },
    };
    const event = send(parts);
    const handle = vi.fn(async (_event: unknown, ctx: { commit(c: object): Promise<void> }) =>
      ctx.commit({ writes: [domainRow] }),
    );
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)], table);
    await deliver();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.queue.messages()).toEqual([]);
  });

  test('that is still running when the function’s time is up keeps its lease; the message waits for the end', async () => {
    const parts = bench();
    const event = send(parts);
    const { deliver } = consumer(parts, [leased(ThingHappened, () => parts.clock.sleep(1_000_000))]);
    const startedAt = parts.clock.now();
    await deliver(20_000);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', endsBy: startedAt + 20_000 });
    const [message] = parts.queue.messages();
    expect(message?.visibleAt).toBeGreaterThan(startedAt + 20_000);
    expect(message?.visibleAt).toBeLessThan(startedAt + 23_000);
  });

  test('is not begun when the function has too little time left', async () => {
    const parts = bench();
    const handle = vi.fn();
    const event = send(parts);
    await consumer(parts, [leased(ThingHappened, handle)]).deliver(1_500);
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toBeUndefined();
  });
});

describe('a message that somebody else holds', () => {
  const held = (parts: Parts, event: Envelope, leaseMs: number, attempts = 1) =>
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
        },
      },
    });

  /** Whoever holds the messages has received them, and SQS shows them again. */
  async function receivedBefore(parts: Parts): Promise<void> {
    parts.queue.receive();
    await parts.clock.advance(60_000);
  }

  test('sleeps for the rest of the lease, then until its owner is stopped; it is never put back at once', async () => {
    const parts = bench();
    const handle = vi.fn();
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    await held(parts, event, 9_500);
    const now = parts.clock.now();
    await deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(now + 10_500);
    expect(parts.queue.messages()[0]?.visibleAt).toBeLessThanOrEqual(now + 11_500);
    await parts.clock.advance(11_500);
    await held(parts, event, 9_500); // renewed: its owner is alive
    const then = parts.clock.now();
    await deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(then + 70_000);
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ attempts: 1, fence: 'other' });
  });

  test('is taken over when its lease has passed: last, alone, fewest attempts first', async () => {
    const parts = bench();
    const order: string[] = [];
    let running = 0;
    const [killer, victim, fresh] = [
      send(parts, { aggregateId: 'killer' }),
      send(parts, { aggregateId: 'victim' }),
      send(parts, { aggregateId: 'fresh' }),
    ];
    if (!killer || !victim || !fresh) throw new Error('unreachable');
    await receivedBefore(parts);
    await held(parts, killer, -1, 2);
    await held(parts, victim, -1, 1);
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (event, ctx) => {
        running += 1;
        order.push(`${event.aggregateId} ${ctx.attempt} with ${running}`);
        await parts.clock.sleep(3_000);
        running -= 1;
      }),
    ]);
    await deliver();
    expect(order).toEqual(['fresh 1 with 1', 'victim 2 with 1', 'killer 3 with 1']);
    expect(parts.telemetry.counted('LeasesExpired')).toBe(2);
  });

  test('that is received for the first time is run, whatever was counted under other messages', async () => {
    const parts = bench();
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

  test('and whose transactional handler throws in its first run has its attempts all the same', async () => {
    const parts = bench();
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

  test('past its attempts is rejected without being run: its process died each time', async () => {
    const parts = bench();
    const handle = vi.fn();
    const event = send(parts);
    await receivedBefore(parts);
    await held(parts, event, -1, 3);
    await consumer(parts, [leased(ThingHappened, handle)]).deliver();
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
  });
});

describe('a side effect', () => {
  test('runs under a stable key, and not again once its result is stored', async () => {
    const parts = bench();
    const keys: string[] = [];
    const results: unknown[] = [];
    const event = send(parts);
    const { drain } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        const charged = await ctx.once('charge', async (key) => {
          keys.push(key);
          return { id: 'c1', at: new Date(0) };
        });
        results.push(charged);
        if (ctx.attempt < 3) throw new Error('later step failed');
        await ctx.commit({ writes: [domainRow] });
      }),
    ]);
    await drain();
    expect(keys).toEqual([`worker:${event.eventId}:charge`]);
    expect(results).toEqual(Array(3).fill({ id: 'c1', at: '1970-01-01T00:00:00.000Z' }));
    const row = parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'));
    expect(row).toMatchObject({ status: 'COMPLETED', schema: 1, expiresAt: expect.any(Number) });
  });

  test('that fails is released and run again under the same key', async () => {
    const parts = bench();
    const keys: string[] = [];
    const event = send(parts);
    const { drain, deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('charge', async (key) => {
          keys.push(key);
          if (keys.length === 1) throw new Error('bank answered 500');
        });
      }),
    ]);
    await deliver();
    expect(parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'))).toMatchObject({
      status: 'RELEASED',
    });
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', lastError: 'bank answered 500' });
    await drain();
    expect(keys).toHaveLength(2);
    expect(new Set(keys).size).toBe(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that may still run elsewhere gives the attempt back and waits, whatever the handler makes of it', async () => {
    const parts = bench();
    const event = send(parts);
    const endsBy = parts.clock.now() + 20_000;
    await parts.memory.write({
      Put: {
        Item: {
          ...effectKey(CONSUMER, event.eventId, 'charge'),
          schema: 1,
          status: 'IN_PROGRESS',
          fence: 'dead',
          endsBy,
          startedAt: 0,
        },
      },
    });
    const ran = vi.fn(async () => 'ok');
    const codes: string[] = [];
    const { deliver, drain } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        try {
          await ctx.once('charge', ran);
        } catch (error) {
          codes.push((error as { code: string }).code);
          await ctx.commit({ writes: [domainRow] }); // a handler that swallows the error gets no further
        }
      }),
    ]);
    await deliver();
    expect(codes).toEqual(['EFFECT_IN_PROGRESS']);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(endsBy);
    expect(ran).not.toHaveBeenCalled();
    await drain();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test('that is left of a message whose own row has expired does not expire while it runs', async () => {
    const parts = bench();
    const event = send(parts);
    const effect = effectKey(CONSUMER, event.eventId, 'charge');
    const left = { status: 'RELEASED', fence: 'old', endsBy: 0, startedAt: 0, expiresAt: 1 };
    await parts.memory.write({ Put: { Item: { ...effect, schema: 1, ...left } } });
    const during: unknown[] = [];
    const charge = leased(ThingHappened, async (_event, ctx) => {
      await ctx.once('charge', async () => during.push(parts.memory.item(effect)));
    });
    await consumer(parts, [charge]).deliver();
    expect(during).toEqual([expect.not.objectContaining({ expiresAt: expect.anything() })]);
    expect(during).toMatchObject([{ status: 'IN_PROGRESS' }]);
  });

  test('of a worker that died may expire too, also where the one that took over did not come to it', async () => {
    const parts = bench();
    const event = send(parts);
    const effect = effectKey(CONSUMER, event.eventId, 'charge');
    const past = { fence: 'dead', endsBy: parts.clock.now() - 1 };
    await parts.memory.write({
      Put: { Item: { ...effect, schema: 1, status: 'COMPLETED', ...past, startedAt: 0 } },
    });
    await parts.memory.write({
      Put: {
        Item: {
          ...inboxKey(CONSUMER, event.eventId),
          schema: 1,
          status: 'PROCESSING',
          ...past,
          attempts: 1,
          leaseUntil: past.endsBy,
        },
      },
    });
    await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(parts.memory.item(effect)).toHaveProperty('expiresAt');
  });

  test('is not begun by a worker that lost its lease', async () => {
    const parts = bench();
    const event = send(parts);
    const ran = vi.fn();
    const { deliver } = consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await parts.memory.write({ Put: { Item: { ...inboxRow(parts, event), fence: 'other' } } });
        await ctx.once('charge', ran);
      }),
    ]);
    await deliver();
    expect(ran).not.toHaveBeenCalled();
    expect(parts.memory.item(effectKey(CONSUMER, event.eventId, 'charge'))).toBeUndefined();
  });

  test.each([
    ['is no JSON', () => ({ n: 1n }), 'EFFECT_RESULT_NOT_STORABLE'],
    ['is too long', () => 'x'.repeat(200_000), 'EFFECT_RESULT_NOT_STORABLE'],
  ])('whose result %s is not run again and again: the message is rejected', async (_what, result, reason) => {
    const parts = bench();
    const event = send(parts);
    const ran = vi.fn(async () => result());
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => void (await ctx.once('charge', ran))),
    ]).drain();
    expect(ran).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason });
  });

  test('has a name that can be a key, and is not run beside itself', async () => {
    const parts = bench();
    send(parts);
    const codes: string[] = [];
    const note = (error: { code: string }) => void codes.push(error.code);
    await consumer(parts, [
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.once('no name', async () => 1).catch(note);
        await Promise.all([
          ctx.once('a', async () => 1).catch(note),
          ctx.once('a', async () => 1).catch(note),
        ]);
      }),
    ]).deliver();
    expect(codes).toEqual(['BAD_EFFECT_NAME', 'EFFECT_RUNNING']);
  });

  test('is refused while Powertools Idempotency is switched off', async () => {
    vi.stubEnv('POWERTOOLS_IDEMPOTENCY_DISABLED', 'true');
    const parts = bench();
    const event = send(parts);
    const ran = vi.fn();
    await consumer(parts, [leased(ThingHappened, (_event, ctx) => ctx.once('charge', ran))]).deliver();
    vi.unstubAllEnvs();
    expect(ran).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)?.lastError).toContain('POWERTOOLS_IDEMPOTENCY_DISABLED');
  });
});

describe('a transactional handler', () => {
  test('writes, and is processed, in one call', async () => {
    const parts = bench();
    const transact = vi.fn(parts.memory.transact);
    const others = { write: vi.fn(), get: vi.fn(), query: vi.fn(), updateEach: vi.fn() };
    const { deliver } = consumer(
      parts,
      [transactional(ThingHappened, async () => ({ writes: [domainRow], events: [parts.happened(9)] }))],
      { ...parts.memory, ...others, transact },
    );
    const event = send(parts);
    await deliver();
    expect(transact).toHaveBeenCalledTimes(1);
    for (const call of Object.values(others)) expect(call).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      attempts: 1,
      fence: expect.any(String),
    });
    expect(JSON.parse(parts.rows()[0]?.envelope ?? '')).toMatchObject({ causationId: event.eventId });
  });

  test('that is delivered twice at once writes once', async () => {
    const parts = bench();
    const count = {
      Update: {
        Key: { PK: 'COUNT', SK: 'COUNT' },
        UpdateExpression: 'ADD n :one',
        ExpressionAttributeValues: { ':one': 1 },
      },
    };
    const handlers = [transactional(ThingHappened, async () => ({ writes: [count] }))];
    const event = send(parts);
    for (let i = 0; i < 4; i += 1) parts.queue.send(body(event));
    await consumer(parts, handlers).drain();
    expect(parts.memory.item({ PK: 'COUNT', SK: 'COUNT' })).toMatchObject({ n: 1 });
    expect(parts.queue.deadLetters()).toEqual([]);
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(4);
  });

  test('is run again on fresh reads when one of its conditions was refused', async () => {
    const parts = bench();
    let reads = 0;
    const { deliver } = consumer(parts, [
      transactional(ThingHappened, async () => {
        reads += 1;
        if (reads === 1) await parts.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
        const there = await parts.memory.get({ PK: 'THING#1', SK: 'THING' });
        return { writes: reads === 1 || !there ? [domainRow] : [] };
      }),
    ]);
    const event = send(parts);
    await deliver();
    expect(reads).toBe(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that fails writes no row at its first receive; then it is claimed, and its attempts are counted', async () => {
    const parts = bench();
    const handle = vi.fn(async () => {
      throw new Error('table is gone');
    });
    const { drain, deliver } = consumer(parts, [transactional(ThingHappened, handle)]);
    const event = send(parts);
    await deliver();
    expect(inboxRow(parts, event)).toBeUndefined();
    await parts.clock.advance(3_000);
    await deliver();
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'FAILED',
      attempts: 1,
      lastError: 'table is gone',
    });
    await parts.clock.advance(5_000);
    await drain();
    expect(handle).toHaveBeenCalledTimes(4); // the first one left no trace
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_SPENT',
      attempts: 3,
    });
    expect(pointer(parts, event)).toBeDefined();
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('whose first receive never came to its handler is not out of attempts', async () => {
    const parts = bench();
    const event = send(parts);
    parts.queue.receive(); // handed out, and the function was throttled
    await parts.clock.advance(consumerConfig.visibilityTimeoutMs);
    const handle = vi.fn(async () => ({}));
    await consumer(parts, [transactional(ThingHappened, handle)], parts.table, { maxAttempts: 1 }).drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('that kills its process does not take its batch along', async () => {
    const parts = bench();
    const killer = send(parts, { aggregateId: 'killer' });
    const siblings = Array.from({ length: 9 }, (_, n) => send(parts, { aggregateId: `sibling-${n}` }));
    /** A process that ends in the middle of the killer's handler: from then on nothing happens, and nobody is answered. */
    const mortal = (): QueueHandler => {
      let dead = false;
      const table = new Proxy(parts.memory, {
        get: (target, name) => {
          const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
          return (...args: unknown[]) => (dead ? new Promise(() => {}) : call(...args));
        },
      });
      const handler = transactional(ThingHappened, async (event) => {
        await parts.clock.sleep(100);
        if (event.aggregateId === 'killer') dead = true;
        if (dead) await new Promise(() => {});
        return {};
      });
      const { handle } = consumer(parts, [handler], table);
      const killed = () => Promise.reject(new Error('the process is gone'));
      return (event, context) =>
        Promise.race([handle(event, context), parts.clock.sleep(31_000).then(killed)]);
    };
    for (let round = 0; round < 20 && parts.queue.messages().length > 0; round += 1) {
      await runThrough(parts.clock, parts.queue.deliver(mortal(), 10, lambdaContext({ clock: parts.clock })));
      const next = Math.min(...parts.queue.messages().map((message) => message.visibleAt));
      if (Number.isFinite(next)) await parts.clock.advance(Math.max(1, next - parts.clock.now()));
    }
    for (const sibling of siblings) expect(inboxRow(parts, sibling)).toMatchObject({ status: 'PROCESSED' });
    expect(inboxRow(parts, killer)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('that fills its transaction is processed also after a redrive, which takes one action more', async () => {
    const parts = bench();
    let fixed = false;
    const writes = Array.from({ length: 98 }, (_, n) => ({ Put: { Item: { PK: `W#${n}`, SK: 'W' } } }));
    const { drain } = consumer(parts, [
      transactional(ThingHappened, async () => {
        if (!fixed) throw new PoisonMessage('not yet');
        return { writes };
      }),
    ]);
    const event = send(parts);
    await drain();
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('rejected, then redriven, is processed and its pointer goes with the same transaction', async () => {
    const parts = bench();
    let fixed = false;
    const { drain } = consumer(parts, [
      transactional(ThingHappened, async () => {
        if (!fixed) throw new PoisonMessage('bad');
        return { writes: [domainRow] };
      }),
    ]);
    const event = send(parts);
    await drain();
    expect(pointer(parts, event)).toBeDefined();
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(pointer(parts, event)).toBeUndefined();
    expect(parts.memory.item({ PK: 'THING#1', SK: 'THING' })).toBeDefined();
  });

  test('that returns nothing fails with an error that says so', async () => {
    const parts = bench();
    send(parts);
    await consumer(parts, [transactional(ThingHappened, (async () => undefined) as never)]).deliver();
    expect(
      JSON.stringify(parts.telemetry.lines().map((line) => String((line.extra as { error: Error }).error))),
    ).toContain('must return { writes, events }');
  });
});

describe('bad input is rejected, goes to the DLQ, and its neighbours are processed', () => {
  const old = mintEventId(Date.UTC(2025, 0, 1), 2);

  test.each<[string, unknown, string]>([
    ['a body that is no JSON', 'no json', 'UNREADABLE_MESSAGE'],
    ['a body without detail', { hello: 1 }, 'UNREADABLE_MESSAGE'],
    ['a detail that is null', { detail: null }, 'UNREADABLE_MESSAGE'],
    ['an envelope without an id', { eventId: undefined }, 'UNREADABLE_MESSAGE'],
    ['an id that is none', { eventId: '7' }, 'UNREADABLE_MESSAGE'],
    ['an unknown type', { type: 'Unheard' }, 'UNKNOWN_EVENT_TYPE'],
    ['a version of the future', { version: 3 }, 'UNKNOWN_EVENT_VERSION'],
    ['a payload that fails its schema', { data: { n: 'x' } }, 'INVALID_PAYLOAD'],
    ['a payload that the upcast cannot read', { version: 1, data: null }, 'INVALID_PAYLOAD'],
    ['an event older than the inbox retention', { eventId: old }, 'EVENT_TOO_OLD'],
  ])('%s', async (what, change, reason) => {
    for (const kind of [leased, transactional]) {
      const parts = bench();
      const handle = vi.fn(async () => ({}));
      parts.queue.send(
        what.includes('body') || what.includes('detail')
          ? change
          : body({ ...envelope(parts), ...(change as object) }),
      );
      const good = send(parts);
      await consumer(parts, [kind(ThingHappened, handle)]).drain();
      expect(handle).toHaveBeenCalledTimes(1);
      expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
      const rejected = parts.memory.items().filter((item) => item.status === 'REJECTED');
      expect(rejected).toMatchObject([
        { reason, schema: 1, fingerprint: expect.stringContaining(`worker ${reason}`) },
      ]);
      expect(parts.memory.items().filter((item) => String(item.PK).startsWith('REJECTED#'))).toHaveLength(1);
      expect(parts.queue.deadLetters()).toHaveLength(1);
    }
  });

  test('an old version is upcast', async () => {
    const parts = bench();
    const handle = vi.fn();
    send(parts, { version: 1, data: { text: '42' } });
    await consumer(parts, [leased(ThingHappened, handle)]).deliver();
    expect(handle).toHaveBeenCalledWith(
      expect.objectContaining({ version: 2, data: { n: 42 } }),
      expect.anything(),
    );
  });

  test('a message too old to run does not run when it is redriven, until an operator says so', async () => {
    const parts = bench();
    const handle = vi.fn(async () => ({}));
    const { drain } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts, { eventId: old });
    await drain();
    parts.queue.redrive();
    await drain();
    expect(handle).not.toHaveBeenCalled();
    await parts.memory.write({
      Update: {
        Key: { ...inboxKey(CONSUMER, old) },
        UpdateExpression: 'SET runAnyway = :yes',
        ExpressionAttributeValues: { ':yes': true },
      },
    });
    parts.queue.redrive();
    await drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a message too old to run does not run by way of another rejection either', async () => {
    for (const kind of [leased, transactional]) {
      const parts = bench();
      const handle = vi.fn(async () => ({}));
      send(parts, { eventId: old, type: 'Unheard' });
      await consumer(parts, []).drain(); // deployed without its handler
      expect(parts.memory.item(inboxKey(CONSUMER, old))).toMatchObject({
        status: 'REJECTED',
        reason: 'EVENT_TOO_OLD',
      });
      parts.queue.redrive();
      await consumer(parts, [kind({ ...ThingHappened, type: 'Unheard' }, handle)]).drain();
      expect(handle).not.toHaveBeenCalled();
    }
  });

  test.each([[undefined], [{}], [{ Records: 'x' }], [{ Records: [null, {}, { messageId: 7 }] }]])(
    'an event like %j fails nobody',
    async (event) => {
      const parts = bench();
      const { handle } = consumer(parts, [leased(ThingHappened, vi.fn())]);
      await expect(
        handle(event as unknown as SQSEvent, lambdaContext({ clock: parts.clock }) as Context),
      ).resolves.toEqual({
        batchItemFailures: [],
      });
    },
  );
});

test('a table that does not answer fails the message, not the batch, and it comes again', async () => {
  const parts = bench();
  const event = send(parts);
  const broken = { ...parts.memory, write: () => Promise.reject(new Error('connect ECONNREFUSED')) };
  const handle = vi.fn();
  await expect(consumer(parts, [leased(ThingHappened, handle)], broken).deliver()).resolves.toMatchObject({
    failed: [expect.any(String)],
  });
  expect(handle).not.toHaveBeenCalled();
  expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(parts.clock.now());
  await consumer(parts, [leased(ThingHappened, handle)]).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});

test('two handlers of one event type are refused', () => {
  const parts = bench();
  const twice = [leased(ThingHappened, vi.fn()), transactional(ThingHappened, vi.fn())];
  expect(() => consumer(parts, twice)).toThrow('Two handlers take ThingHappened');
});
