import { describe, expect, test } from 'vitest';
import { z } from 'zod/mini';
import { PoisonMessage, RetryLater } from '../../../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../../../lambdas/runtime/base/units.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { consumerConfig, ThingHappened } from '../../../support/runtime-rig.ts';
import { counting, gate, sourceRig } from './source-rig.ts';

/** An error with a code. */
const code = (expected: string) => expect.objectContaining({ code: expected });

/** A message that carries a new event. */
async function delivered(parts: ReturnType<typeof sourceRig>, n = 1) {
  const { eventId, ...envelope } = await parts.envelope(n);
  return { eventId, message: { id: `topic/0/${n}`, body: JSON.stringify({ eventId, ...envelope }) } };
}

describe('the answer', () => {
  test('is done when the handler returns, and duplicate from then on', async () => {
    const parts = sourceRig();
    const { handler, events } = counting();
    const { message, eventId } = await delivered(parts);
    expect(await parts.through(parts.inbox.process(message, handler))).toEqual({ kind: 'done' });
    expect(await parts.through(parts.inbox.process({ ...message, id: 'topic/0/2' }, handler))).toEqual({
      kind: 'duplicate',
    });
    expect(events).toHaveLength(1);
    expect(events[0]).toMatchObject({ eventId, source: 'things', data: { n: 1 } });
    expect(parts.row(eventId)).toMatchObject({ status: 'PROCESSED' });
    expect(parts.telemetry.counted('MessagesReceived')).toBe(2);
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(1);
  });

  test('is rejected for an event that is redelivered after its row has expired: it does not run twice', async () => {
    const parts = sourceRig();
    const { handler, events } = counting();
    const { message } = await delivered(parts);
    await parts.through(parts.inbox.process(message, handler));
    await parts.clock.advance((consumerConfig.inboxRetentionDays + 2) * DAY_MS);
    expect(parts.memory.expire()).toBeGreaterThan(0);
    const again = parts.inbox.process({ ...message, id: 'topic/0/9' }, handler);
    expect(await parts.through(again)).toMatchObject({ kind: 'rejected', reason: { code: 'EVENT_TOO_OLD' } });
    expect(events).toHaveLength(1);
  });

  test('is a retry with the delay of the schedule or of the handler, and the redacted reason', async () => {
    const parts = sourceRig({}, { redact: (text) => text.replace('secret', '#') });
    const { message } = await delivered(parts);
    const failing = counting(async () => Promise.reject(new Error('a secret')));
    const answer = await parts.through(parts.inbox.process(message, failing.handler));
    expect(answer).toMatchObject({ kind: 'retry', reason: { code: 'Error', message: 'a #' } });
    const later = counting(async () => Promise.reject(new RetryLater(90_000)));
    const other = await delivered(parts, 2);
    expect(await parts.through(parts.inbox.process(other.message, later.handler))).toMatchObject({
      kind: 'retry',
      afterMs: 90_000,
    });
  });

  test('is rejected with the reason, and again for the same id; under another id it runs again', async () => {
    const parts = sourceRig();
    const { message, eventId } = await delivered(parts);
    let poisoned = true;
    const { handler, events } = counting(async () => {
      if (poisoned) throw new PoisonMessage('The card is stolen', { code: 'STOLEN' });
    });
    const rejected = { kind: 'rejected', reason: { code: 'STOLEN' } };
    expect(await parts.through(parts.inbox.process(message, handler))).toMatchObject(rejected);
    expect(await parts.through(parts.inbox.process(message, handler))).toMatchObject(rejected);
    expect(events).toHaveLength(1);
    expect(parts.row(eventId)).toMatchObject({ status: 'REJECTED' });
    poisoned = false;
    expect(await parts.through(parts.inbox.process({ ...message, id: 'topic/0/9' }, handler))).toEqual({
      kind: 'done',
    });
  });

  test.each([
    ['no JSON', 'x', 'UNREADABLE_MESSAGE'],
    ['no envelope', '{"a":1}', 'UNREADABLE_MESSAGE'],
    ['empty', '', 'UNREADABLE_MESSAGE'],
  ])('is rejected for a body that is %s, at every delivery', async (_name, body, code) => {
    const parts = sourceRig();
    for (const receives of [undefined, 1, 2]) {
      const answer = parts.inbox.process({ id: 'm', body, receives }, counting().handler);
      expect(await parts.through(answer)).toMatchObject({ kind: 'rejected', reason: { code } });
    }
  });

  test('is rejected once the attempts are exhausted', async () => {
    const parts = sourceRig();
    const { message } = await delivered(parts);
    const { handler, events } = counting(async () => Promise.reject(new Error('down')));
    const kinds: string[] = [];
    for (let i = 0; i < consumerConfig.maxAttempts; i += 1) {
      const answer = await parts.through(parts.inbox.process(message, handler));
      kinds.push(answer.kind);
      if (answer.kind === 'retry') await parts.clock.advance(answer.afterMs);
    }
    expect(kinds).toEqual(['retry', 'retry', 'rejected']);
    expect(events).toHaveLength(3);
  });

  test('is a retry while the table is away, and no attempt is counted', async () => {
    let away = true;
    const down = () => Promise.reject(Object.assign(new Error('down'), { name: 'ThrottlingException' }));
    const parts = sourceRig({
      wrap: (memory) => ({
        ...memory,
        get: (...args) => (away ? down() : memory.get(...args)),
        write: (...args) => (away ? down() : memory.write(...args)),
      }),
    });
    const { message, eventId } = await delivered(parts);
    const { handler, events } = counting();
    for (const receives of [undefined, 1]) {
      const answer = await parts.through(parts.inbox.process({ ...message, receives }, handler));
      expect(answer).toMatchObject({ kind: 'retry', reason: { code: 'ThrottlingException' } });
    }
    away = false;
    expect(await parts.through(parts.inbox.process(message, handler))).toEqual({ kind: 'done' });
    expect(events).toHaveLength(1);
    expect(parts.row(eventId)).toMatchObject({ attempts: 1 });
  });
});

