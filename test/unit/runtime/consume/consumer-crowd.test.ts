import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import { consumerConfig as defaultConfig } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, mortal, type Parts, send } from './consumer-rig.ts';

/** Many messages, several pollers, and a queue that hands them out in any order, with the constructs' defaults. */
const { maxAttempts } = defaultConfig();
const MAX_RECEIVE_COUNT = 105;
const HOUR_MS = 3_600_000;

/** The same draws in every run. */
function draws(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 4_294_967_296;
    return state / 4_294_967_296;
  };
}

const crowd = (maxReceiveCount = MAX_RECEIVE_COUNT) => rig({ maxReceiveCount, draw: draws(5) });
const statuses = (parts: Parts, events: readonly ReturnType<typeof send>[]) => [
  ...new Set(events.map((event) => inboxRow(parts, event)?.status)),
];

describe('in a crowd', () => {
  test('messages that exhaust the memory together, and are fine alone, are all processed within few receives', async () => {
    const parts = crowd(25);
    const events = Array.from({ length: 150 }, (_, n) => send(parts, { aggregateId: `${n}` }));
    await mortal(
      parts,
      ({ kill }) => {
        let running = 0;
        return [
          leased(ThingHappened, async () => {
            running += 1;
            await parts.clock.sleep(100);
            if (running > 1) await kill();
            await parts.clock.sleep(900);
            running -= 1;
          }),
        ];
      },
      { maxAttempts: 1 },
    ).poll(5, 4 * HOUR_MS);
    expect(statuses(parts, events)).toEqual(['PROCESSED']);
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test('healthy messages get through beside a hundred that always hang', async () => {
    const parts = crowd();
    for (let n = 0; n < 100; n += 1) send(parts, { aggregateId: 'hangs' });
    const healthy: ReturnType<typeof send>[] = [];
    const start = parts.clock.now();
    await mortal(
      parts,
      () => [
        leased(ThingHappened, ({ aggregateId }) =>
          parts.clock.sleep(aggregateId === 'hangs' ? 1_000_000 : 200),
        ),
      ],
      { maxAttempts },
    ).poll(5, 2 * HOUR_MS, () => {
      const minutes = (parts.clock.now() - start) / 60_000;
      if (minutes > 10 && minutes < 60 && healthy.length < 50 && minutes - 10 > healthy.length)
        healthy.push(send(parts, { aggregateId: 'healthy' }));
    });
    expect(healthy).toHaveLength(50);
    expect(statuses(parts, healthy)).toEqual(['PROCESSED']);
  });
});

/** Leaves messages as a deployment that dies at every message does: received twice, and about to be taken over for the second time. */
async function suspectsOf(parts: Parts, sent: readonly ReturnType<typeof send>[]): Promise<void> {
  for (let receive = 1; receive <= 2; receive += 1) {
    while (parts.queue.receive(10).length > 0);
    await parts.clock.advance(60_000);
  }
  const died = { schema: 1, status: 'PROCESSING', fence: 'dead', attempts: 1, unfinished: 1, leaseUntil: 0 };
  for (const { eventId } of sent)
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, eventId), ...died } } });
}

describe('in small batches, oldest first', () => {
  test('a healthy message runs within few receives among suspects that were received as often', async () => {
    const parts = rig({ maxReceiveCount: 12 });
    const healthy = send(parts, { aggregateId: 'healthy' });
    const suspects = Array.from({ length: 150 }, (_, n) => send(parts, { aggregateId: `${n}` }));
    await suspectsOf(parts, suspects);

    await mortal(parts, () => [leased(ThingHappened, async () => {})]).drain(2_000, 2);

    expect(statuses(parts, [healthy])).toEqual(['PROCESSED']);
    expect(parts.queue.deadLetters()).not.toContainEqual(
      expect.objectContaining({ body: expect.stringContaining(healthy.eventId) }),
    );
  });
});

