import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { CLOCK_SKEW_MS } from '../../../../lambdas/runtime/base/clock.ts';
import { nothingHappened } from '../../../../lambdas/runtime/base/nothing-happened.ts';
import { latest, strict } from '../../../../lambdas/runtime/base/order.ts';
import { DAY_MS, HOUR_MS } from '../../../../lambdas/runtime/base/units.ts';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { externalEvent } from '../../../../lambdas/runtime/events/external-event.ts';
import type { CheckReport } from '../../../../lambdas/runtime/sources/sqs/check-messages.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { failedKey } from '../../../../lambdas/runtime/store/keys.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { type consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow, type Parts, send } from './consumer-rig.ts';

const EXPIRES_IN_MS = HOUR_MS;

/** The last time at which an attempt starts, after the commit. */
const LAST_MS = EXPIRES_IN_MS + CLOCK_SKEW_MS;

const hintOf = ({ memory }: Parts, { eventId }: { readonly eventId: string }) =>
  memory.item(failedKey(CONSUMER, eventId));

const inTime = { expiresInMs: EXPIRES_IN_MS };

/** A consumer whose handler takes a message for an hour. */
function staleAfterAnHour(handlerOf: (run: () => Promise<object>) => Handler) {
  const parts: Parts = rig();
  const run = vi.fn(async () => ({}));
  return { parts, run, ...parts, ...consumer(parts, [handlerOf(run)], parts.table) };
}

const KINDS: [string, (run: () => Promise<object>) => Handler][] = [
  ['leased', (run) => leased(ThingHappened, run, inTime)],
  ['transactional', (run) => transactional(ThingHappened, run, inTime)],
  ['batch', (run) => transactionalBatch(ThingHappened, run, inTime)],
];

describe.each(KINDS)(
  'a message of a %s handler that has waited for longer than it takes',
  (_kind, handlerOf) => {
    test('is discarded as stale, without an attempt, counted and logged, and absorbed from then on', async () => {
      const one = staleAfterAnHour(handlerOf);
      const events = [send(one.parts), send(one.parts)];
      await one.clock.advance(LAST_MS + 1);
      await one.deliver();
      expect(one.run).not.toHaveBeenCalled();
      for (const event of events) {
        expect(inboxRow(one.parts, event)).toMatchObject({
          status: 'DISCARDED',
          reason: 'STALE',
          attempts: 0,
          discardedAt: expect.any(Number),
          expiresAt: expect.any(Number),
        });
      }
      expect(one.queue.messages()).toEqual([]);
      expect(one.telemetry.counted('MessagesStale')).toBe(2);
      expect(one.telemetry.counted('MessagesProcessed')).toBe(0);
      const lines = one.telemetry.lines().filter(({ level }) => level === 'warn');
      expect(lines.map(({ message }) => message)).toEqual(
        Array.from({ length: 2 }, () => expect.stringContaining('stale')),
      );
      send(one.parts, events[0]);
      await one.deliver();
      expect(one.run).not.toHaveBeenCalled();
      expect(one.telemetry.counted('MessagesDuplicate')).toBe(1);
    });

    test('runs until then, clocks that differ included', async () => {
      const one = staleAfterAnHour(handlerOf);
      const event = send(one.parts);
      await one.clock.advance(LAST_MS);
      await one.deliver();
      expect(one.run).toHaveBeenCalledOnce();
      expect(inboxRow(one.parts, event)).toMatchObject({ status: 'PROCESSED' });
      expect(one.telemetry.counted('MessagesStale')).toBe(0);
    });
  },
);

test('a message waits from the time in the id of its event: not from its occurredAt, nor from its arrival in the queue', async () => {
  const one = staleAfterAnHour((run) => leased(ThingHappened, run, inTime));
  const now = one.clock.now();
  const old = send(one.parts, { eventId: mintEventId(now - LAST_MS - 1, 2) });
  const imported = send(one.parts, { occurredAt: now - DAY_MS });
  await one.deliver();
  expect(inboxRow(one.parts, old)).toMatchObject({ status: 'DISCARDED' });
  expect(inboxRow(one.parts, imported)).toMatchObject({ status: 'PROCESSED' });
});

test('a message that fails is retried until it is stale, and then listed as failed no longer', async () => {
  const one = staleAfterAnHour((run) => leased(ThingHappened, run, inTime));
  one.run.mockRejectedValue(new Error('down'));
  const event = send(one.parts);
  await one.deliver();
  expect(inboxRow(one.parts, event)).toMatchObject({ status: 'FAILED', attempts: 1 });
  expect(hintOf(one.parts, event)).toBeDefined();
  await one.clock.advance(LAST_MS);
  await one.deliver();
  expect(one.run).toHaveBeenCalledOnce();
  expect(inboxRow(one.parts, event)).toMatchObject({ status: 'DISCARDED', reason: 'STALE' });
  expect(hintOf(one.parts, event)).toBeUndefined();
});

test('a message with an effect that has happened, or may have, is not stale; one whose effect has not happened is', async () => {
  const parts: Parts = rig();
  const failing: Record<string, () => Error> = {
    'may-have': () => new Error('no answer'),
    'has-not': () => nothingHappened(new Error('refused')),
  };
  const runs: string[] = [];
  const handler = leased(
    ThingHappened,
    async ({ aggregateId }, ctx) => {
      runs.push(aggregateId);
      if (aggregateId === 'has') await ctx.once('charge', async () => 'charged');
      if (ctx.attempt === 1)
        await ctx.once('ship', () => Promise.reject(failing[aggregateId]?.() ?? new Error('down')));
    },
    inTime,
  );
  const { deliver } = consumer(parts, [handler], parts.table);
  const has = send(parts, { aggregateId: 'has' });
  const mayHave = send(parts, { aggregateId: 'may-have' });
  const hasNot = send(parts, { aggregateId: 'has-not' });
  await deliver();
  await parts.clock.advance(LAST_MS);
  await deliver();
  expect(runs.toSorted()).toEqual(['has', 'has', 'has-not', 'may-have', 'may-have']);
  expect(inboxRow(parts, has)).toMatchObject({ status: 'PROCESSED' });
  expect(inboxRow(parts, mayHave)).toMatchObject({ status: 'PROCESSED' });
  expect(inboxRow(parts, hasNot)).toMatchObject({ status: 'DISCARDED', reason: 'STALE' });
});

