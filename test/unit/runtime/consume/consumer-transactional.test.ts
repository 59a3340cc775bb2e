import { describe, expect, test, vi } from 'vitest';
import { transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import { inboxHistoryKey } from '../../../../lambdas/runtime/store/rows.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, domainRow, inboxRow, mortal, pointer, send } from './consumer-rig.ts';

describe('a transactional handler', () => {
  test('writes, and is processed, in one call', async () => {
    const parts = rig();
    const transact = vi.fn(parts.memory.transact);
    const history = { ...inboxHistoryKey(CONSUMER), retentions: [{ days: 35, since: 0 }], changedAt: 0 };
    await parts.memory.write({ Put: { Item: history } });
    const get = vi.fn(parts.memory.get);
    const others = { write: vi.fn(), query: vi.fn(), updateEach: vi.fn() };
    const { deliver } = consumer(
      parts,
      [transactional(ThingHappened, async () => ({ writes: [domainRow], events: [parts.happened(9)] }))],
      { ...parts.memory, ...others, get, transact },
    );
    const event = send(parts);
    await deliver();
    expect(transact).toHaveBeenCalledTimes(1);
    for (const call of Object.values(others)) expect(call).not.toHaveBeenCalled();
    expect(get.mock.calls.map(([key]) => key)).toEqual([inboxHistoryKey(CONSUMER)]); // once for each start
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'PROCESSED',
      attempts: 1,
      fence: expect.any(String),
    });
    expect(JSON.parse(parts.rows()[0]?.envelope ?? '')).toMatchObject({ causationId: event.eventId });
  });

  test('a message that is delivered twice at once is written once', async () => {
    const parts = rig();
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
    const parts = rig();
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

  test.each([
    ['nothing', undefined, 'returned undefined'],
    ['a list of writes', [domainRow], 'returned a list'],
  ])(
    'a handler that returns %s fails with an error that names the allowed results',
    async (_what, returned, part) => {
      const parts = rig();
      const { deliver } = consumer(parts, [transactional(ThingHappened, async () => returned as never)]);
      const event = send(parts);
      await deliver();
      await parts.clock.advance(3_000);
      await deliver();
      expect(inboxRow(parts, event)).toMatchObject({
        status: 'FAILED',
        lastError: expect.stringMatching(`${part}; it must return { writes, events }, or {}`),
      });
    },
  );

  test('a message that fails has no row at its first receive; later it is claimed and its attempts are counted', async () => {
    const parts = rig();
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
    const parts = rig();
    const event = send(parts);
    parts.queue.receive(); // handed out, and the function was throttled
    await parts.clock.advance(consumerConfig.visibilityTimeoutMs);
    const handle = vi.fn(async () => ({}));
    await consumer(parts, [transactional(ThingHappened, handle)], parts.table, { maxAttempts: 1 }).drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a handler that kills its process affects no other message of its batch', async () => {
    const parts = rig({ maxReceiveCount: 40 });
    const killer = send(parts, { aggregateId: 'killer' });
    const siblings = Array.from({ length: 9 }, (_, n) => send(parts, { aggregateId: `sibling-${n}` }));
    await mortal(parts, ({ kill }) => [
      transactional(ThingHappened, async (event) => {
        await parts.clock.sleep(100);
        if (event.aggregateId === 'killer') await kill();
        return {};
      }),
    ]).drain();
    for (const sibling of siblings)
      expect(inboxRow(parts, sibling)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(inboxRow(parts, killer)).toMatchObject({ status: 'REJECTED', reason: 'ATTEMPTS_SPENT' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
  });

  test('a handler that fills its transaction is processed after a redrive, which needs one action more', async () => {
    const parts = rig();
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

  test('is refused at its first run already a commit that a redrive would have no room for', async () => {
    const parts = rig();
    const writes = Array.from({ length: 99 }, (_, n) => ({
      Put: { Item: { PK: `THING#${n}`, SK: 'THING', schema: 1 } },
    }));
    send(parts);
    await consumer(parts, [transactional(ThingHappened, async () => ({ writes }))]).deliver();
    expect(parts.memory.items().filter(({ SK }) => SK === 'THING')).toEqual([]);
    const [failure] = parts.telemetry.lines().filter(({ level }) => level === 'error');
    expect(failure?.extra).toMatchObject({ error: { code: 'TRANSACTION_TOO_LARGE' } });
  });

  test('rejected, then redriven, is processed and its pointer goes with the same transaction', async () => {
    const parts = rig();
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

  test('a handler that returns nothing fails with a clear error', async () => {
    const parts = rig();
    send(parts);
    await consumer(parts, [transactional(ThingHappened, (async () => undefined) as never)]).deliver();
    expect(
      JSON.stringify(parts.telemetry.lines().map((line) => String((line.extra as { error: Error }).error))),
    ).toContain('must return { writes, events }');
  });
});
