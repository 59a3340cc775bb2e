import { describe, expect, test } from 'vitest';
import {
  AlreadyProcessed,
  PoisonMessage,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import { latest } from '../../../../lambdas/runtime/base/order.ts';
import type { BatchCommit } from '../../../../lambdas/runtime/consume/batch-commit.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import type { BatchContext, Handler } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/events/event.ts';
import type { EventOf } from '../../../../lambdas/runtime/events/external-event.ts';
import { createMysqlConsumer } from '../../../../lambdas/runtime/mysql/mysql-consumer.ts';
import { createPostgresConsumer } from '../../../../lambdas/runtime/postgres/postgres-consumer.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { mintEventId, unreadableId, unreadableMark } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxHistoryKey, inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table, TransactAction } from '../../../../lambdas/runtime/store/table.ts';
import {
  Counted,
  consumerConfig,
  rig,
  startedLongAgo,
  ThingHappened,
  Unparsed,
} from '../../../support/runtime-rig.ts';
import {
  awsError,
  body,
  CONSUMER,
  consumer,
  crashable,
  envelope,
  inboxRow,
  type Parts,
  send,
} from './consumer-rig.ts';

const TOTAL = { PK: 'TOTAL#1', SK: 'TOTAL' };

/** Adds the numbers of its events to one row. */
function added(events: readonly { readonly data: { readonly n: number } }[]): TransactAction {
  const n = events.reduce((sum, { data }) => sum + data.n, 0);
  return {
    Update: { Key: TOTAL, UpdateExpression: 'ADD n :n', ExpressionAttributeValues: { ':n': n } },
  };
}

type Happened = EventOf<typeof ThingHappened>;
type Handles = (events: readonly Happened[], ctx: BatchContext) => Promise<BatchCommit> | BatchCommit;

/** A consumer with a batch handler, the numbers of the events of each run, and the number of rows in each transaction. */
function batching(handles: Handles, wrap: (table: Table, parts: Parts) => Table = (table) => table) {
  const parts: Parts = rig({ maxReceiveCount: 8 });
  const ran: number[][] = [];
  const committed: number[] = [];
  const handler = transactionalBatch(ThingHappened, async (events, ctx) => {
    ran.push(events.map(({ data }) => data.n));
    return handles(events, ctx);
  });
  const counting: Table = {
    ...parts.memory,
    transact: async (actions, token) => {
      await parts.memory.transact(actions, token);
      committed.push(actions.filter(({ Update }) => String(Update?.Key?.PK).startsWith('INBOX#')).length);
    },
  };
  const rows = (events: readonly Envelope[]) => events.map((event) => inboxRow(parts, event)?.status);
  const total = () => parts.memory.item(TOTAL)?.n ?? 0;
  return {
    ...parts,
    parts,
    ...consumer(parts, [handler], wrap(counting, parts)),
    handler,
    ran,
    committed,
    rows,
    total,
  };
}

/** Sends events with the numbers 1, 2, 4 and so on: their sum says which of them were added. */
const sendAll = (parts: Parts, count: number) =>
  Array.from({ length: count }, (_, i) => send(parts, { data: { n: 2 ** i } }));

const add: Handles = (events) => ({ writes: [added(events)] });

describe('the messages of a batch', () => {
  test('are processed in one run and one transaction, in the order of their ids', async () => {
    const one = batching(add);
    const events = sendAll(one.parts, 5);
    const { failed } = await one.deliver();
    expect(failed).toEqual([]);
    const inOrder = events.toSorted((a, b) => (a.eventId < b.eventId ? -1 : 1)).map(({ data }) => data);
    expect(one.ran).toEqual([inOrder.map((data) => (data as { n: number }).n)]);
    expect(one.committed).toEqual([5]);
    expect(one.rows(events)).toEqual(Array.from({ length: 5 }, () => 'PROCESSED'));
    expect(inboxRow(one.parts, events[0] as Envelope)).toMatchObject({ attempts: 1, type: 'ThingHappened' });
    expect(one.total()).toBe(31);
    expect(one.telemetry.counted('MessagesProcessed')).toBe(5);
    expect(one.telemetry.durations('ProcessLatency')).toHaveLength(5);
    expect(one.telemetry.counted('BatchesSplit')).toBe(0);
  });

  test('cause the events that their handler returns, each the one that it names', async () => {
    const one = batching((events) => ({
      events: events.map((cause) => ({
        cause: { ...cause, correlationId: 'forged' },
        draft: ThingHappened.create({ aggregateId: `of-${cause.data.n}`, data: { n: 0 } }),
      })),
    }));
    const first = send(one.parts, { correlationId: 'chain-1', data: { n: 1 } });
    const second = send(one.parts, { correlationId: 'chain-2', data: { n: 2 }, hops: 3 });
    await one.deliver();
    const written = one.parts.rows().map(({ envelope: text }) => JSON.parse(String(text)) as Envelope);
    const of = (n: number) => written.find(({ aggregateId }) => aggregateId === `of-${n}`);
    expect(of(1)).toMatchObject({ correlationId: 'chain-1', causationId: first.eventId, hops: 1 });
    expect(of(2)).toMatchObject({ correlationId: 'chain-2', causationId: second.eventId, hops: 4 });
    expect(one.telemetry.counted('EventsCommitted')).toBe(2);
  });

  test('of two handlers share a transaction by handler, and a message of another kind has its own', async () => {
    const one = batching(add);
    const others: number[] = [];
    const both = consumer(one.parts, [
      one.handler,
      transactionalBatch(Counted, async (events) => {
        others.push(events.length);
        return {};
      }),
    ]);
    const events = sendAll(one.parts, 3);
    for (let n = 1; n <= 2; n += 1) {
      const counted = envelope(one.parts, { type: 'Counted', version: 1, sequence: n, data: { n } });
      one.parts.queue.send(body(counted));
    }
    one.parts.queue.send('not JSON');
    const { failed } = await both.deliver();
    expect(failed).toHaveLength(1);
    expect(one.ran).toHaveLength(1);
    expect(others).toEqual([2]);
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED']);
  });
});

describe('a message that fails in a batch', () => {
  test('is rejected alone: its neighbors are tried in halves, then one by one', async () => {
    const one = batching((events) => {
      if (events.some(({ data }) => data.n === 8)) throw new PoisonMessage('an 8');
      return add(events, {} as BatchContext);
    });
    const events = sendAll(one.parts, 10);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(1);
    expect(one.rows(events).filter((status) => status === 'PROCESSED')).toHaveLength(9);
    expect(inboxRow(one.parts, events[3] as Envelope)).toMatchObject({
      status: 'REJECTED',
      reason: 'POISON_MESSAGE',
    });
    expect(one.total()).toBe(1_023 - 8);
    const split = one.telemetry.lines().find(({ level }) => level === 'warn')?.extra;
    expect(split).toMatchObject({ messages: 10, eventIds: events.map(({ eventId }) => eventId).toSorted() });
    // The sets that hold the poison, each half of the one before, and the other halves.
    expect(one.ran.length).toBeLessThanOrEqual(9);
    expect(one.telemetry.counted('BatchesSplit')).toBe(one.ran.filter((set) => set.includes(8)).length - 1);
    expect(one.telemetry.counted('MessagesRejected')).toBe(1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('does not change what its neighbors receive: each run has its own events', async () => {
    const one = batching(add);
    const received: number[][] = [];
    const changing = transactionalBatch(Unparsed, async (events) => {
      received.push(events.map(({ data }) => data.n).toSorted());
      for (const { data } of events) (data as { n: number }).n *= 10;
      if (events.some(({ data }) => data.n === 20)) throw new PoisonMessage('a 2');
      return { writes: [added(events)] };
    });
    const { deliver } = consumer(one.parts, [changing]);
    const events = sendAll(one.parts, 4);
    await deliver();
    expect(received[0]).toEqual([1, 2, 4, 8]);
    expect(new Set(received.flat())).toEqual(new Set([1, 2, 4, 8]));
    expect(one.rows(events)).toEqual(['PROCESSED', 'REJECTED', 'PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(130);
  });

  test('counts its own attempts from its second receive on, and its error is in its own row', async () => {
    const one = batching((events) => {
      if (events.some(({ data }) => data.n === 2)) throw new Error('a 2');
      return add(events, {} as BatchContext);
    });
    const events = sendAll(one.parts, 4);
    await one.deliver();
    expect(one.rows(events)).toEqual(['PROCESSED', undefined, 'PROCESSED', 'PROCESSED']);
    expect(one.telemetry.counted('MessagesFailed')).toBe(1);
    await one.drain();
    expect(inboxRow(one.parts, events[1] as Envelope)).toMatchObject({
      status: 'REJECTED',
      reason: 'ATTEMPTS_EXHAUSTED',
      attempts: consumerConfig.maxAttempts,
    });
    expect(one.total()).toBe(13);
  });

  test('for its payload does not reach the handler', async () => {
    const one = batching(add);
    const events = sendAll(one.parts, 3);
    const bad = send(one.parts, { data: { n: 'four' } });
    await one.deliver();
    expect(one.ran).toHaveLength(1);
    expect(one.committed).toContain(3);
    expect(one.rows([...events, bad])).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED', 'REJECTED']);
  });

  test('is visible again at its own time, not when the others have ended', async () => {
    let shownAt: number | undefined;
    const one = batching(async (events) => {
      await one.clock.sleep(5_000);
      shownAt = one.queue.messages().find((message) => message.body.includes('four'))?.visibleAt;
      return add(events, {} as BatchContext);
    });
    sendAll(one.parts, 3);
    send(one.parts, { data: { n: 'four' } });
    const sentAt = one.clock.now();
    await one.deliver();
    expect(shownAt).toBeLessThanOrEqual(sentAt + 1_000);
  });

  test('that its handler has already processed by itself is recorded alone', async () => {
    const one = batching((events) => {
      if (events.some(({ data }) => data.n === 1)) throw new AlreadyProcessed('before');
      return add(events, {} as BatchContext);
    });
    const events = sendAll(one.parts, 3);
    await one.deliver();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(6);
  });

  test('does not end the work on the others when the time runs short', async () => {
    const one = batching(async (events) => {
      await one.clock.sleep(6_000);
      if (events.some(({ data }) => data.n === 1)) throw new Error('a 1');
      return add(events, {} as BatchContext);
    });
    const events = sendAll(one.parts, 4);
    const { failed, error } = await one.deliver(15_000);
    expect(error).toBeUndefined();
    expect(failed.length).toBeGreaterThan(0);
    const begun = one.ran.length;
    expect(begun).toBeLessThanOrEqual(3);
    expect(one.rows(events)).not.toContain('REJECTED');
    await one.drain();
    expect(one.total()).toBe(14);
    expect(one.rows(events)).toEqual(['REJECTED', 'PROCESSED', 'PROCESSED', 'PROCESSED']);
  });
});

describe('a batch that cannot be committed', () => {
  test('is split if it has more than 100 actions', async () => {
    const one = batching((events) => ({
      writes: events.flatMap(({ data }) =>
        Array.from({ length: 30 }, (_, i) => ({ Put: { Item: { PK: `THING#${data.n}`, SK: `PART#${i}` } } })),
      ),
    }));
    const events = sendAll(one.parts, 4);
    await one.deliver();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.committed).toEqual([2, 2]);
  });

  test('names the limit, if one of its events alone needs more than 100 actions', async () => {
    const one = batching(() => ({
      writes: Array.from({ length: 101 }, (_, i) => ({ Put: { Item: { PK: 'THING#1', SK: `PART#${i}` } } })),
    }));
    sendAll(one.parts, 2);
    const { errors } = await one.deliver();
    expect(Object.values(errors ?? {})).toEqual([
      expect.objectContaining({ code: 'TRANSACTION_TOO_LARGE' }),
      expect.objectContaining({ code: 'TRANSACTION_TOO_LARGE' }),
    ]);
  });

  test('runs again on fresh reads when a condition failed, and then in halves', async () => {
    const taken = { PK: 'THING#taken', SK: 'THING' };
    const one = batching((events) => ({
      writes: events.map(({ data }) => ({
        Put: {
          Item: data.n === 4 ? taken : { PK: `THING#${data.n}`, SK: 'THING' },
          ConditionExpression: 'attribute_not_exists(PK)',
        },
      })),
    }));
    await one.memory.write({ Put: { Item: taken } });
    const events = sendAll(one.parts, 4);
    await one.deliver();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', undefined, 'PROCESSED']);
    expect(one.ran.filter((set) => set.length === 4)).toHaveLength(4);
  });

  test('leaves its messages to their next receive while the table is away, without halves and without attempts', async () => {
    let isAway = true;
    const one = batching(add, (table) => ({
      ...table,
      transact: (actions, token) =>
        isAway ? Promise.reject(awsError('ThrottlingException')) : table.transact(actions, token),
    }));
    const events = sendAll(one.parts, 4);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(4);
    expect(one.ran).toHaveLength(1);
    expect(one.telemetry.counted('TableFailures')).toBe(4);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    isAway = false;
    await one.drain();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(15);
  });

  test('leaves its messages to their next receive, without halves, when its handler cannot read the table', async () => {
    let isAway = true;
    const one = batching(async (events) => {
      if (isAway) throw awsError('ThrottlingException');
      return add(events, {} as BatchContext);
    });
    const events = sendAll(one.parts, 4);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(4);
    expect(one.ran).toHaveLength(1);
    expect(one.telemetry.counted('TableFailures')).toBe(4);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    expect(one.telemetry.counted('BatchesSplit')).toBe(0);
    isAway = false;
    await one.drain();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(15);
  });

  const conflict = (actions: readonly TransactAction[], isRow: boolean) =>
    new TransactionCancelled(
      actions.map((_, i) => ({
        code: i === (isRow ? 0 : actions.length - 1) ? 'TransactionConflict' : 'None',
      })),
    );

  test.each([
    ['the row that it writes', false],
    ['an inbox row', true],
  ])('is tried again as a whole, on fresh reads, while other transactions write %s', async (_, isRow) => {
    let busy = 14; // more tries than one run makes
    const one = batching(add, (table) => ({
      ...table,
      transact: async (actions, token) => {
        busy -= 1;
        if (busy >= 0) throw conflict(actions, isRow);
        return table.transact(actions, token);
      },
    }));
    const events = sendAll(one.parts, 4);
    const { failed } = await one.deliver();
    expect(failed).toEqual([]);
    expect(one.ran.map((set) => set.length)).toEqual([4, 4, 4]);
    expect(one.committed).toEqual([4]);
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.telemetry.counted('TableFailures')).toBe(0);
    expect(one.telemetry.counted('BatchesSplit')).toBe(0);
  });

  test('is an outage, without halves, if other transactions write its row all the time', async () => {
    const one = batching(add, (table) => ({
      ...table,
      transact: (actions) => Promise.reject(conflict(actions, false)),
    }));
    sendAll(one.parts, 4);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(4);
    expect(one.ran.map((set) => set.length)).toEqual([4, 4, 4, 4]);
    expect(one.telemetry.counted('TableFailures')).toBe(4);
    expect(one.telemetry.counted('BatchesSplit')).toBe(0);
  });

  test.each([
    ['one of its writes is denied', 'transact'],
    ['one of its reads is denied', 'read'],
    ['one of its reads is from a table that is missing', 'missing'],
  ])('goes on in halves if %s: only that message returns', async (_, what) => {
    const denied = awsError(what === 'missing' ? 'ResourceNotFoundException' : 'AccessDeniedException');
    const one = batching(
      async (events) => {
        const isDenied = events.some(({ data }) => data.n === 4);
        if (isDenied && what !== 'transact') throw denied;
        return isDenied ? { writes: [added(events), theirs] } : add(events, {} as BatchContext);
      },
      (table) => ({
        ...table,
        transact: async (actions, token) => {
          if (actions.includes(theirs)) throw denied;
          return table.transact(actions, token);
        },
      }),
    );
    const theirs: TransactAction = { Put: { Item: { PK: 'THEIRS#1', SK: 'THING' } } };
    const events = sendAll(one.parts, 4);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(1);
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', undefined, 'PROCESSED']);
    expect(one.total()).toBe(11);
  });

  test('is not applied again after a lost response: its messages are absorbed', async () => {
    let isLost = true;
    const one = batching(add, (table) => ({
      ...table,
      transact: async (actions, token) => {
        if (!isLost) return table.transact(actions, token);
        await table.transact(actions, token).catch(() => {});
        throw awsError('TimeoutError');
      },
    }));
    const events = sendAll(one.parts, 3);
    const { failed } = await one.deliver();
    expect(failed).toHaveLength(3);
    isLost = false;
    await one.drain();
    expect(one.ran).toHaveLength(1);
    expect(one.total()).toBe(7);
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(3);
  });

  test('of whose handler the time is up counts a failure of none of its messages', async () => {
    let hangs = true;
    const one = batching((events) =>
      hangs ? new Promise<never>(() => {}) : add(events, {} as BatchContext),
    );
    const events = sendAll(one.parts, 3);
    const { failed, error } = await one.deliver();
    expect(error).toBeUndefined();
    expect(failed).toHaveLength(3);
    expect(one.ran).toHaveLength(1);
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
    expect(one.telemetry.counted('BatchesSplit')).toBe(0);
    expect(one.telemetry.lines().map(({ extra }) => extra)).toEqual(
      events
        .map(({ eventId }) => eventId)
        .toSorted()
        .map((eventId) =>
          expect.objectContaining({ eventId, error: expect.objectContaining({ code: 'OUT_OF_TIME' }) }),
        ),
    );
    hangs = false;
    await one.drain();
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(7);
  });
});

describe('a message that is not new', () => {
  test('does not reach the handler once it is PROCESSED, and the others go on without it', async () => {
    const one = batching(add);
    const [first] = sendAll(one.parts, 1);
    await one.deliver();
    one.parts.queue.send(body(first as Envelope)); // published again: another message id, and its first receive
    const next = [send(one.parts, { data: { n: 2 } }), send(one.parts, { data: { n: 4 } })];
    const { failed } = await one.deliver();
    expect(failed).toEqual([]);
    expect(one.rows(next)).toEqual(['PROCESSED', 'PROCESSED']);
    expect(one.total()).toBe(7);
    // The set runs once with the repeat, of which nothing is written, and then without it.
    expect(one.committed).toEqual([1, 2]);
    expect(one.ran.map((set) => set.toSorted())).toEqual([[1], [1, 2, 4], [2, 4]]);
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(1);
  });

  test('and was received before is claimed alone: a PROCESSED one never reaches the handler', async () => {
    const one = batching(add);
    const events = sendAll(one.parts, 3);
    const records = one.queue.receive();
    await one.clock.advance(60_000);
    await one.deliver();
    expect(one.ran.map((set) => set.length)).toEqual([1, 1, 1]);
    expect(inboxRow(one.parts, events[0] as Envelope)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    for (const record of records) one.queue.send(record.body);
    one.queue.receive();
    await one.clock.advance(60_000);
    await one.deliver();
    expect(one.ran).toHaveLength(3);
    expect(one.total()).toBe(7);
  });

  test('comes twice in one batch: the handler receives its event once', async () => {
    const one = batching(add);
    const [first] = sendAll(one.parts, 3);
    one.queue.send(body(first as Envelope));
    const { failed } = await one.deliver();
    expect(failed).toEqual([]);
    expect(one.ran.map((set) => set.toSorted())).toEqual([[1, 2, 4]]);
    expect(one.total()).toBe(7);
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(1);
  });

  test('comes twice in one batch, and fails the first time: the repeat is claimed after it', async () => {
    let fails = true;
    const one = batching((events) => {
      if (fails && events.some(({ data }) => data.n === 1)) {
        if (events.length === 1) fails = false;
        throw new Error('a 1');
      }
      return add(events, {} as BatchContext);
    });
    const [first] = sendAll(one.parts, 2);
    one.queue.send(body(first as Envelope));
    await one.deliver();
    expect(inboxRow(one.parts, first as Envelope)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    await one.drain();
    expect(one.total()).toBe(3);
  });

  test('because its row may have expired is rejected, and the others go on', async () => {
    const one = batching(add);
    await startedLongAgo(one.memory);
    const old = send(one.parts, { eventId: mintEventId(Date.UTC(2025, 0, 1), 2), data: { n: 8 } });
    const events = sendAll(one.parts, 3);
    await one.deliver();
    expect(one.ran.map((set) => set.toSorted())).toEqual([[1, 2, 4]]);
    expect(one.rows(events)).toEqual(['PROCESSED', 'PROCESSED', 'PROCESSED']);
    expect(inboxRow(one.parts, old)).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
  });

  test('because an operator has settled its body, which could not be read then, is absorbed', async () => {
    const one = batching(add);
    const settled = body(envelope(one.parts, { data: { n: 8 } }));
    const id = unreadableId(JSON.stringify(settled));
    const row = { ...inboxKey(CONSUMER, id), schema: 1, status: 'DISCARDED', fence: 'f', attempts: 0 };
    await one.memory.write({ Put: { Item: row } });
    await startedLongAgo(one.memory);
    await one.memory.write({
      Update: {
        Key: { ...inboxHistoryKey(CONSUMER) },
        UpdateExpression: 'ADD unreadableSettled :mark',
        ExpressionAttributeValues: { ':mark': new Set([unreadableMark(id)]) },
      },
    });
    one.queue.send(settled);
    sendAll(one.parts, 2);
    const { failed } = await one.deliver();
    expect(failed).toEqual([]);
    expect(one.ran.map((set) => set.toSorted())).toEqual([[1, 2]]);
    expect(one.total()).toBe(3);
  });

  test('and kills its process rejects no other message', async () => {
    const parts: Parts = rig({ maxReceiveCount: 40 });
    const poller = crashable(parts, ({ kill }) => [
      transactionalBatch(ThingHappened, async (events) => {
        if (events.some(({ data }) => data.n === 2)) await kill();
        return { writes: [added(events)] };
      }),
    ]);
    const events = sendAll(parts, 4);
    await poller.drain();
    expect(events.map((event) => inboxRow(parts, event)?.status)).toEqual([
      'PROCESSED',
      'REJECTED',
      'PROCESSED',
      'PROCESSED',
    ]);
    expect(parts.memory.item(TOTAL)?.n).toBe(13);
  });
});

describe('a handler', () => {
  const createOf = (handlers: readonly Handler[], change: Partial<typeof consumerConfig> = {}) =>
    consumer(rig(), handlers, undefined, change);
  const nothing = async () => ({});
  const counted = transactionalBatch(Counted, nothing);

  test('cannot be combined with an order, of its own or of its consumer', () => {
    const own = transactionalBatch(Counted, nothing, { order: latest() } as never);
    for (const create of [() => createOf([own]), () => createOf([counted], { order: latest() })])
      expect(create).toThrow(
        expect.objectContaining({ code: 'BAD_CONSUMER', message: expect.stringContaining('order') }),
      );
    expect(() => createOf([counted])).not.toThrow();
    // An event without numbers has no order.
    expect(() => createOf([transactionalBatch(ThingHappened, nothing)], { order: latest() })).not.toThrow();
  });

  test('cannot have a limit', () => {
    const limit = { key: () => 'm', perSecond: 1 };
    expect(() => createOf([transactionalBatch(ThingHappened, nothing, { limit } as never)])).toThrow(
      expect.objectContaining({ code: 'BAD_CONSUMER', message: expect.stringContaining('limit') }),
    );
  });

  test('must be a function', () => {
    expect(() => transactionalBatch(ThingHappened, {} as never)).toThrow(
      expect.objectContaining({ code: 'BAD_CONSUMER', message: expect.stringContaining('of type object') }),
    );
  });

  const refusal = expect.objectContaining({
    code: 'BAD_CONSUMER',
    message: expect.stringContaining('transactionalBatch needs'),
  });

  test.each([
    ['createPostgresConsumer', createPostgresConsumer],
    ['createMysqlConsumer', createMysqlConsumer],
  ])('needs an inbox in DynamoDB: %s refuses it', (_, create) => {
    const deps = {
      config: consumerConfig,
      database: {},
      outbox: {},
      queue: rig().queue,
      handlers: [counted],
    };
    expect(() => create(deps as never)).toThrow(refusal);
  });

  test('needs messages from SQS', async () => {
    const inbox = createInboxProcessor({ config: consumerConfig, table: rig().table });
    await expect(inbox.process({ id: '1', body: '{}' }, counted)).rejects.toThrow(refusal);
  });

  test.each<[string, unknown, string]>([
    ['a list', [], 'returned a list'],
    ['an object as its events', { events: {} }, 'events of type object'],
    ['a promise of its events', { events: Promise.resolve([]) }, 'events of type object'],
    [
      'an event without a draft',
      { events: [ThingHappened.create({ aggregateId: '1', data: { n: 1 } })] },
      'events[0] without a draft',
    ],
    [
      'an event without a cause',
      { events: [{ draft: ThingHappened.create({ aggregateId: '1', data: { n: 1 } }) }] },
      'events[0] with another cause',
    ],
    ['null as an event', { events: [null] }, 'events[0] without a draft'],
  ])('that returns %s writes nothing, and its error says so', async (_, returned, text) => {
    const one = batching(() => returned as never);
    const events = sendAll(one.parts, 2);
    const { errors } = await one.deliver();
    expect(Object.values(errors ?? {})).toEqual([
      expect.objectContaining({ code: 'NO_COMMIT', message: expect.stringContaining(text) }),
      expect.objectContaining({ code: 'NO_COMMIT' }),
    ]);
    expect(one.rows(events)).toEqual([undefined, undefined]);
  });
});