describe('a delivery', () => {
  test('that comes before its next attempt is due waits, and does not run', async () => {
    const parts = sourceRig();
    const { message, eventId } = await delivered(parts);
    const { handler, events } = counting(async () => Promise.reject(new RetryLater(60_000)));
    await parts.through(parts.inbox.process(message, handler));
    await parts.clock.advance(20_000);
    const early = await parts.inbox.process(message, handler);
    expect(early).toMatchObject({ kind: 'retry', reason: { code: 'PUT_BACK' } });
    expect(early).toHaveProperty('afterMs', Number(parts.row(eventId)?.retryAt) - parts.clock.now());
    expect(events).toHaveLength(1);
    await parts.clock.advance(60_000);
    await parts.through(parts.inbox.process(message, handler));
    expect(events).toHaveLength(2);
  });

  test('does not wait for a retry that was changed by hand to one of years ahead', async () => {
    const parts = sourceRig();
    const { message, eventId } = await delivered(parts);
    const { handler, events } = counting(async () => Promise.reject(new RetryLater(60_000)));
    await parts.through(parts.inbox.process(message, handler));
    const key = inboxKey(parts.inbox.consumer, eventId);
    await parts.table.write({ Put: { Item: { ...key, ...parts.row(eventId), retryAt: Date.UTC(2031, 0) } } });
    await parts.through(parts.inbox.process(message, handler));
    expect(events).toHaveLength(2);
  });

  test('whose message is held waits for the lease, not for the end of the time of its handler', async () => {
    const parts = sourceRig();
    const { message } = await delivered(parts);
    const { opened, open } = gate();
    const { handler, events } = counting(() => opened);
    const first = parts.inbox.process(message, handler);
    await parts.clock.advance(5_000);
    const second = await parts.inbox.process(message, handler);
    expect(second).toMatchObject({ kind: 'retry', reason: { code: 'LEASED' } });
    expect(second).toHaveProperty('afterMs', expect.any(Number));
    expect((second as { afterMs: number }).afterMs).toBeLessThanOrEqual(consumerConfig.leaseMs + 1_000);
    open();
    expect(await parts.through(first)).toEqual({ kind: 'done' });
    expect(events).toHaveLength(1);
  });

  test('that is the first one costs no read, and one that may be a repeat costs one', async () => {
    let reads = 0;
    const parts = sourceRig({
      wrap: (memory) => ({
        ...memory,
        get: (...args) => {
          reads += 1;
          return memory.get(...args);
        },
      }),
    });
    const { handler } = counting();
    await parts.through(parts.inbox.process((await delivered(parts, 1)).message, handler)); // also reads the history
    for (const [receives, expected] of [
      [1, 0],
      [2, 1],
      [undefined, 1],
    ] as const) {
      reads = 0;
      const { message } = await delivered(parts, 5 + (receives ?? 0));
      await parts.through(parts.inbox.process({ ...message, receives }, handler));
      expect(reads).toBe(expected);
    }
  });
});