describe('what the table does', () => {
  /** A message whose process died twice. */
  async function suspect(parts: Parts, change: object = {}) {
    const event = send(parts);
    parts.queue.receive();
    await parts.clock.advance(60_000);
    await parts.memory.write({
      Put: {
        Item: {
          ...inboxKey(CONSUMER, event.eventId),
          schema: 1,
          status: 'PROCESSING',
          fence: 'of a dead worker',
          attempts: 1,
          unfinished: 1,
          leaseUntil: parts.clock.now() - 1,
          ...change,
        },
      },
    });
    return event;
  }

  test('cannot be read: messages that may have to run alone wait like in any outage', async () => {
    const parts = crowd();
    const first = await suspect(parts);
    const second = await suspect(parts);
    parts.queue.receive();
    await parts.clock.advance(60_000);
    const up = parts.clock.now() + HOUR_MS;
    const table = {
      ...parts.memory,
      get: (...args: Parameters<typeof parts.memory.get>) =>
        parts.clock.now() < up
          ? Promise.reject(Object.assign(new Error('slow down'), { name: 'ThrottlingException' }))
          : parts.memory.get(...args),
    };
    await consumer(parts, [leased(ThingHappened, async () => {})], table).drain(200);
    expect(statuses(parts, [first, second])).toEqual(['PROCESSED']);
    expect(parts.queue.deadLetters()).toEqual([]);
  });

  test.each([
    ['hangs while the handler commits', 'transact', 40_000, 0],
    ['is slow with everything', 'write', 8_000, 22_000],
  ] as const)('%s: no attempt counts', async (_what, call, tookMs, workMs) => {
    const parts = crowd();
    const event = send(parts);
    const up = parts.clock.now() + 3 * HOUR_MS;
    const slow = {
      ...parts.memory,
      [call]: async (...args: never[]) => {
        if (parts.clock.now() < up) {
          await parts.clock.sleep(tookMs);
          if (call === 'transact') throw Object.assign(new Error('no answer'), { name: 'TimeoutError' });
        }
        return Reflect.apply(parts.memory[call], parts.memory, args);
      },
    };
    const { drain } = mortal(
      { ...parts, memory: slow },
      () => [
        leased(ThingHappened, async (_event, ctx) => {
          await parts.clock.sleep(workMs);
          await ctx.commit({ writes: [{ Put: { Item: { PK: 'W', SK: 'W' } } }] });
        }),
      ],
      { maxAttempts: 1 },
    );
    await drain();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.telemetry.counted('TableFailures')).toBeGreaterThan(10);
  });

  test('throttles half of all writes: no attempt counts', async () => {
    const parts = crowd();
    const event = send(parts);
    const draw = draws(7);
    const table = new Proxy(parts.memory, {
      get: (target, name) => {
        const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
        if (name !== 'write' && name !== 'transact') return call;
        return (...args: unknown[]) =>
          draw() < 0.5
            ? Promise.reject(Object.assign(new Error('slow down'), { name: 'ThrottlingException' }))
            : call(...args);
      },
    });
    const handler = leased(ThingHappened, async (_event, ctx) =>
      ctx.commit({ writes: [{ Put: { Item: { PK: 'W', SK: 'W' } } }] }),
    );
    await consumer(parts, [handler], table, { maxAttempts: 1 }).drain(100);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });

  test.each([
    ['without a fence', { fence: undefined }],
    ['with a lease that is no time', { leaseUntil: null }],
    [
      'rejected, without a fence',
      { status: 'REJECTED', reason: 'POISON_MESSAGE', fence: undefined, unfinished: undefined },
    ],
  ])('holds a strange row, %s: it is claimed all the same', async (_what, change) => {
    const parts = crowd();
    const event = await suspect(parts, change);
    await consumer(parts, [leased(ThingHappened, async () => {})]).drain(5);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test.each([['PARKED'], [undefined]])(
    'holds a row with the status %s: it is left alone and reported',
    async (status) => {
      const parts = crowd();
      const handle = vi.fn();
      const event = await suspect(parts, { status });
      const before = inboxRow(parts, event);
      await consumer(parts, [leased(ThingHappened, handle)]).deliver();
      expect(handle).not.toHaveBeenCalled();
      expect(inboxRow(parts, event)).toEqual(before);
      expect(parts.telemetry.counted('TableFailures')).toBe(1);
      expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(parts.clock.now() + 40_000);
    },
  );
});

test('a transactional handler with one attempt that runs out of time in its first run, which needs no claim, runs again', async () => {
  const parts = crowd();
  const event = send(parts);
  let runs = 0;
  const handler = transactional(ThingHappened, async () => {
    runs += 1;
    if (runs === 1) await parts.clock.sleep(1_000_000);
    return {};
  });
  await mortal(parts, () => [handler], { maxAttempts: 1 }).drain();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
});

test('a schema that kills its process leaves a claim: its message runs alone, and is rejected', async () => {
  const parts = crowd();
  const [killer, neighbour] = [
    send(parts, { aggregateId: 'killer', version: 1, data: { text: '1' } }),
    send(parts),
  ];
  if (killer === undefined || neighbour === undefined) throw new Error('unreachable');
  await mortal(
    parts,
    ({ kill }) => [
      leased(
        {
          ...ThingHappened,
          schema: {
            '~standard': {
              version: 1,
              vendor: 'test',
              validate: (value: unknown) =>
                (value as { n: number }).n === 1 && parts.queue.messages().length > 0
                  ? kill()
                  : { value: value as never },
            },
          },
          upcast: () => ({ n: 1 }),
        },
        async () => {},
      ),
    ],
    { maxAttempts: 1 },
  ).drain();
  expect(inboxRow(parts, killer)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
});

test("a commit to a table of the handler's own that does not exist is the handler's failure", async () => {
  const parts = crowd();
  const event = send(parts);
  const table = {
    ...parts.memory,
    transact: () =>
      Promise.reject(
        Object.assign(new Error('Requested resource not found'), { name: 'ResourceNotFoundException' }),
      ),
  };
  const handler = leased(ThingHappened, async (_event, ctx) =>
    ctx.commit({ writes: [{ Put: { TableName: 'Mistyped', Item: { PK: 'W', SK: 'W' } } }] }),
  );
  await consumer(parts, [handler], table).deliver();
  expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
  expect(parts.telemetry.counted('TableFailures')).toBe(0);
});
