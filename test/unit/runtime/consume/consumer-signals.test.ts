import { describe, expect, test } from 'vitest';
import { createConsumer } from '../../../../lambdas/runtime/consume/consumer.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import { failedKey, inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Table } from '../../../../lambdas/runtime/store/table.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import {
  consumerConfig,
  runThrough,
  rig as runtimeRig,
  ThingHappened,
} from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, inboxRow, leaveEffect, pointer, send } from './consumer-rig.ts';

/** A consumer with one message in its queue. */
function rig(handler: Handler, wrap: (table: Table) => Table = (table) => table, maxAttempts = 5) {
  const parts = runtimeRig();
  const { clock, queue, memory } = parts;
  const event = send(parts);
  const { eventId } = event;
  const { handle } = consumer(parts, [handler], wrap(memory), { maxAttempts });
  async function deliver(): Promise<void> {
    const next = Math.min(...queue.messages().map(({ visibleAt }) => visibleAt));
    await clock.advance(Math.max(0, next - clock.now()));
    await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
  }
  return {
    ...parts,
    eventId,
    deliver,
    row: () => inboxRow(parts, event),
    hint: () => memory.item(failedKey(CONSUMER, eventId)),
    pointer: () => pointer(parts, event),
    shownAgainAt: () => queue.messages()[0]?.visibleAt ?? 0,
  };
}

/** Fails until its message has had so many attempts. */
const failsUntil = (attempt: number) =>
  leased(ThingHappened, async (_event, ctx) => {
    if (ctx.attempt < attempt) throw new Error('bank answered 503');
  });

const happened = (n: number) => ThingHappened.create({ aggregateId: 'thing-2', data: { n } });

describe('the events that a consumer writes are counted as committed', () => {
  test('a leased handler counts its events as committed once, after its commit', async () => {
    const { deliver, telemetry } = rig(
      leased(ThingHappened, async (_event, ctx) => {
        await ctx.commit({ events: [happened(1), happened(2)] });
        throw new Error('too late to matter');
      }),
    );
    await deliver();
    expect(telemetry.counted('EventsCommitted')).toBe(2);
  });

  test('a transactional handler counts its events as committed once, however often it is delivered', async () => {
    const { deliver, telemetry, queue } = rig(
      transactional(ThingHappened, async () => ({ events: [happened(1)] })),
    );
    const [message] = queue.messages();
    queue.send(message?.body ?? '');
    await deliver();
    expect(telemetry.counted('MessagesDuplicate')).toBe(1);
    expect(telemetry.counted('EventsCommitted')).toBe(1);
  });

  test.each([1, 2])('once, where the answer was lost %i times', async (losses) => {
    let lost = 0;
    const { deliver, telemetry } = rig(
      leased(ThingHappened, async (_event, ctx) => ctx.commit({ events: [happened(1)] })),
      (table) => ({
        ...table,
        transact: async (...args) => {
          await table.transact(...args);
          lost += 1;
          if (lost <= losses) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
        },
      }),
    );
    await deliver();
    expect(telemetry.counted('MessagesProcessed')).toBe(1);
    expect(telemetry.counted('EventsCommitted')).toBe(1);
  });

  test('not when the commit was refused', async () => {
    const { deliver, telemetry } = rig(
      leased(ThingHappened, async (_event, ctx) =>
        ctx.commit({
          writes: [{ Put: { Item: { PK: 'A', SK: 'A' }, ConditionExpression: 'attribute_exists(PK)' } }],
          events: [happened(1)],
        }),
      ),
    );
    await deliver();
    expect(telemetry.counted('MessagesFailed')).toBe(1);
    expect(telemetry.counted('EventsCommitted')).toBe(0);
  });
});

test('a claim whose attempt is the fourth or a later one is counted', async () => {
  const { deliver, telemetry } = rig(failsUntil(5));
  for (const expected of [0, 0, 0, 1, 2]) {
    await deliver();
    expect(telemetry.counted('AttemptsOverThree')).toBe(expected);
  }
  expect(telemetry.counted('MessagesProcessed')).toBe(1);
});