describe('a message that may have killed its process', () => {
  /** Leaves the row of a message whose last claims ended without a result. */
  async function killer(parts: ReturnType<typeof sourceRig>) {
    const found = await delivered(parts, 7);
    const claims = [1, 2].map(() => sourceRigOn(parts));
    for (const inbox of claims) {
      const never = counting(() => new Promise(() => {}));
      void inbox.process(found.message, never.handler);
      await parts.clock.advance(200_000);
    }
    return found;
  }

  /** Another process on the same table, whose clock stops with it: its leases are not renewed. */
  const sourceRigOn = ({ table, clock, telemetry }: ReturnType<typeof sourceRig>) =>
    createInboxProcessor({
      config: consumerConfig,
      table,
      clock: { now: clock.now, sleep: () => new Promise(() => {}) },
      telemetry,
      stopProcess: () => {},
    });

  test('runs alone: the messages that run end first', async () => {
    const parts = sourceRig();
    const { message } = await killer(parts);
    const beside = await delivered(parts, 8);
    const { opened, open } = gate();
    const log: string[] = [];
    const { handler } = counting(async ({ data }) => {
      const { n } = data as { n: number };
      log.push(`+${n}`);
      if (n === 8) await opened;
      log.push(`-${n}`);
    });
    const first = parts.inbox.process(beside.message, handler);
    await parts.clock.advance(10);
    const second = parts.inbox.process(message, handler);
    await parts.clock.advance(10);
    expect(log).toEqual(['+8']);
    open();
    expect(await parts.through(Promise.all([first, second]))).toEqual([{ kind: 'done' }, { kind: 'done' }]);
    expect(log).toEqual(['+8', '-8', '+7', '-7']);
  });
});

describe('the time of a handler', () => {
  test('ends the process if an effect still runs when it is over', async () => {
    const parts = sourceRig({}, { handlerTimeoutMs: 20_000 });
    const { message } = await delivered(parts);
    const { handler } = counting((_, ctx) => ctx.once('charge', () => new Promise(() => {})));
    const began = parts.clock.now();
    void parts.inbox.process(message, handler);
    await parts.clock.advance(19_000);
    expect(parts.stopped).toEqual([]);
    await parts.clock.advance(2_000);
    expect(parts.stopped).toEqual([began + 20_000]);
  });

  test('is answered with a retry if the handler only computes', async () => {
    const parts = sourceRig({}, { handlerTimeoutMs: 20_000 });
    const { message } = await delivered(parts);
    const answer = await parts.through(
      parts.inbox.process(message, counting(() => new Promise(() => {})).handler),
    );
    expect(answer).toMatchObject({ kind: 'retry', reason: { code: 'OUT_OF_TIME' } });
    await parts.clock.advance(60_000);
    expect(parts.stopped).toEqual([]);
  });

  test('is that of the function, which is not stopped here', async () => {
    const parts = sourceRig();
    const { message } = await delivered(parts);
    const { handler } = counting((_, ctx) => ctx.once('charge', () => new Promise(() => {})));
    void parts.inbox.process(message, handler, { remainingMs: 15_000 });
    await parts.clock.advance(100_000);
    expect(parts.stopped).toEqual([]);
    const short = parts.inbox.process((await delivered(parts, 2)).message, counting().handler, {
      remainingMs: 100,
    });
    expect(await parts.through(short)).toMatchObject({ kind: 'retry', reason: { code: 'NO_TIME_LEFT' } });
  });

  test.each([9_999, Number.NaN])('is not %d', (handlerTimeoutMs) => {
    expect(() => sourceRig({}, { handlerTimeoutMs })).toThrow(code('BAD_ARGUMENT'));
  });

  test('keeps the lease of a long run', async () => {
    const parts = sourceRig({}, { handlerTimeoutMs: 600_000 });
    const { message } = await delivered(parts);
    const { opened, open } = gate();
    const slow = counting(() => opened);
    const first = parts.inbox.process(message, slow.handler);
    await parts.clock.advance(5 * consumerConfig.leaseMs);
    const second = await parts.inbox.process(message, slow.handler);
    expect(second).toMatchObject({ kind: 'retry', reason: { code: 'LEASED' } });
    open();
    expect(await parts.through(first)).toEqual({ kind: 'done' });
    expect(slow.events).toHaveLength(1);
  });
});

