import { describe, expect, test } from 'vitest';
import { PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import type { ReceivedEvent } from '../../../../lambdas/runtime/events/event.ts';
import type { InboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { kafkaRun } from '../../../../lambdas/runtime/sources/kafka-consumer.ts';
import { kafkaDouble } from './kafka-double.ts';
import { counting, gate, sourceRig } from './source-rig.ts';

const code = (expected: string) => expect.objectContaining({ code: expected });
const failing = (error: () => Error) => counting(async () => Promise.reject(error())).handler;
const numberOf = ({ data }: ReceivedEvent) => (data as { n: number }).n;

/** A partition with an event for each number, under its key. */
async function partition(
  ns: readonly (number | readonly [n: number, key: string])[],
  handler = counting().handler,
  deadLetter: (letter: unknown) => Promise<unknown> = async () => {},
  concurrency?: number,
) {
  const parts = sourceRig();
  const { clock } = parts;
  const deliveries: string[] = [];
  const inbox: InboxProcessor = {
    ...parts.inbox,
    process: (...message) => {
      deliveries.push(message[0].id);
      return parts.inbox.process(...message);
    },
  };
  const sent = await Promise.all(
    ns.map(async (one) => {
      const [n, key] = typeof one === 'number' ? [one] : one;
      return [JSON.stringify(await parts.envelope(n)), key] as const;
    }),
  );
  const double = kafkaDouble(sent);
  const { consumer } = double;
  const start = () => kafkaRun({ consumer, inbox, handler, deadLetter, clock, concurrency });
  return { ...parts, double, deliveries, start, run: start() };
}

/** A run whose inbox answers as told. */
function answering(
  sent: Parameters<typeof kafkaDouble>[0],
  answer: (n: number) => 'done' | 'retry',
  timestamp?: string,
) {
  const parts = sourceRig();
  const seen: unknown[] = [];
  const inbox = {
    ...parts.inbox,
    process: async ({ receives, body }: { receives?: number; body: unknown }) => {
      seen.push([String(body), receives]);
      const reason = { code: 'X', message: '' };
      if (answer(seen.length) === 'done') return { kind: 'done' } as const;
      return { kind: 'retry', afterMs: 1_000, reason } as const;
    },
  };
  const double = kafkaDouble(sent, timestamp);
  const { consumer } = double;
  const handler = counting().handler;
  const deadLetter = async () => {};
  const run = kafkaRun({ consumer, inbox: inbox as never, handler, deadLetter, clock: parts.clock });
  return { ...parts, double, run, seen };
}

describe('Kafka', () => {
  test('resolves each offset after its message, in order', async () => {
    const { handler, events } = counting();
    const { double, run, through } = await partition([1, 2, 3], handler);
    await through(double.fetch(run));
    expect(double.log).toEqual(['resolve 0', 'resolve 1', 'resolve 2']);
    expect(events.map(numberOf)).toEqual([1, 2, 3]);
    expect(run.eachBatchAutoResolve).toBe(false);
  });

  test('a retry pauses its partition until it is due; nothing is skipped or reordered', async () => {
    let fails = 1;
    const { handler, events } = counting(async (event) => {
      if (numberOf(event) === 2 && fails-- > 0) throw new RetryLater(40_000);
    });
    const { double, run, through, clock } = await partition([1, 2, 3], handler);
    await through(double.fetch(run));
    expect(double.log).toEqual(['resolve 0', 'pause']);
    await clock.advance(30_000);
    expect(double.log).toEqual(['resolve 0', 'pause']);
    await clock.advance(11_000);
    await through(double.fetch(run));
    expect(double.log).toEqual(['resolve 0', 'pause', 'resume', 'resolve 1', 'resolve 2']);
    expect(events.map(numberOf)).toEqual([1, 2, 2, 3]);
  });

  test('keeps a rejected message and goes on; if it cannot be kept, it waits', async () => {
    const kept: unknown[] = [];
    let away = true;
    const { double, run, through, clock } = await partition(
      [1, 2],
      failing(() => new PoisonMessage('no')),
      async (letter) => {
        if (away) throw new Error('away');
        kept.push(letter);
      },
    );
    await through(double.fetch(run));
    expect(double.log).toEqual(['pause']);
    away = false;
    await clock.advance(61_000);
    await through(double.fetch(run));
    expect(double.log).toEqual(['pause', 'resume', 'resolve 0', 'resolve 1']);
    expect(kept).toMatchObject([
      { id: 'worker/orders/3/0', message: { topic: 'orders', partition: 3, message: { offset: '0' } } },
      {},
    ]);
  });

  test('a message counts its deliveries while it waits', async () => {
    const { double, run, through, clock, seen } = answering([['a'], ['b']], (n) =>
      n <= 2 ? 'retry' : 'done',
    );
    for (let i = 0; i < 3; i += 1) {
      await through(double.fetch(run));
      await clock.advance(2_000);
    }
    expect(seen).toEqual([
      ['a', 2],
      ['a', 3],
      ['a', 4],
      ['b', 2],
    ]);
  });

  test('a message that follows one that another consumer of the group has done counts from the beginning', async () => {
    const { double, run, through, clock, seen } = answering([['a'], ['b']], () => 'retry');
    await through(double.fetch(run));
    await clock.advance(2_000);
    double.moveTo(1);
    await through(double.fetch(run));
    expect(seen).toEqual([
      ['a', 2],
      ['b', 2],
    ]);
  });

  test('a message that is delivered again before it is due does not run', async () => {
    const { double, run, through, seen } = answering([['a'], ['b']], () => 'retry');
    await through(double.fetch(run));
    await through(run.eachBatch({ ...double.payload(), pause: () => () => {} }));
    expect(seen).toEqual([['a', 2]]);
  });

  test('stops at a partition that it has lost', async () => {
    const { opened, open } = gate();
    const { double, run, through, idle } = await partition([1, 2], counting(() => opened).handler);
    const fetched = double.fetch(run);
    await idle();
    double.lose();
    open();
    await through(fetched);
    expect(double.log).toEqual(['resolve 0']);
  });

  test('beats every second while a handler runs, and between short handlers', async () => {
    const { opened, open } = gate();
    const long = await partition([1, 2], counting(() => opened).handler);
    const fetched = long.double.fetch(long.run);
    await long.clock.advance(10_500);
    expect(long.double.beats()).toBe(11);
    open();
    await long.through(fetched);

    const short = await partition(
      Array.from({ length: 40 }, (_, n) => n),
      counting(() => short.clock.sleep(250)).handler,
    );
    await short.through(short.double.fetch(short.run));
    expect(short.double.beats()).toBeGreaterThanOrEqual(10);
    expect(short.double.log).toHaveLength(40);
  });

  test.each(['REBALANCE_IN_PROGRESS', 'ILLEGAL_GENERATION', 'UNKNOWN_MEMBER_ID', 'FENCED_INSTANCE_ID'])(
    'starts no further message when a beat fails with %s; the running one is resolved',
    async (type) => {
      const { opened, open } = gate();
      const { handler, events } = counting(() => opened);
      const { double, run, through, clock } = await partition([1, 2], handler);
      const fetched = double.fetch(run);
      await clock.advance(500);
      double.failBeats(type);
      await clock.advance(1_000);
      open();
      await through(fetched);
      await through(double.fetch(run));
      expect([events.length, double.log]).toEqual([1, ['resolve 0']]);
    },
  );

  test('goes on when a beat fails that can succeed later', async () => {
    const { double, run, through } = await partition([1, 2]);
    double.failBeats('REQUEST_TIMED_OUT');
    await through(double.fetch(run));
    expect(double.log).toEqual(['resolve 0', 'resolve 1']);
  });

  test('stop() lets the running handler end, starts no other, and resumes nothing', async () => {
    const { opened, open } = gate();
    const { handler, events } = counting(() => opened);
    const { double, run, through, idle } = await partition([1, 2], handler);
    const fetched = double.fetch(run);
    await idle();
    const stop = run.stop();
    open();
    await through(Promise.all([stop, fetched, run.ended]));
    await through(double.fetch(run));
    // Paused: kafkajs would fetch the same messages until it is disconnected.
    expect([events.length, double.log]).toEqual([1, ['resolve 0', 'pause']]);
    const other = await partition(
      [1],
      failing(() => new RetryLater(60_000)),
    );
    await other.through(other.double.fetch(other.run));
    await other.run.stop();
    await other.clock.advance(70_000);
    expect(other.double.log).toEqual(['pause']);
  });

  test('ends when kafkajs has ended the consumer, and not when kafkajs starts it again', async () => {
    const { double, run, through, idle } = await partition([1]);
    double.crash(new Error('no broker'), true);
    await idle();
    await through(double.fetch(run));
    expect(double.log).toEqual(['resolve 0']);
    const cause = Object.assign(new Error('Lz4 compression not implemented'), {
      name: 'KafkaJSNotImplemented',
    });
    double.crash(cause, false);
    await expect(run.ended).rejects.toMatchObject({
      code: 'SOURCE_CLOSED',
      message: expect.stringContaining('Lz4 compression not implemented. Register the codec'),
      cause,
    });
  });

  test('an error of the inbox ends the loop after the messages that run; the others are delivered again', async () => {
    const { opened, open } = gate();
    const parts = sourceRig();
    const seen: string[] = [];
    const inbox = {
      ...parts.inbox,
      process: async ({ body }: { body: unknown }) => {
        seen.push(String(body));
        if (String(body) === 'b') throw new Error('The inbox failed');
        await opened;
        return { kind: 'done' } as const;
      },
    };
    const double = kafkaDouble([
      ['a', 'k1'],
      ['b', 'k2'],
      ['c', 'k1'],
    ]);
    const run = kafkaRun({
      consumer: double.consumer,
      inbox: inbox as never,
      handler: counting().handler,
      deadLetter: async () => {},
      clock: parts.clock,
      concurrency: 2,
    });
    const ended = run.ended.then(
      () => 'stopped',
      ({ message }: Error) => message,
    );
    let isReturned = false;
    const fetched = double.fetch(run).then(() => {
      isReturned = true;
    });
    await parts.idle();
    expect(isReturned).toBe(false);
    open();
    await fetched;
    expect(seen).toEqual(['a', 'b']);
    expect(double.log).toEqual(['resolve 0']);
    expect(await ended).toBe('The inbox failed');
  });

  test('refuses handlers and a concurrency that cannot be used', () => {
    const { inbox } = sourceRig();
    const { handler } = counting();
    const { consumer } = kafkaDouble([]);
    const deadLetter = async () => {};
    const make = (options: object) => () =>
      kafkaRun({ consumer, inbox, handler, deadLetter, ...options } as never);
    expect(make({ handler: [handler, handler] })).toThrow(code('BAD_CONSUMER'));
    for (const concurrency of [0, 1.5, Number.NaN])
      expect(make({ concurrency })).toThrow(code('BAD_ARGUMENT'));
  });
});

describe('Kafka, with messages of several keys at a time', () => {
  /** A handler whose events end when the test lets them. */
  function gated() {
    const gates = new Map<number, ReturnType<typeof gate>>();
    const of = (n: number) => {
      const known = gates.get(n) ?? gate();
      gates.set(n, known);
      return known;
    };
    return { ...counting((event) => of(numberOf(event)).opened), end: (n: number) => of(n).open() };
  }

  test('runs different keys side by side and a key in its order; an offset waits for those before it', async () => {
    const { handler, events, end } = gated();
    const sent = [[1, 'a'], [2, 'a'], [3, 'b'], 4, 5] as const;
    const { double, run, through, idle } = await partition(sent, handler, undefined, 10);
    const fetched = double.fetch(run);
    await idle();
    expect(events.map(numberOf).sort()).toEqual([1, 3, 4, 5]);
    end(3);
    end(5);
    end(4);
    await idle();
    expect(double.log).toEqual([]);
    end(1);
    await idle();
    expect(double.log).toEqual(['resolve 0']);
    expect(events.map(numberOf).at(-1)).toBe(2);
    end(2);
    await through(fetched);
    expect(double.log).toEqual(['resolve 0', 'resolve 4']);
  });

  test('runs no more messages than allowed', async () => {
    let running = 0;
    const most: number[] = [];
    const sent = Array.from({ length: 12 }, (_, n) => [n, `key ${n % 6}`] as const);
    const { double, run, through, clock } = await partition(
      sent,
      counting(async () => {
        running += 1;
        most.push(running);
        await clock.sleep(100);
        running -= 1;
      }).handler,
      undefined,
      4,
    );
    await through(double.fetch(run));
    expect([Math.max(...most), double.log.at(-1)]).toEqual([4, 'resolve 11']);
  });

  test('a retry holds back its key and the offset; others go on, and nothing runs twice', async () => {
    let fails = 1;
    const { handler, events } = counting(async (event) => {
      if (numberOf(event) === 1 && fails-- > 0) throw new RetryLater(5_000);
    });
    const sent = [
      [1, 'a'],
      [2, 'a'],
      [3, 'b'],
    ] as const;
    const { double, run, through, clock, deliveries } = await partition(sent, handler, undefined, 10);
    await through(double.fetch(run));
    expect(events.map(numberOf)).toEqual([1, 3]);
    expect(double.log).toEqual(['pause']);
    // Other keys may have new messages: the partition is read again meanwhile.
    await clock.advance(1_100);
    await through(double.fetch(run));
    expect(double.log).toEqual(['pause', 'resume', 'pause']);
    expect(deliveries).toHaveLength(2);
    while (double.log.at(-1) !== 'resolve 2') {
      await clock.advance(1_100);
      await through(double.fetch(run));
    }
    expect(events.map(numberOf)).toEqual([1, 3, 1, 2]);
    expect(double.log.filter((line) => line.startsWith('resolve'))).toEqual(['resolve 0', 'resolve 2']);
  });

  test('after a crash, a message that was done behind another is a duplicate', async () => {
    let fails = 1;
    const { handler, events } = counting(async (event) => {
      if (numberOf(event) === 1 && fails-- > 0) throw new RetryLater(1_000);
    });
    const sent = [
      [1, 'a'],
      [2, 'b'],
    ] as const;
    const { double, run, start, through, clock } = await partition(sent, handler, undefined, 10);
    await through(double.fetch(run));
    await clock.advance(3_000);
    await through(double.fetch(start())); // another process, from the committed offset on
    expect(events.map(numberOf)).toEqual([1, 2, 1]);
    expect(double.log.at(-1)).toBe('resolve 1');
  });

  test.each([
    ['later', '1767225700000'],
    ['in the same millisecond', '1767225600000'],
  ])('a message is not taken for one that had its offset in a deleted topic: %s', async (_, sentAt) => {
    const { handler, events } = counting(async (event) => {
      if (numberOf(event) === 1) throw new RetryLater(60_000);
    });
    const parts = await partition(
      [
        [1, 'a'],
        [2, 'b'],
      ],
      handler,
      undefined,
      10,
    );
    await parts.through(parts.double.fetch(parts.run));
    const sent = await Promise.all(
      [3, 4].map(async (n) => [JSON.stringify(await parts.envelope(n)), 'b'] as const),
    );
    await parts.through(kafkaDouble(sent, sentAt).fetch(parts.run));
    expect(events.map(numberOf)).toEqual([1, 2, 3, 4]);
  });
});
