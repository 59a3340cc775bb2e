import { describe, expect, test } from 'vitest';
import { latest, strict } from '../../../../lambdas/runtime/base/order.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Limit } from '../../../../lambdas/runtime/consume/limits.ts';
import { createMysqlConsumer } from '../../../../lambdas/runtime/mysql/mysql-consumer.ts';
import { createPostgresConsumer } from '../../../../lambdas/runtime/postgres/postgres-consumer.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { limitKey } from '../../../../lambdas/runtime/store/keys.ts';
import { Counted, consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { awsError, CONSUMER, consumer, crashable, inboxRow, type Parts, send } from './consumer-rig.ts';

/** One run per 10 seconds, which the lease of 30 seconds allows. */
const SLOW = { key: () => 'm', perSecond: 0.1 };

const bucketKey = limitKey({ consumer: CONSUMER, source: 'things', type: 'ThingHappened' }, 'm');

/** A consumer with a limit, and the times of its runs since the start. */
function limited(limit: Limit<typeof ThingHappened>, options: Parameters<typeof rig>[0] = {}) {
  const parts: Parts = rig(options);
  const startedAt = parts.clock.now();
  const ran: number[] = [];
  const handler = leased(
    ThingHappened,
    async () => {
      ran.push(parts.clock.now() - startedAt);
    },
    { limit },
  );
  return { ...parts, ...consumer(parts, [handler], parts.table), ran, handler, parts };
}

describe('a limited message', () => {
  test('runs with a token, and leaves a bucket that expires', async () => {
    const one = limited(SLOW);
    const event = send(one.parts);
    const now = one.clock.now();
    await one.deliver();
    expect(inboxRow(one.parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    const bucket = one.memory.item(bucketKey);
    expect(bucket).toMatchObject({ schema: 1, everyMs: 10_000, burstMs: 0 });
    expect(Number(bucket?.nextAt) - now).toBeGreaterThanOrEqual(10_000);
    expect(Number(bucket?.expiresAt) * 1_000).toBeGreaterThan(now + 86_400_000);
  });

  test('without a token returns to its queue until its slot: no attempt, no error, and its row says for what it waits', async () => {
    const one = limited(SLOW);
    const events = [send(one.parts), send(one.parts), send(one.parts)];
    await one.deliver();
    const waiting = events
      .map((event) => inboxRow(one.parts, event))
      .filter((row) => row?.status === 'FAILED')
      .sort((a, b) => Number(a?.retryAt) - Number(b?.retryAt));
    expect(waiting).toHaveLength(2);
    for (const row of waiting) {
      expect(row).toMatchObject({
        attempts: 0,
        pastAttempts: [
          {
            attempt: 1,
            ended: 'waited',
            wait: { times: 1, limit: { name: 'ThingHappened', key: 'm', slotAt: expect.any(Number) } },
          },
        ],
      });
      expect(row).not.toHaveProperty('lastError');
      expect(row?.pastAttempts?.[0]).not.toHaveProperty('error');
    }
    const [first, second] = waiting.map((row) => Number(row?.retryAt));
    expect(Number(second) - Number(first)).toBeGreaterThanOrEqual(9_000);
    expect(one.telemetry.counted('MessagesLimited')).toBe(2);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    expect(one.telemetry.lines().filter(({ level }) => level === 'error')).toEqual([]);
    await one.drain();
    expect(one.queue.messages()).toEqual([]);
    expect(one.queue.deadLetters()).toEqual([]);
    for (const event of events)
      expect(inboxRow(one.parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    const gaps = one.ran.slice(1).map((at, i) => at - Number(one.ran[i]));
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(9_900);
  });

  test('needs two receives, however long the line: forty messages with a queue that allows three', async () => {
    const one = limited({ key: () => 'm', perSecond: 1 }, { maxReceiveCount: 3 });
    for (let n = 0; n < 40; n += 1) send(one.parts);
    await one.drain(300);
    expect(one.queue.deadLetters()).toEqual([]);
    expect(one.ran).toHaveLength(40);
    expect(Math.max(...one.ran)).toBeLessThan(48_000);
  });

  test('waits in its function for a token that is free within two seconds', async () => {
    const one = limited({ key: () => 'm', perSecond: 1 });
    send(one.parts);
    send(one.parts);
    await one.deliver();
    expect(one.queue.messages()).toEqual([]);
    expect(Number(one.ran[1]) - Number(one.ran[0])).toBeGreaterThanOrEqual(1_000);
    expect(one.telemetry.counted('MessagesLimited')).toBe(0);
  });

  test('of another key has its own bucket', async () => {
    const one = limited({ key: ({ data }) => `m${data.n}`, perSecond: 0.1 });
    for (const n of [1, 2, 3]) send(one.parts, { data: { n } });
    await one.deliver();
    expect(one.ran).toHaveLength(3);
  });

  test('that comes before its slot keeps it, and takes neither a token nor a new slot', async () => {
    const one = limited(SLOW);
    send(one.parts);
    const event = send(one.parts);
    await one.deliver();
    const before = one.memory.item(bucketKey);
    const slotAt = inboxRow(one.parts, event)?.pastAttempts?.[0].wait.limit.slotAt;
    const body = one.queue.messages()[0]?.body ?? '';
    one.queue.send(JSON.parse(body)); // a duplicate
    await one.deliver();
    expect(one.memory.item(bucketKey)).toEqual(before);
    const row = inboxRow(one.parts, event);
    expect(row?.pastAttempts).toMatchObject([{ wait: { times: 2, limit: { slotAt } } }]);
  });

  test('takes a token for each attempt, and a failure is counted as ever', async () => {
    const parts = rig();
    const runs: number[] = [];
    const handler = leased(
      ThingHappened,
      async (_, ctx) => {
        runs.push(parts.clock.now());
        if (ctx.attempt === 1) throw new Error('down');
      },
      { limit: SLOW },
    );
    const event = send(parts);
    await consumer(parts, [handler]).drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 2 });
    expect(Number(runs[1]) - Number(runs[0])).toBeGreaterThanOrEqual(9_900);
  });

  test('whose process dies after the token wastes it, and the limit holds', async () => {
    const parts = rig({ maxReceiveCount: 20 });
    const startedAt: number[] = [];
    const poller = crashable(parts, ({ kill }) => [
      leased(
        ThingHappened,
        async () => {
          startedAt.push(parts.clock.now());
          if (startedAt.length === 1) await kill();
        },
        { limit: SLOW },
      ),
    ]);
    send(parts);
    send(parts);
    await poller.drain();
    expect(startedAt).toHaveLength(3);
    for (const [i, at] of startedAt.slice(1).entries())
      expect(at - Number(startedAt[i])).toBeGreaterThanOrEqual(9_900);
  });

  test('starts with no token that its table gave too late: the next one is taken', async () => {
    let slow = true;
    const one = limited(
      { key: () => 'm', perSecond: 1 },
      {
        wrap: (memory) => ({
          ...memory,
          write: async (write) => {
            const item = await memory.write(write);
            if (slow && JSON.stringify(write).includes('nextAt')) {
              slow = false;
              await one.clock.sleep(5_000);
            }
            return item;
          },
        }),
      },
    );
    const event = send(one.parts);
    const begun = one.clock.now();
    await one.deliver();
    expect(inboxRow(one.parts, event)?.status).toBe('PROCESSED');
    expect(Number(one.memory.item(bucketKey)?.nextAt) - begun).toBeGreaterThan(5_000);
  });

  test('whose bucket cannot be reached is released without an attempt', async () => {
    let throttles = true;
    const one = limited(SLOW, {
      wrap: (memory) => ({
        ...memory,
        write: async (write) => {
          if (throttles && JSON.stringify(write).includes('LIMIT#')) throw awsError('ThrottlingException');
          return memory.write(write);
        },
      }),
    });
    const event = send(one.parts);
    await one.deliver();
    expect(inboxRow(one.parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(one.ran).toEqual([]);
    throttles = false;
    await one.drain();
    expect(one.ran).toHaveLength(1);
  });

  test('of a shared limit takes from the bucket of its name, in every consumer', async () => {
    const parts = rig();
    const ran: string[] = [];
    const handlerOf = (name: string) =>
      leased(ThingHappened, async () => void ran.push(name), { limit: { ...SLOW, name: 'bank' } });
    const first = consumer(parts, [handlerOf('first')]);
    send(parts);
    await first.deliver();
    const second = consumer(parts, [handlerOf('second')], parts.table, { consumer: CONSUMER });
    send(parts);
    await second.deliver();
    expect(ran).toEqual(['first']);
    expect(parts.memory.item(limitKey({ name: 'bank' }, 'm'))).toBeDefined();
    expect(parts.memory.item(bucketKey)).toBeUndefined();
  });

  test('warns once of another rate under its name', async () => {
    const one = limited({ ...SLOW, name: 'bank' });
    const { PK, SK } = limitKey({ name: 'bank' }, 'm');
    const nextAt = one.clock.now() + 1_000;
    await one.memory.write({ Put: { Item: { PK, SK, schema: 1, nextAt, everyMs: 5, burstMs: 0 } } });
    send(one.parts);
    send(one.parts);
    await one.deliver();
    const warnings = one.telemetry
      .lines()
      .filter(({ message }) => message.includes('another perSecond, burst or concurrency'));
    expect(warnings).toHaveLength(1);
  });
});

describe('a key that cannot be used rejects its message, which a redrive can repair', () => {
  test('an asynchronous function that fails, in whose process the others go on', async () => {
    const one = limited({
      key: (async () => {
        throw new TypeError('secret 4111');
      }) as never,
      perSecond: 1,
    });
    const event = send(one.parts);
    await one.drain();
    // An unhandled rejection would fail this test.
    await new Promise((resolve) => setImmediate(resolve));
    const row = inboxRow(one.parts, event);
    expect(row).toMatchObject({ status: 'REJECTED', reason: 'BAD_LIMIT_KEY' });
    expect(row?.lastError).toContain('returned object');
  });

  const cases: readonly (readonly [string, unknown, string])[] = [
    ['missing', undefined, 'returned undefined'],
    ['null', null, 'returned null'],
    ['a number', 7, 'returned number'],
    ['empty', '', 'returned a string of 0 bytes'],
    ['of 1,025 bytes', `${'é'.repeat(512)}x`, 'returned a string of 1025 bytes'],
    ['of 2,049 bytes', 'x'.repeat(2_049), 'returned a string of 2049 bytes'],
    ['half of a character', '\ud800', 'half of a surrogate pair'],
    ['a promise', Promise.resolve('m'), 'returned object'],
  ];

  test.each(cases)('%s', async (_, key, text) => {
    let isFixed = false;
    const one = limited({ key: () => (isFixed ? 'm' : (key as string)), perSecond: 1 });
    const event = send(one.parts);
    await one.drain();
    expect(inboxRow(one.parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'BAD_LIMIT_KEY',
      lastError: expect.stringContaining(text),
    });
    expect(one.ran).toEqual([]);
    isFixed = true;
    one.queue.redrive();
    await one.drain();
    expect(one.ran).toHaveLength(1);
  });

  test('a function that throws, without the text of its error', async () => {
    const one = limited({
      key: () => {
        throw new TypeError('secret 4111');
      },
      perSecond: 1,
    });
    const event = send(one.parts);
    await one.drain();
    const row = inboxRow(one.parts, event);
    expect(row).toMatchObject({ status: 'REJECTED', reason: 'BAD_LIMIT_KEY' });
    expect(row?.lastError).toContain('threw TypeError');
    expect(row?.lastError).not.toContain('4111');
  });

  test('1,024 bytes are a key', async () => {
    const one = limited({ key: () => 'x'.repeat(1_024), perSecond: 1 });
    send(one.parts);
    await one.drain();
    expect(one.ran).toHaveLength(1);
  });
});

describe('a limit that cannot be used is refused when the consumer is created', () => {
  const made =
    (limit: unknown, more: readonly Handler[] = []) =>
    () =>
      consumer(rig(), [leased(ThingHappened, async () => {}, { limit: limit as never }), ...more]);
  const refused = (text: string) =>
    expect.objectContaining({ code: 'BAD_CONSUMER', message: expect.stringContaining(text) });
  const key = () => 'm';

  test.each([
    [{ key, perSecond: 0 }, 'limit.perSecond is 0'],
    [{ key, perSecond: -1 }, 'limit.perSecond is -1'],
    [{ key, perSecond: Number.NaN }, 'limit.perSecond is NaN'],
    [{ key, perSecond: Number.POSITIVE_INFINITY }, 'limit.perSecond is Infinity'],
    [{ key, perSecond: 301 }, 'limit.perSecond is 301; it must be more than 0 and at most 300.'],
    [{ key, perSecond: Symbol('5') }, 'limit.perSecond is Symbol(5)'],
    [
      { key, perSecond: 0.03 },
      'limit.perSecond is 0.03; it must be at least 0.034, one run per lease of 30 s',
    ],
    [{ key, perSecond: '5' }, 'limit.perSecond is "5"'],
    [{ key }, 'limit has neither perSecond nor concurrency'],
    [{ key, burst: 2 }, 'limit has neither perSecond nor concurrency'],
    [{ key, concurrency: 2, burst: 2 }, 'limit.burst is 2 without perSecond'],
    [{ key, concurrency: 0 }, 'limit.concurrency is 0; it must be a whole number from 1 to 50.'],
    [{ key, concurrency: 1.5 }, 'limit.concurrency is 1.5'],
    [{ key, concurrency: 51 }, 'limit.concurrency is 51'],
    [{ key, concurrency: '2' }, 'limit.concurrency is "2"; it must be a whole number from 1 to 50.'],
    [{ key, concurrency: -1 }, 'limit.concurrency is -1'],
    [{ key, concurrency: Number.NaN }, 'limit.concurrency is NaN'],
    [{ key, concurrency: Number.POSITIVE_INFINITY }, 'limit.concurrency is Infinity'],
    [{ concurrency: 2 }, 'limit.key is missing'],
    [{ key, concurrency: null }, 'limit.concurrency is null'],
    [{ key, concurency: 2 }, 'limit.concurency is not a property'],
    [{ perSecond: 1 }, 'limit.key is missing'],
    [{ key: 'merchantId', perSecond: 1 }, 'limit.key is of type string'],
    [{ key, perSecond: 1, burst: 0 }, 'limit.burst is 0'],
    [{ key, perSecond: 1, burst: 1.5 }, 'limit.burst is 1.5'],
    [{ key, perSecond: 1, burst: 1_001 }, 'limit.burst is 1001'],
    [{ key, perSecond: 1, burst: null }, 'limit.burst is null'],
    [{ key, perSecond: 1, name: '' }, 'limit.name is ""'],
    [{ key, perSecond: 1, name: 'a b' }, 'limit.name is "a b"'],
    [{ key, perSecond: 1, name: 5n }, 'limit.name is "5"'],
    [{ key, perSecond: 1, name: Symbol('bank') }, 'limit.name is "Symbol(bank)"'],
    [null, 'limit.key is missing'],
    ['bank', 'limit is of type string'],
  ])('%o', (limit, text) => {
    expect(made(limit)).toThrow(refused(text));
  });

  test('the least rate is one run per lease', () => {
    expect(made({ key, perSecond: 0.034 })).not.toThrow();
  });

  test('two limits of one name that differ, by the member', () => {
    const other = (change: object) =>
      leased(Counted, async () => {}, { limit: { key, perSecond: 1, name: 'bank', ...change } });
    const limit = { key, perSecond: 1, name: 'bank' };
    expect(made(limit, [other({ perSecond: 2 })])).toThrow(
      refused('limit.perSecond is 2, and 1 in another handler'),
    );
    expect(made(limit, [other({ burst: 2 })])).toThrow(refused('limit.burst is 2, and 1 in another handler'));
    expect(made(limit, [other({ burst: 1 })])).not.toThrow();
    expect(made(limit, [other({ burst: 2, name: 'other' })])).not.toThrow();
    expect(made(limit, [other({ concurrency: 2 })])).toThrow(
      refused('limit.concurrency is 2, and absent in another handler'),
    );
  });

  test('of a transactional handler', () => {
    const handler = transactional(ThingHappened, async () => ({}), { limit: { key, perSecond: 1 } } as never);
    expect(() => consumer(rig(), [handler])).toThrow(refused('limit is for leased handlers'));
  });

  test('of a consumer of another source', async () => {
    const { table } = rig();
    const inbox = createInboxProcessor({ config: consumerConfig, table });
    const handler = leased(ThingHappened, async () => {}, { limit: { key, perSecond: 1 } });
    await expect(inbox.process({ id: '1', body: '{}' }, handler)).rejects.toThrow(
      refused('limit needs a consumer whose inbox is in DynamoDB and whose messages come from SQS'),
    );
  });

  test.each([
    ['createPostgresConsumer', createPostgresConsumer],
    ['createMysqlConsumer', createMysqlConsumer],
  ])('of an inbox in a database: %s', (_, create) => {
    const { queue } = rig();
    const handlers = [leased(ThingHappened, async () => {}, { limit: { key, perSecond: 1 } })];
    const deps = { config: consumerConfig, database: {}, outbox: {}, queue, handlers };
    expect(() => create(deps as never)).toThrow(
      refused('limit needs a consumer whose inbox is in DynamoDB and whose messages come from SQS'),
    );
  });

  test('beside a strict order, by both names', () => {
    const parts = rig();
    const handler = leased(Counted, async () => {}, { limit: { key, perSecond: 1 } });
    const config = { order: strict(), maxReceives: 105 };
    expect(() => consumer(parts, [handler], parts.table, config)).toThrow(
      refused('limit cannot be combined with a consumer of `order: strict`'),
    );
  });

  test('an order of the latest beside it is allowed', () => {
    const handler = leased(Counted, async () => {}, { order: latest(), limit: { key, perSecond: 1 } });
    expect(() => consumer(rig(), [handler])).not.toThrow();
  });
});
