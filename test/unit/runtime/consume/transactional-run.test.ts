import { describe, expect, test, vi } from 'vitest';
import {
  AlreadyProcessed,
  PoisonMessage,
  TransactionCancelled,
} from '../../../../lambdas/runtime/base/errors.ts';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { EventDraft } from '../../../../lambdas/runtime/events/event.ts';
import { inboxHistoryKey } from '../../../../lambdas/runtime/store/keys.ts';
import { rig, ThingHappened, Unparsed } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, crashable, domainRow, inboxRow, oneMessage, send } from './consumer-rig.ts';

const handling = (handle: () => Promise<object>) => transactional(ThingHappened, handle);
const writesOf = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ Put: { Item: { PK: `W#${n}`, SK: 'W' } } }));

describe('a transactional handler', () => {
  test('writes, publishes events and sets its message PROCESSED in one call', async () => {
    const one = oneMessage();
    const history = { ...inboxHistoryKey(CONSUMER), retentions: [{ days: 35, since: 0 }], changedAt: 0 };
    await one.memory.write({ Put: { Item: history } });
    const transact = vi.fn(one.memory.transact);
    const get = vi.fn(one.memory.get);
    const others = { write: vi.fn(), query: vi.fn(), updateEach: vi.fn() };
    const table = { ...one.memory, ...others, get, transact };
    await one.deliver(
      handling(async () => ({ writes: [domainRow], events: [one.happened(9)] })),
      { table },
    );
    expect(transact).toHaveBeenCalledTimes(1);
    for (const call of Object.values(others)) expect(call).not.toHaveBeenCalled();
    expect(get.mock.calls.map(([key]) => key)).toEqual([inboxHistoryKey(CONSUMER)]); // once for each start
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1, fence: expect.any(String) });
    expect(one.domainRow()).toBeDefined();
    expect(JSON.parse(one.rows()[0]?.envelope ?? '')).toMatchObject({ causationId: one.event.eventId });
  });

  test('writes once although five copies of its message are delivered at once', async () => {
    const one = oneMessage();
    const Key = { PK: 'COUNT', SK: 'COUNT' };
    const values = { ':one': 1 };
    const count = { Update: { Key, UpdateExpression: 'ADD n :one', ExpressionAttributeValues: values } };
    for (let i = 0; i < 4; i += 1) one.queue.send(body(one.event));
    await one.drain(handling(async () => ({ writes: [count] })));
    expect(one.memory.item(Key)).toMatchObject({ n: 1 });
    expect(one.queue.deadLetters()).toEqual([]);
    expect(one.telemetry.counted('MessagesDuplicate')).toBe(4);
  });

  test('sets its message PROCESSED without a write if it says that the work was done before', async () => {
    const one = oneMessage();
    await one.deliver(handling(() => Promise.reject(new AlreadyProcessed('by hand'))));
    expect(one.row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(one.telemetry.counted('MessagesFailed')).toBe(0);
  });

  test('runs again on fresh reads when one of its conditions was refused', async () => {
    const one = oneMessage();
    let reads = 0;
    const handler = handling(async () => {
      reads += 1;
      if (reads === 1) await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
      return { writes: reads === 1 ? [domainRow] : [] };
    });
    await one.deliver(handler);
    expect(reads).toBe(2);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test.each([
    ['at its first receive', 0],
    ['under a claim', 1],
  ])('that changes its event in place receives it unchanged when it runs again, %s', async (_, before) => {
    const one = oneMessage();
    if (before > 0) await one.receivedBefore();
    const received: number[] = [];
    const changing = transactional(Unparsed, async ({ data }) => {
      received.push(data.n);
      (data as { n: number }).n *= 10;
      if (received.length === 1) await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING' } } });
      return { writes: received.length === 1 ? [domainRow] : [] };
    });
    await one.deliver(changing);
    expect(received).toEqual([1, 1]);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('does not run again at once without enough time', async () => {
    const one = oneMessage();
    await one.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 } } });
    const handle = vi.fn(async () => {
      await one.clock.sleep(28_500);
      return { writes: [domainRow] };
    });
    await one.deliver(handling(handle));
    expect(handle).toHaveBeenCalledTimes(1);
  });

  test('does not run again at once when its transaction was throttled', async () => {
    const one = oneMessage();
    const codes = ['None', 'ConditionalCheckFailed', 'ThrottlingError'];
    const transact = () => Promise.reject(new TransactionCancelled(codes.map((code) => ({ code }))));
    const handle = vi.fn(async () => ({ events: [1, 2].map(one.happened) }));
    await one.deliver(handling(handle), { table: { ...one.memory, transact } });
    expect(handle).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['nothing', undefined, 'returned undefined'],
    ['a list of writes', [domainRow], 'returned a list'],
  ])(
    'a handler that returns %s fails with an error that names the allowed results',
    async (_what, returned, part) => {
      const one = oneMessage();
      const handler = handling(async () => returned as never);
      const lastError = expect.stringMatching(`${part}; it must return { writes, events }, or {}`);
      await one.deliver(handler);
      const [{ extra } = { extra: undefined }] = one.telemetry.lines();
      expect(extra).toMatchObject({ error: { message: lastError } });
      await one.deliver(handler);
      expect(one.row()).toMatchObject({ status: 'FAILED', lastError });
    },
  );

  test.each([
    ['one draft', (draft: EventDraft): unknown => draft],
    ['a promise of drafts', async (draft: EventDraft) => [draft]],
    ['a number', () => 0],
    ['null', () => null],
  ])('a handler that returns %s as its events publishes and writes nothing, and fails', async (_, events) => {
    const one = oneMessage();
    const handler = handling(async () => ({ writes: [domainRow], events: events(one.happened(9)) }));
    await one.deliver(handler);
    expect(one.telemetry.lines()[0]?.extra).toMatchObject({ error: { code: 'NO_COMMIT' } });
    await one.deliver(handler);
    expect(one.row()).toMatchObject({ status: 'FAILED', lastError: expect.stringContaining('a list') });
    expect(one.domainRow()).toBeUndefined();
    expect(one.rows()).toEqual([]);
  });

  test('publishes the events of any collection', async () => {
    const one = oneMessage();
    await one.deliver(handling(async () => ({ events: new Set([one.happened(8), one.happened(9)]) })));
    expect(one.rows()).toHaveLength(2);
  });

  test('that fails writes no row at the first receive; then it is claimed, and its attempts are counted', async () => {
    const one = oneMessage();
    const handle = vi.fn(() => Promise.reject(new Error('table is gone')));
    await one.deliver(handling(handle));
    expect(one.row()).toBeUndefined();
    await one.deliver(handling(handle));
    expect(one.row()).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'table is gone' });
    await one.clock.advance(5_000);
    await one.drain(handling(handle));
    expect(handle).toHaveBeenCalledTimes(4); // the first one left no trace
    expect(one.row()).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED', attempts: 3 });
    expect(one.pointer()).toBeDefined();
    expect(one.queue.deadLetters()).toHaveLength(1);
  });

  test('with one attempt runs although the function never started at the first receive', async () => {
    const one = oneMessage();
    await one.receivedBefore(); // handed out, and the function was throttled
    const handle = vi.fn(async () => ({}));
    await one.drain(handling(handle), { maxAttempts: 1 });
    expect(handle).toHaveBeenCalledTimes(1);
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('with one attempt runs again after its first run, which needs no claim, ran out of time', async () => {
    const one = oneMessage();
    let runs = 0;
    const handler = handling(async () => {
      runs += 1;
      if (runs === 1) await one.clock.sleep(1_000_000);
      return {};
    });
    await crashable(one, () => [handler], { maxAttempts: 1 }).drain();
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
  });

  test('that kills its process is rejected, and affects no other message of its batch', async () => {
    const parts = rig({ maxReceiveCount: 40 });
    const killer = send(parts, { aggregateId: 'killer' });
    const siblings = Array.from({ length: 9 }, (_, n) => send(parts, { aggregateId: `sibling-${n}` }));
    await crashable(parts, ({ kill }) => [
      transactional(ThingHappened, async (event) => {
        await parts.clock.sleep(100);
        if (event.aggregateId === 'killer') await kill();
        return {};
      }),
    ]).drain();
    for (const sibling of siblings)
      expect(inboxRow(parts, sibling)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(inboxRow(parts, killer)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_EXHAUSTED' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('has up to 98 writes, which also fit into the transaction of a redrive, which removes the pointer', async () => {
    const one = oneMessage();
    await one.drain(handling(() => Promise.reject(new PoisonMessage('not yet'))));
    expect(one.pointer()).toBeDefined();
    one.queue.redrive();
    await one.drain(handling(async () => ({ writes: writesOf(98) })));
    expect(one.row()).toMatchObject({ status: 'PROCESSED' });
    expect(one.pointer()).toBeUndefined();
    expect(one.memory.items().filter(({ SK }) => SK === 'W')).toHaveLength(98);
  });

  test('is refused 99 writes in its first run, because a redrive would have no room for them', async () => {
    const one = oneMessage();
    await one.deliver(handling(async () => ({ writes: writesOf(99) })));
    expect(one.memory.items().filter(({ SK }) => SK === 'W')).toEqual([]);
    const [failure] = one.telemetry.lines().filter(({ level }) => level === 'error');
    expect(failure?.extra).toMatchObject({ error: { code: 'TRANSACTION_TOO_LARGE' } });
  });
});
