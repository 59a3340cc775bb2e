import { describe, expect, test, vi } from 'vitest';
import { type LeasedContext, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { AlreadyProcessed, TransactionCancelled } from '../../../../lambdas/runtime/errors.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, domainRow, inboxRow, type Parts, send } from './consumer-rig.ts';

function named(name: string): Error {
  return Object.assign(new Error('of AWS'), { name });
}

/** A table that does something before each call that says a text. */
function delayed(parts: Pick<Parts, 'memory'>, text: string, work: () => Promise<unknown>): Table {
  return new Proxy(parts.memory, {
    get: (target, name) => {
      const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      if (name !== 'write' && name !== 'transact') return call;
      return async (...args: unknown[]) => {
        if (JSON.stringify(args).includes(text)) await work();
        return call(...args);
      };
    },
  });
}

/** A write that the table refuses. */
const absentRow = {
  Put: { Item: { PK: 'THING#1', SK: 'THING' }, ConditionExpression: 'attribute_exists(PK)' },
};

const invalid = ThingHappened.create({ aggregateId: '', data: { n: 1 } });

const fails = leased(ThingHappened, async () => {
  throw new Error('of its own');
});

describe('the end of a claim', () => {
  test('is written again while the table cannot be reached', async () => {
    const parts = rig();
    const event = send(parts);
    let tries = 0;
    const table = delayed(parts, ':FAILED, retryAt', async () => {
      tries += 1;
      if (tries <= 2) throw named('ThrottlingException');
    });
    await consumer(parts, [fails], table).deliver();
    expect(tries).toBe(3);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 1, lastError: 'of its own' });
  });

  test('the end of a claim that the table refuses permanently is not written again', async () => {
    const parts = rig();
    send(parts);
    const write = vi.fn().mockRejectedValue(named('ValidationException'));
    await consumer(parts, [fails], delayed(parts, ':FAILED, retryAt', write)).deliver();
    expect(write).toHaveBeenCalledTimes(1);
  });

  test.each([
    ['only while the batch can be answered before its function is stopped', 10_000, 8_000],
    ['only for a while, however long the function may take', 600_000, 20_000],
  ])('is written again %s', async (_what, timeoutMs, atMostMs) => {
    const parts = rig();
    send(parts);
    const startedAt = parts.clock.now();
    const write = vi.fn().mockRejectedValue(named('ThrottlingException'));
    await consumer(parts, [fails], delayed(parts, ':FAILED, retryAt', write)).deliver(timeoutMs);
    // With pauses of one to two seconds.
    expect(write.mock.calls.length).toBeGreaterThan(atMostMs / 2_000);
    expect(write.mock.calls.length).toBeLessThan(30);
    expect(parts.clock.now() - startedAt).toBeGreaterThan(atMostMs - 2_100);
    expect(parts.clock.now() - startedAt).toBeLessThan(atMostMs + 500);
  });

  test('records on the row when the message becomes visible again', async () => {
    const parts = rig();
    const event = send(parts);
    await consumer(parts, [fails]).deliver();
    expect(inboxRow(parts, event)?.retryAt).toBe(parts.queue.messages()[0]?.visibleAt);
  });
});

describe('an outage', () => {
  test('does not undo what the handler calls processed', async () => {
    const parts = rig();
    const event = send(parts);
    const table = delayed(parts, 'THING#1', async () => {
      throw new TransactionCancelled([{ code: 'ThrottlingError' }, { code: 'None' }]);
    });
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await ctx.commit({ writes: [domainRow] }).catch(() => {});
      throw new AlreadyProcessed('by another worker');
    });
    await consumer(parts, [handler], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });
});