describe('a rejected message', () => {
  test('is kept before the answer; if that fails, it is a retry, and kept at the next delivery', async () => {
    const parts = sourceRig();
    const kept: unknown[] = [];
    let broken = true;
    const keep = async (reason: unknown) => {
      if (broken) throw new Error('The topic is away');
      kept.push(reason);
    };
    const answer = () =>
      parts.through(parts.inbox.process({ id: 'm', body: 'x' }, counting().handler, { keep }));
    expect(await answer()).toMatchObject({ kind: 'retry', afterMs: 60_000 });
    broken = false;
    expect(await answer()).toMatchObject({ kind: 'rejected' });
    expect(kept).toMatchObject([{ code: 'UNREADABLE_MESSAGE' }]);
    expect(
      parts.telemetry.lines().filter(({ message }) => message.includes('dead letter could not')),
    ).toHaveLength(1);
  });

  test.each([
    ['30 s', undefined, 30_000],
    ['the time of its function, less 3 s', 20_000, 17_000],
  ])('is kept within %s, or it is a retry', async (_what, remainingMs, longestMs) => {
    const parts = sourceRig();
    const never = () => new Promise(() => {});
    let answer: unknown;
    const processing = parts.inbox
      .process({ id: 'm', body: 'x' }, counting().handler, { keep: never, remainingMs })
      .then((given) => {
        answer = given;
      });
    await parts.clock.advance(longestMs - 1);
    expect(answer).toBeUndefined();
    await parts.clock.advance(1);
    await processing;
    expect(answer).toMatchObject({ kind: 'retry', afterMs: 60_000 });
  });
});

test('a transactional handler commits once, also if the message may be a repeat', async () => {
  const parts = sourceRig();
  const handler = transactional(ThingHappened, async () => ({ events: [parts.happened(9)] }));
  for (const [n, receives] of [
    [1, 1],
    [2, undefined],
  ] as const) {
    const { message } = await delivered(parts, n);
    expect(await parts.through(parts.inbox.process({ ...message, receives }, handler))).toEqual({
      kind: 'done',
    });
    expect(await parts.through(parts.inbox.process({ ...message, receives: 2 }, handler))).toEqual({
      kind: 'duplicate',
    });
  }
  expect(parts.rows()).toHaveLength(2);
});

test('an external event is handled once by its own id', async () => {
  const Order = externalEvent({ source: 'shop', type: 'order', id: 'orderId', schema: z.any() });
  const parts = sourceRig();
  const ids: unknown[] = [];
  const handler = leased(Order, async ({ externalId }) => ids.push(externalId));
  const body = JSON.stringify({ orderId: 'o-1' });
  expect(await parts.through(parts.inbox.process({ id: 'a', body }, handler))).toEqual({ kind: 'done' });
  expect(await parts.through(parts.inbox.process({ id: 'b', body }, handler))).toEqual({ kind: 'duplicate' });
  expect(ids).toEqual(['o-1']);
});

test('handlers are checked at once, and again at a message', async () => {
  const { inbox } = sourceRig();
  const { handler } = counting();
  expect(inbox.handles(handler)).toEqual([{ source: 'things', type: 'ThingHappened' }]);
  expect(() => inbox.handles(undefined as never)).toThrow(code('BAD_CONSUMER'));
  expect(() => inbox.handles([handler, handler])).toThrow(code('BAD_CONSUMER'));
  await expect(inbox.process({ id: 'm', body: '' }, [handler, handler])).rejects.toThrow(
    code('BAD_CONSUMER'),
  );
});

test('metrics are sent when no message runs', async () => {
  const parts = sourceRig();
  let flushed = 0;
  const telemetry = {
    ...parts.telemetry,
    flush: () => {
      flushed += 1;
    },
  };
  const inbox = createInboxProcessor({
    config: consumerConfig,
    table: parts.table,
    clock: parts.clock,
    telemetry,
  });
  const { handler } = counting();
  const messages = [(await delivered(parts, 1)).message, (await delivered(parts, 2)).message];
  await parts.through(Promise.all(messages.map((message) => inbox.process(message, handler))));
  expect(flushed).toBe(1);
});