test('a message is stale before its payload is read, and after its attempts are spent', async () => {
  const one = staleAfterAnHour((run) => leased(ThingHappened, run, inTime));
  const unreadable = send(one.parts, { data: { n: 'one' } });
  await one.clock.advance(LAST_MS + 1);
  await one.deliver();
  expect(inboxRow(one.parts, unreadable)).toMatchObject({ status: 'DISCARDED', reason: 'STALE' });
});

test('a rejected message that is redriven is stale, too', async () => {
  const one = staleAfterAnHour((run) => leased(ThingHappened, run, inTime));
  const event = send(one.parts, { data: { n: 'one' } });
  await one.deliver();
  expect(inboxRow(one.parts, event)).toMatchObject({ status: 'REJECTED', reason: 'INVALID_PAYLOAD' });
  await one.clock.advance(LAST_MS + 1);
  one.queue.send(body(event)); // another message id, as a redrive has it
  await one.deliver();
  const row = inboxRow(one.parts, event);
  expect(row).toMatchObject({ status: 'DISCARDED', reason: 'STALE' });
  expect(row).not.toHaveProperty('rejectedAt');
  expect(one.telemetry.counted('MessagesStale')).toBe(1);
});

test('an external event waits from its arrival in the queue', async () => {
  const parts: Parts = rig();
  const Uploaded = externalEvent({
    source: 'uploads',
    type: 'Uploaded',
    id: ['key'],
    schema: z.object({ key: z.string() }),
  });
  const ran: string[] = [];
  const handler = leased(Uploaded, async ({ data }) => void ran.push(data.key), inTime);
  const { deliver } = consumer(parts, [handler], parts.table);
  const upload = (key: string) =>
    parts.queue.send({ source: 'uploads', 'detail-type': 'Uploaded', detail: { key } });
  upload('old');
  await parts.clock.advance(LAST_MS + 1);
  upload('new');
  await deliver();
  expect(ran).toEqual(['new']);
  expect(parts.telemetry.counted('MessagesStale')).toBe(1);
});

test('a check for an operator says when a message is stale', async () => {
  const parts: Parts = rig();
  const { handle } = consumer(parts, [leased(ThingHappened, async () => {}, inTime)], parts.table);
  const sent = envelope(parts);
  const report = (await handle(
    {
      mailroomCheck: { bodies: [sent, { ...sent, data: {} }].map((one) => JSON.stringify(body(one))) },
    } as never,
    lambdaContext(parts),
  )) as CheckReport;
  const staleFrom = parts.clock.now() + LAST_MS;
  expect(report.checks).toEqual([
    { ok: true, eventId: sent.eventId, type: 'ThingHappened', staleFrom },
    { ok: false, code: 'INVALID_PAYLOAD', message: expect.any(String), staleFrom },
  ]);
});

describe('expiresInMs', () => {
  const refusal = (expiresInMs: unknown, change: Partial<typeof consumerConfig> = {}) => {
    const handler = leased(ThingHappened, async () => {}, { expiresInMs: expiresInMs as number });
    const parts: Parts = rig();
    try {
      consumer(parts, [handler], parts.table, change);
    } catch (error) {
      return error;
    }
    return undefined;
  };

  test.each([
    [0, '0'],
    [-1, '-1'],
    [999, '999'],
    [1_000.5, '1000.5'],
    [Number.NaN, 'NaN'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
    ['1h', 'of type string'],
    [null, 'of type object'],
    [35 * DAY_MS, String(35 * DAY_MS)],
  ])('that is %s is refused by its name', (given, shown) => {
    expect(refusal(given)).toMatchObject({
      code: 'BAD_CONSUMER',
      message: expect.stringContaining(
        `The handler of ThingHappened: expiresInMs is ${shown}; it must be a whole number`,
      ),
    });
  });

  test('is allowed from a second to less than the inbox retention, and with latest', () => {
    expect(refusal(1_000)).toBeUndefined();
    expect(refusal(35 * DAY_MS - 1)).toBeUndefined();
    expect(refusal(DAY_MS, { inboxRetentionDays: 1 })).toMatchObject({ code: 'BAD_CONSUMER' });
    expect(refusal(HOUR_MS, { order: latest() })).toBeUndefined();
  });

  test('is refused beside a rejected function, which no stale message would get', () => {
    const handler = leased(ThingHappened, async () => {}, { ...inTime, rejected: async () => ({}) });
    const parts: Parts = rig();
    expect(() => consumer(parts, [handler])).toThrow(
      expect.objectContaining({
        code: 'BAD_CONSUMER',
        message: expect.stringContaining('expiresInMs cannot be combined with `rejected`'),
      }),
    );
  });

  test('is refused with a strict order, in which later events would wait for a stale one', () => {
    expect(refusal(HOUR_MS, { order: strict(), maxReceives: 5 })).toMatchObject({
      code: 'BAD_CONSUMER',
      message: expect.stringContaining('expiresInMs cannot be combined'),
    });
  });
});