describe('a message that failed', () => {
  test('records on its row when SQS makes it visible again, until it is claimed', async () => {
    const rows: unknown[] = [];
    const { deliver, row, shownAgainAt, memory, eventId } = rig(
      leased(ThingHappened, async (_event, ctx) => {
        rows.push(memory.item(inboxKey(CONSUMER, eventId)));
        if (ctx.attempt < 3) throw new Error('bank answered 503');
      }),
    );
    await deliver();
    expect(row()).toMatchObject({ status: 'FAILED', retryAt: shownAgainAt() });
    await deliver();
    expect(row()).toMatchObject({ status: 'FAILED', retryAt: shownAgainAt() });
    await deliver();
    expect(row()).toMatchObject({ status: 'PROCESSED' });
    for (const claimed of [...rows, row()]) expect(claimed).not.toHaveProperty('retryAt');
  });

  test('has a hint until it is processed, which TTL may delete a day after its next attempt', async () => {
    const { deliver, hint, shownAgainAt } = rig(failsUntil(2));
    await deliver();
    expect(hint()).toEqual({
      PK: 'FAILED#worker',
      SK: expect.any(String),
      schema: 1,
      failedAt: expect.any(Number),
      expiresAt: Math.ceil(shownAgainAt() / 1_000) + 86_400,
    });
    await deliver();
    expect(hint()).toBeUndefined();
  });

  test('has a hint until it is rejected, by its last attempt or by an unreadable payload', async () => {
    const spent = rig(failsUntil(9), undefined, 2);
    await spent.deliver();
    expect(spent.hint()).toBeDefined();
    await spent.deliver();
    expect(spent.row()).toMatchObject({ status: 'REJECTED' });
    expect(spent.row()).not.toHaveProperty('retryAt');
    expect(spent.hint()).toBeUndefined();

    let known = true;
    const { definition } = failsUntil(9);
    const schema = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: (value: unknown) => (known ? { value } : { issues: [{ message: 'no longer known' }] }),
      },
    } as const;
    const unread = rig({ ...failsUntil(9), definition: { ...definition, schema } } as Handler);
    await unread.deliver();
    expect(unread.hint()).toBeDefined();
    known = false;
    await unread.deliver();
    expect(unread.row()).toMatchObject({ status: 'REJECTED', reason: 'INVALID_PAYLOAD' });
    expect(unread.hint()).toBeUndefined();
  });

  test('in an outage has a hint until it is processed, although no attempt is counted', async () => {
    let out = true;
    const { deliver, row, hint } = rig(
      leased(ThingHappened, async (_event, ctx) => ctx.once('charge', async () => 'ok')),
      (table) => ({
        ...table,
        write: async (write) => {
          if (out && JSON.stringify(write).includes('startedAt'))
            throw Object.assign(new Error('slow down'), { name: 'ThrottlingException' });
          return table.write(write);
        },
      }),
    );
    await deliver();
    expect(row()).toMatchObject({ status: 'FAILED', attempts: 0 });
    expect(hint()).toBeDefined();
    out = false;
    await deliver();
    expect(row()).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(hint()).toBeUndefined();
  });

  test('has a hint, which one that never failed neither writes nor removes', async () => {
    const hints: unknown[] = [];
    const { deliver, row } = rig(failsUntil(1), (table) => ({
      ...table,
      write: (write) => {
        if (isHint(write)) hints.push(write);
        return table.write(write);
      },
    }));
    await deliver();
    expect(row()).toMatchObject({ status: 'PROCESSED' });
    expect(hints).toEqual([]);
  });

  test('without a claim has no row, and so no hint', async () => {
    const { deliver, row, hint } = rig(
      transactional(ThingHappened, async () => {
        throw new Error('stock is locked');
      }),
    );
    await deliver();
    expect(row()).toBeUndefined();
    expect(hint()).toBeUndefined();
    await deliver();
    expect(row()).toMatchObject({ status: 'FAILED' });
    expect(hint()).toBeDefined();
  });

  const isHint = (write: Parameters<Table['write']>[0]) =>
    String(write.Put?.Item?.PK ?? write.Delete?.Key?.PK).startsWith('FAILED#');

  test.each([
    ['are refused', async () => Promise.reject(new Error('no'))],
    ['hang', () => new Promise<never>(() => {})],
  ])(
    'is processed all the same while writes of hints %s, each of which is logged or let go of',
    async (how, answer) => {
      const { deliver, row, telemetry, clock, hint } = rig(failsUntil(2), (table) => ({
        ...table,
        write: (write) => (isHint(write) ? answer() : table.write(write)),
      }));
      await deliver();
      expect(row()).toMatchObject({ status: 'FAILED', attempts: 1 });
      const startedAt = clock.now();
      await deliver();
      expect(row()).toMatchObject({ status: 'PROCESSED', attempts: 2 });
      expect(clock.now() - startedAt).toBeLessThan(20_000); // of the function's 30 s
      expect(hint()).toBeUndefined();
      expect(telemetry.lines().filter(({ level }) => level === 'warn')).toHaveLength(how === 'hang' ? 0 : 2);
      expect(telemetry.counted('MessagesProcessed')).toBe(1);
    },
  );

  test('does not count an attempt that had to wait for an effect, and records when it is visible again', async () => {
    const { deliver, row, shownAgainAt, hint, memory, clock, eventId, telemetry } = rig(
      leased(ThingHappened, async (_event, ctx) => ctx.once('charge', async () => 'ok')),
    );
    await leaveEffect({ memory }, { eventId }, { endsBy: clock.now() + 20_000 });
    await deliver();
    expect(row()).toMatchObject({ status: 'FAILED', attempts: 0, retryAt: shownAgainAt() });
    expect(telemetry.counted('MessagesLeased')).toBe(1);
    expect(hint()).toBeUndefined();
  });
});

describe('the pointer of a rejected message records when SQS received the message', () => {
  const rejects = leased(ThingHappened, async () => {
    throw new PoisonMessage('of no use');
  });

  test('in epoch milliseconds', async () => {
    const { deliver, pointer, clock, queue } = rig(rejects);
    const [message] = queue.messages();
    await clock.advance(60_000);
    await deliver();
    expect(pointer()).toMatchObject({ sentAt: message?.sentAt });
    expect(message?.sentAt).toBeLessThan(clock.now());
  });

  test.each([undefined, '', 'yesterday', '-1'])('unless SQS says "%s"', async (SentTimestamp) => {
    const { queue, table, clock, telemetry, pointer } = rig(rejects);
    const [record] = queue.receive();
    if (record === undefined) throw new Error('There is no message');
    const attributes = { ...record.attributes, SentTimestamp } as typeof record.attributes;
    const consume = createConsumer({
      config: consumerConfig,
      table,
      queue,
      handlers: [rejects],
      clock,
      telemetry,
    });
    await runThrough(clock, consume({ Records: [{ ...record, attributes }] }, lambdaContext({ clock })));
    expect(pointer()).toMatchObject({ reason: 'POISON_MESSAGE' });
    expect(pointer()).not.toHaveProperty('sentAt');
  });
});