describe('when the time is up', () => {
  const forever = () => new Promise<never>(() => {});
  const nearlyAll = 29_500;

  test.each([
    ['works itself', async (_ctx: LeasedContext) => {}, '', 0],
    ['has waited for its provider', null, '', 0],
    ['has waited for the table to start an effect', null, 'startedAt', 1],
    ['has waited for the table to store a result', null, 'completedAt', 1],
    [
      'has waited for the table to commit',
      (ctx: LeasedContext) => ctx.commit({ writes: [domainRow] }),
      'THING#1',
      1,
    ],
    ['works itself after an effect', (ctx: LeasedContext) => ctx.once('charge', async () => {}), '', 0],
    [
      'works itself after a commit that was refused',
      (ctx: LeasedContext) => ctx.commit({ writes: [absentRow] }).catch(() => {}),
      '',
      0,
    ],
    [
      'has waited for the table to start an effect after a commit that was never sent',
      async (ctx: LeasedContext) => {
        await ctx.commit({ events: [invalid] }).catch(() => {});
        await ctx.once('charge', async () => {});
      },
      'startedAt',
      1,
    ],
  ])('a handler that %s is judged by who took its time: %#', async (_what, does, slow, outages) => {
    const parts = rig();
    const event = send(parts);
    const { clock } = parts;
    const table = slow === '' ? parts.memory : delayed(parts, slow, () => clock.sleep(nearlyAll));
    const handler = leased(ThingHappened, async (_event, ctx) => {
      await (does === null ? ctx.once('charge', () => clock.sleep(slow === '' ? nearlyAll : 1)) : does(ctx));
      await forever();
    });
    await consumer(parts, [handler], table).deliver();
    expect(parts.telemetry.counted('TableFailures')).toBe(outages);
    if (outages === 0)
      expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSING', outOfTime: true });
  });

  /** The handler obeys, and is over before the table has taken the mark. */
  const obeys = leased(ThingHappened, (_event, ctx) => {
    return new Promise((_resolve, reject) =>
      ctx.signal.addEventListener('abort', () => reject(new Error('aborted'))),
    );
  });
  const slowMark = (parts: Parts) => delayed(parts, 'outOfTime = :outOfTime', () => parts.clock.sleep(100));

  test.each([
    ['is not counted when its function had worked for more than two seconds before', 2_001, 1],
    ['counts as cut off when its function had worked for two seconds before', 2_000, 0],
  ])('a handler that obeys %s', async (_what, claimMs, outages) => {
    const parts = rig();
    const event = send(parts);
    const memory = { ...parts.memory, ...slowMark(parts) };
    const table = delayed({ ...parts, memory }, 'claimedAt', () => parts.clock.sleep(claimMs));
    await consumer(parts, [obeys], table).deliver();
    expect(parts.telemetry.counted('TableFailures')).toBe(outages);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
  });

  test('a handler that obeys is not counted when its claim was slow', async () => {
    const parts = rig();
    const event = send(parts);
    const memory = { ...parts.memory, ...slowMark(parts) };
    const table = delayed({ ...parts, memory }, 'claimedAt', () => parts.clock.sleep(5_000));
    await consumer(parts, [obeys], table).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(inboxRow(parts, event)).not.toHaveProperty('unfinished');
    expect(parts.telemetry.counted('TableFailures')).toBe(1);
  });

  test.each([
    ['in company is tried again', 0, 'FAILED'],
    ['alone is rejected', 2, 'REJECTED'],
  ])('on its last attempt, a handler that obeys %s', async (_what, unfinished, status) => {
    const parts = rig();
    const event = send(parts);
    parts.queue.receive();
    await parts.clock.advance(60_000);
    const row = { schema: 1, status: 'FAILED', fence: 'theirs', attempts: 0, unfinished };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    await consumer(parts, [obeys], slowMark(parts), { maxAttempts: 1 }).deliver();
    expect(inboxRow(parts, event)).toMatchObject({ status });
    if (status === 'FAILED') {
      const retryAt = parts.queue.messages()[0]?.visibleAt;
      expect(inboxRow(parts, event)).toMatchObject({ attempts: 0, unfinished: 1, retryAt });
    }
  });

  test('attempts that are not counted spread over the retry schedule', async () => {
    const parts = rig();
    const event = send(parts);
    parts.queue.receive();
    await parts.clock.advance(60_000);
    const row = { schema: 1, status: 'FAILED', fence: 'theirs', attempts: 0, unfinished: 1 };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    await consumer(parts, [obeys], slowMark(parts), { retryFirstMs: 60_000 }).deliver();
    // The delay of a second attempt, though this was a first one: 120 to 240 s.
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(parts.clock.now() + 119_000);
  });

  test('attempts that are not counted delay their message as two at most, however many they are', async () => {
    const parts = rig();
    const event = send(parts);
    parts.queue.receive();
    await parts.clock.advance(60_000);
    const row = { schema: 1, status: 'FAILED', fence: 'theirs', attempts: 0, unfinished: 9 };
    await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, event.eventId), ...row } } });
    await consumer(parts, [obeys], slowMark(parts), { retryFirstMs: 1_000 }).deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeLessThanOrEqual(parts.clock.now() + 16_000);
  });

  test('its message waits as after a failure', async () => {
    const parts = rig();
    send(parts);
    const handler = leased(ThingHappened, forever);
    await consumer(parts, [handler], parts.table, { retryFirstMs: 60_000 }).deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(parts.clock.now() + 29_000);
  });

  test('its message waits until its function is stopped, however soon its next attempt is due', async () => {
    const parts = rig();
    send(parts);
    const endsBy = parts.clock.now() + 30_000;
    const handler = leased(ThingHappened, forever);
    await consumer(parts, [handler], parts.table, { retryFirstMs: 1_000 }).deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThan(endsBy);
  });

  test('its message waits as in an outage where the table took the time', async () => {
    const parts = rig();
    send(parts);
    const table = delayed(parts, 'claimedAt', () => parts.clock.sleep(5_000));
    await consumer(parts, [leased(ThingHappened, forever)], table).deliver();
    expect(parts.queue.messages()[0]?.visibleAt).toBeGreaterThanOrEqual(parts.clock.now() + 47_000);
  });

  test('the batch is answered, though the table does not take the mark', async () => {
    const parts = rig();
    send(parts);
    const endsBy = parts.clock.now() + 30_000;
    const { failed } = await consumer(
      parts,
      [leased(ThingHappened, forever)],
      delayed(parts, 'outOfTime = :outOfTime', () => parts.clock.sleep(60_000)),
    ).deliver();
    expect(failed).toHaveLength(1);
    expect(parts.clock.now()).toBeLessThan(endsBy);
  });
});

test('a transactional handler is not rerun at once without enough time', async () => {
  const parts = rig();
  send(parts);
  const handle = vi.fn(async () => {
    await parts.clock.sleep(28_500);
    return { writes: [domainRow] };
  });
  await parts.memory.write({ Put: { Item: { PK: 'THING#1', SK: 'THING', schema: 1 } } });
  await consumer(parts, [transactional(ThingHappened, handle)]).deliver();
  expect(handle).toHaveBeenCalledTimes(1);
});
