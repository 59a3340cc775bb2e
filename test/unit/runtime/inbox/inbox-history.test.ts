import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod/mini';
import { ConditionFailed } from '../../../../lambdas/runtime/base/errors.ts';
import { DAY_MS, HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/events/event.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { forgottenBecause } from '../../../../lambdas/runtime/inbox/inbox-history.ts';
import { allowTooOld } from '../../../../lambdas/runtime/operations/message-operations.ts';
import { createInbox, type InboxDeps } from '../../../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { markUnreadable, openInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-history.ts';
import { systemRandomBytes, unreadableId } from '../../../../lambdas/runtime/store/event-id.ts';
import { externalEventId } from '../../../../lambdas/runtime/store/external-id.ts';
import { inboxHistoryKey, inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { type consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow, type Parts, send } from '../consume/consumer-rig.ts';

/** A consumer whose inbox keeps rows for a number of days, after a restart. */
function started(parts: Parts, inboxRetentionDays: number, change: Partial<typeof consumerConfig> = {}) {
  const handle = vi.fn(async () => ({}));
  const deployed = consumer(parts, [leased(ThingHappened, handle)], parts.table, {
    inboxRetentionDays,
    ...change,
  });
  return { ...deployed, handle };
}

/** Delivers an event, new or once more. */
async function deliver(parts: Parts, to: { drain(): Promise<void> }, event: Envelope): Promise<void> {
  parts.queue.send(body(event));
  await to.drain();
}

const inboxOn = (parts: Pick<InboxDeps, 'table' | 'clock' | 'inboxRetentionDays'>) =>
  createInbox({ random: systemRandomBytes, consumer: CONSUMER, leaseMs: 10_000, ...parts });

const retentions = (parts: Parts) => {
  const { retentions } = parts.memory.item(inboxHistoryKey(CONSUMER)) ?? {};
  return (retentions as { days: number }[]).map(({ days }) => days);
};

async function passDays(parts: Parts, days: number): Promise<void> {
  await parts.clock.advance(days * DAY_MS);
  parts.memory.expire();
}

describe('an event is too old by the shortest retention since it was minted:', () => {
  test.each([
    ['the shorter one is older', [7, 35]],
    ['the longer one is older', [35, 7]],
  ] as const)(
    'handled by one of two processes that run side by side, it is not run by the other one, if %s',
    async (_what, days) => {
      const parts = rig();
      const processes = days.map((each) => ({ each, ...started(parts, each) }));
      for (const one of processes) await deliver(parts, one, envelope(parts));
      const [short, long] = processes.toSorted((a, b) => a.each - b.each);
      if (short === undefined || long === undefined) throw new Error('There are two.');

      await passDays(parts, 2);
      const event = envelope(parts);
      await deliver(parts, short, event);
      await passDays(parts, 9);
      expect(inboxRow(parts, event)).toBeUndefined();
      const runs = long.handle.mock.calls.length;
      await deliver(parts, long, event);
      expect(long.handle).toHaveBeenCalledTimes(runs);
      expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    },
  );

  test('handled under 35 days and replayed under 400, it is rejected and not run again', async () => {
    const parts = rig();
    const event = envelope(parts);
    await deliver(parts, started(parts, 35), event);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });

    await passDays(parts, 30);
    const raised = started(parts, 400);
    await deliver(parts, raised, envelope(parts));
    expect(raised.handle).toHaveBeenCalledTimes(1);

    await passDays(parts, 70);
    expect(inboxRow(parts, event)).toBeUndefined(); // expired
    await deliver(parts, raised, event);
    expect(raised.handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({
      status: 'REJECTED',
      reason: 'EVENT_TOO_OLD',
      lastError: expect.stringContaining('older than the inbox retention of 35 days'),
    });
  });

  test('also where nothing was delivered between the raise and the replay', async () => {
    const parts = rig();
    const event = envelope(parts);
    await deliver(parts, started(parts, 35), event);
    await passDays(parts, 100);
    const raised = started(parts, 400);
    await deliver(parts, raised, event);
    expect(raised.handle).not.toHaveBeenCalled();
  });

  test('a transactional handler is held to it as well', async () => {
    const parts = rig();
    const event = envelope(parts);
    await deliver(parts, started(parts, 35), event);
    await passDays(parts, 100);
    const handle = vi.fn(async () => ({}));
    const change = { inboxRetentionDays: 400 };
    await deliver(parts, consumer(parts, [transactional(ThingHappened, handle)], parts.table, change), event);
    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
  });

  test('minted after the raise, it is absorbed by its row for 400 days, and runs where it has none', async () => {
    const parts = rig();
    await deliver(parts, started(parts, 35), envelope(parts));
    const raised = started(parts, 400);
    await deliver(parts, raised, envelope(parts));
    await passDays(parts, 2);
    const seen = envelope(parts);
    const unseen = envelope(parts);
    await deliver(parts, raised, seen);
    await passDays(parts, 100);
    const later = started(parts, 400);
    await deliver(parts, later, seen);
    expect(later.handle).not.toHaveBeenCalled();
    await deliver(parts, later, unseen);
    expect(later.handle).toHaveBeenCalledTimes(1);
  });

  test('minted while the old version may still run, it is held to the shorter one', async () => {
    const parts = rig();
    const old = started(parts, 35);
    await deliver(parts, old, envelope(parts));
    await deliver(parts, started(parts, 400), envelope(parts));
    await parts.clock.advance(HOUR_MS);
    const event = envelope(parts);
    await deliver(parts, old, event); // by a function that was started before the deploy
    await passDays(parts, 50);
    const raised = started(parts, 400);
    await deliver(parts, raised, event);
    expect(raised.handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({ reason: 'EVENT_TOO_OLD' });
  });

  test('a retention that was raised, rolled back and raised again is known for each of these times', async () => {
    const parts = rig();
    await deliver(parts, started(parts, 35), envelope(parts));
    await deliver(parts, started(parts, 400), envelope(parts));
    await passDays(parts, 5);
    await deliver(parts, started(parts, 35), envelope(parts));
    const event = envelope(parts);
    await deliver(parts, started(parts, 35), event);
    await passDays(parts, 5);
    const raised = started(parts, 400);
    await deliver(parts, raised, envelope(parts));
    expect(retentions(parts)).toEqual([35, 400, 35, 400]);
    await passDays(parts, 60);
    raised.handle.mockClear();
    await deliver(parts, raised, event);
    expect(raised.handle).not.toHaveBeenCalled();
  });

  test('lowered, it holds for all events', async () => {
    const parts = rig();
    const event = envelope(parts);
    await deliver(parts, started(parts, 400), envelope(parts));
    await passDays(parts, 36);
    const lowered = started(parts, 35);
    await deliver(parts, lowered, event);
    expect(lowered.handle).not.toHaveBeenCalled();
  });

  test.each([
    ['leased', leased],
    ['transactional', transactional],
  ])(
    'a new consumer runs any event for a retention after its first start, and each once: %s',
    async (_, kind) => {
      const parts = rig();
      const [first, second, late] = [envelope(parts), envelope(parts), envelope(parts)];
      await passDays(parts, 300);
      const handle = vi.fn(async () => ({}));
      const deployed = () =>
        consumer(parts, [kind(ThingHappened, handle)], parts.table, { inboxRetentionDays: 35 });
      await deliver(parts, deployed(), first);
      expect(handle).toHaveBeenCalledTimes(1);
      await passDays(parts, 34);
      await deliver(parts, deployed(), second);
      expect(handle).toHaveBeenCalledTimes(2);
      await passDays(parts, 1);
      await deliver(parts, deployed(), first); // its row is kept for a day more
      await deliver(parts, deployed(), late);
      expect(handle).toHaveBeenCalledTimes(2);
      expect(inboxRow(parts, late)).toMatchObject({ status: 'REJECTED', reason: 'EVENT_TOO_OLD' });
    },
  );

  test('an event from before the first start is held to every retention since the first start', async () => {
    const parts = rig();
    const event = envelope(parts);
    await passDays(parts, 100);
    await deliver(parts, started(parts, 35), event);
    await passDays(parts, 10);
    await deliver(parts, started(parts, 400), envelope(parts));
    await passDays(parts, 60);
    const raised = started(parts, 400);
    await deliver(parts, raised, event);
    expect(raised.handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toMatchObject({
      reason: 'EVENT_TOO_OLD',
      lastError: expect.stringContaining('35 days'),
    });
  });

  test('an unreadable message that was settled before the first start starts nothing', async () => {
    const parts = rig();
    const event = envelope(parts);
    await passDays(parts, 40);
    await markUnreadable(
      { ...inboxOn({ ...parts, table: parts.memory, inboxRetentionDays: 35 }) },
      unreadableId('?'),
    );
    await passDays(parts, 40);
    const fresh = started(parts, 35);
    await deliver(parts, fresh, event);
    expect(fresh.handle).toHaveBeenCalledTimes(1);
    expect(retentions(parts)).toEqual([35]);
  });

  test('under a new name, what was written before the move is rejected, and what is newer runs', async () => {
    const parts = rig();
    const before = envelope(parts);
    await parts.clock.advance(HOUR_MS);
    const moved = started(parts, 35, { inboxSince: parts.clock.now() });
    const after = envelope(parts);
    await deliver(parts, moved, before);
    expect(moved.handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, before)).toMatchObject({
      reason: 'EVENT_TOO_OLD',
      lastError: expect.stringContaining('The consumer had another name until'),
    });
    await deliver(parts, moved, after);
    expect(moved.handle).toHaveBeenCalledTimes(1);
  });

  test('under a new name, an external event without a row is rejected until an operator allows it', async () => {
    const parts = rig();
    const ThingArrived = externalEvent({ source: 'partner', type: 'arrived', id: 'id', schema: z.unknown() });
    const handle = vi.fn(async () => {});
    const consumerNamed = (change: Partial<typeof consumerConfig>) =>
      consumer(parts, [leased(ThingArrived, handle)], parts.table, change);
    const arrive = () =>
      parts.queue.send({ id: 'b', source: 'partner', 'detail-type': 'arrived', detail: { id: '7' } });
    arrive();
    await consumerNamed({ consumer: 'older' }).drain();
    expect(handle).toHaveBeenCalledTimes(1);

    await parts.clock.advance(HOUR_MS);
    const moved = consumerNamed({ inboxSince: parts.clock.now() });
    arrive();
    await moved.drain();

    expect(handle).toHaveBeenCalledTimes(1);
    const eventId = externalEventId(ThingArrived, ['7']);
    expect(parts.memory.item(inboxKey(CONSUMER, eventId))).toMatchObject({ reason: 'EVENT_TOO_OLD' });
    await allowTooOld(parts, { consumer: CONSUMER, eventId, by: 'ada', reason: 'never arrived' });
    parts.queue.redrive();
    await moved.drain();
    expect(handle).toHaveBeenCalledTimes(2);
  });

  test('an operator lets one run that was rejected', async () => {
    const parts = rig();
    const event = envelope(parts);
    await deliver(parts, started(parts, 35), event);
    await passDays(parts, 100);
    const raised = started(parts, 400);
    await deliver(parts, raised, event);
    await allowTooOld(
      { table: parts.memory, clock: parts.clock },
      {
        consumer: CONSUMER,
        eventId: event.eventId,
        by: 'ada',
        reason: 'never charged',
      },
    );
    parts.queue.redrive();
    await raised.drain();
    expect(raised.handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });
});

describe('at the end of its retention, a repeat', () => {
  const RETENTION_DAYS = 35;
  const addOne = {
    Update: {
      Key: { PK: 'COUNTER#1', SK: 'COUNTER' },
      UpdateExpression: 'ADD n :one',
      ExpressionAttributeValues: { ':one': 1 },
    },
  };
  const applied = ({ memory }: Parts) => memory.item(addOne.Update.Key)?.n;

  test('a repeat that is received in time finds its row after a slow handler', async () => {
    const parts = rig();
    const functionMs = 5 * 60_000;
    let workMs = 0;
    const handler = transactional(ThingHappened, async () => {
      await parts.clock.sleep(workMs);
      parts.memory.expire();
      return { writes: [addOne] };
    });
    const worker = consumer(parts, [handler], parts.table, { inboxRetentionDays: RETENTION_DAYS });
    const event = envelope(parts);
    parts.queue.send(body(event));
    await worker.deliver();
    expect(applied(parts)).toBe(1);

    await parts.clock.advance(RETENTION_DAYS * DAY_MS - 10_000);
    workMs = functionMs - 10_000;
    parts.queue.send(body(event));
    await worker.deliver(functionMs);

    expect(applied(parts)).toBe(1);
  });

  test('finds its row if the clock of its worker is behind', async () => {
    const parts = rig();
    const event = envelope(parts);
    const { handle, ...first } = started(parts, RETENTION_DAYS);
    await deliver(parts, first, event);
    await parts.clock.advance(RETENTION_DAYS * DAY_MS + 1_500);
    parts.memory.expire();

    const behind = { ...parts.clock, now: () => parts.clock.now() - 1_900 };
    const second = started({ ...parts, clock: behind }, RETENTION_DAYS);
    parts.queue.send(body(event));
    await second.deliver();

    expect(handle).toHaveBeenCalledTimes(1);
    expect(second.handle).not.toHaveBeenCalled();
  });
});

describe('the history of an inbox', () => {
  test('is read once for each start, and written only when a retention changes', async () => {
    const parts = rig();
    const { table, gets, writes } = watched(parts.memory);
    for (let start = 0; start < 3; start += 1) {
      const fresh = started({ ...parts, table }, 35);
      for (let n = 0; n < 3; n += 1) {
        send(parts);
        await fresh.drain();
      }
    }
    expect(gets()).toBe(3);
    expect(writes()).toBe(1);
    expect(retentions(parts)).toEqual([35]);
  });

  test('keeps the changes found by two functions that start at the same time', async () => {
    const parts = rig();
    await deliver(parts, started(parts, 35), envelope(parts));
    const stale = parts.memory.item(inboxHistoryKey(CONSUMER));
    // The second function read the history before the first one wrote it.
    const table: Table = { ...parts.memory, get: async () => stale };
    const [first, second] = [started(parts, 58), started({ ...parts, table }, 400)];
    await deliver(parts, first, envelope(parts));
    await deliver(parts, second, envelope(parts));
    expect(retentions(parts)).toEqual([35, 58, 400]);
    expect(second.handle).toHaveBeenCalledTimes(1);
  });

  test('keeps the entries of two functions that start at the same time for the first time', async () => {
    const parts = rig();
    const table: Table = { ...parts.memory, get: async () => undefined };
    await deliver(parts, started(parts, 35), envelope(parts));
    await deliver(parts, started({ ...parts, table }, 400), envelope(parts));
    expect(retentions(parts)).toEqual([35, 400]);
  });

  test('is written five times at most in competition with others', async () => {
    const { memory, clock } = rig();
    let writes = 0;
    const table: Table = {
      ...memory,
      write: async (action) => {
        writes += 1;
        if (writes <= 20) throw new ConditionFailed(undefined);
        return memory.write(action);
      },
    };
    const opened = openInbox(inboxOn({ table, clock, inboxRetentionDays: 35 }));
    await expect(opened).rejects.toMatchObject({ code: 'CONDITION_FAILED' });
    expect(writes).toBe(5);
  });

  test('has a different time for each change, even with a clock that is behind', async () => {
    const { memory } = rig();
    const clock = { now: () => 1_000, sleep: async () => {} };
    for (const inboxRetentionDays of [35, 58, 400])
      await openInbox(inboxOn({ table: memory, clock, inboxRetentionDays }));
    expect(memory.item(inboxHistoryKey(CONSUMER))).toMatchObject({
      retentions: [{ since: 1_000 }, { since: 1_001 }, { since: 1_002 }],
      changedAt: 1_002,
    });
  });

  test('is read as it is now: a retention that was rolled back meanwhile is not overlooked', async () => {
    const parts = rig();
    const { memory, clock } = parts;
    const open = async (inboxRetentionDays: number, table: Table = memory) => {
      const inbox = inboxOn({ table, clock, inboxRetentionDays });
      await openInbox(inbox);
      return inbox;
    };
    await open(400);
    const stale = memory.item(inboxHistoryKey(CONSUMER));
    const { eventId } = envelope(parts);
    await open(35);
    await passDays(parts, 10);
    await open(400);
    await passDays(parts, 50);
    const get: Table['get'] = async (key, how) => (how?.consistent ? memory.get(key, how) : stale);
    const inbox = await open(400, { ...memory, get });
    expect(forgottenBecause(inbox, eventId)).toContain('35 days');
  });

  test('is not written twice where the answer to the write is lost', async () => {
    const parts = rig();
    let lost = false;
    const table: Table = {
      ...parts.memory,
      write: async (write) => {
        const answer = await parts.memory.write(write);
        if (lost || write.Update?.Key?.SK !== 'HISTORY') return answer;
        lost = true;
        throw Object.assign(new Error('No answer came in time'), { name: 'TimeoutError' });
      },
    };
    const fresh = started({ ...parts, table }, 35);
    await deliver(parts, fresh, envelope(parts));
    expect(retentions(parts)).toEqual([35]);
    expect(fresh.handle).toHaveBeenCalledTimes(1);
  });

  test('a history that cannot be read lets no message run, and the next message reads it', async () => {
    const parts = rig();
    const event = envelope(parts);
    let down = true;
    const table: Table = {
      ...parts.memory,
      get: async (...args) => {
        if (down) throw Object.assign(new Error('Rate exceeded'), { name: 'ThrottlingException' });
        return parts.memory.get(...args);
      },
    };
    const fresh = started({ ...parts, table }, 35);
    parts.queue.send(body(event));
    await fresh.deliver();
    expect(fresh.handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toBeUndefined();
    down = false;
    await fresh.drain();
    expect(fresh.handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  });
});

/** A table that counts what is done to an inbox's history. */
function watched(memory: Parts['memory']) {
  let gets = 0;
  let writes = 0;
  const table: Table = {
    ...memory,
    get: (key, options) => {
      if (key.SK === 'HISTORY') gets += 1;
      return memory.get(key, options);
    },
    write: (write) => {
      if (write.Update?.Key?.SK === 'HISTORY') writes += 1;
      return memory.write(write);
    },
  };
  return { table, gets: () => gets, writes: () => writes };
}
