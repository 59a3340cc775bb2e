import type { Context, SQSEvent } from 'aws-lambda';
import { describe, expect, test, vi } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { PoisonMessage } from '../../../../lambdas/runtime/errors.ts';
import { defineEvent } from '../../../../lambdas/runtime/event.ts';
import { mintEventId } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, CONSUMER, consumer, envelope, inboxRow, pointer, send } from './consumer-rig.ts';

describe('a leased handler', () => {
  test('a message whose handler throws PoisonMessage is rejected at once, and once fixed and redriven it is processed without a pointer', async () => {
    const parts = rig();
    let fixed = false;
    const handle = vi.fn(async (_event: unknown, ctx: { attempt: number }) => {
      if (!fixed) throw new PoisonMessage('currency is not supported');
      expect(ctx.attempt).toBe(1);
    });
    const { drain } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts);
    await drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'REJECTED', reason: 'POISON_MESSAGE' });
    expect(parts.queue.deadLetters()).toHaveLength(1);
    fixed = true;
    parts.queue.redrive();
    await drain();
    expect(handle).toHaveBeenCalledTimes(2);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
    expect(pointer(parts, event)).toBeUndefined();
  });
});

describe('bad input is rejected, goes to the DLQ, and its neighbours are processed', () => {
  const old = mintEventId(Date.UTC(2025, 0, 1), 2);

  test.each<[string, unknown, string]>([
    ['a body that is no JSON', 'no json', 'UNREADABLE_MESSAGE'],
    ['a body without detail', { hello: 1 }, 'UNREADABLE_MESSAGE'],
    ['a detail that is null', { detail: null }, 'UNREADABLE_MESSAGE'],
    ['an envelope without an id', { eventId: undefined }, 'UNREADABLE_MESSAGE'],
    ['an id that is none', { eventId: '7' }, 'UNREADABLE_MESSAGE'],
    ['an unknown type', { type: 'Unheard' }, 'UNKNOWN_EVENT_TYPE'],
    ['a version of the future', { version: 3 }, 'UNKNOWN_EVENT_VERSION'],
    ['a payload that fails its schema', { data: { n: 'x' } }, 'INVALID_PAYLOAD'],
    ['a payload that the upcast cannot read', { version: 1, data: null }, 'INVALID_PAYLOAD'],
    ['an event older than the inbox retention', { eventId: old }, 'EVENT_TOO_OLD'],
  ])('%s', async (what, change, reason) => {
    for (const kind of [leased, transactional]) {
      const parts = rig();
      const handle = vi.fn(async () => ({}));
      parts.queue.send(
        what.includes('body') || what.includes('detail')
          ? change
          : body({ ...envelope(parts), ...(change as object) }),
      );
      const good = send(parts);
      await consumer(parts, [kind(ThingHappened, handle)]).drain();
      expect(handle).toHaveBeenCalledTimes(1);
      expect(inboxRow(parts, good)).toMatchObject({ status: 'PROCESSED' });
      const rejected = parts.memory.items().filter((item) => item.status === 'REJECTED');
      expect(rejected).toMatchObject([
        { reason, schema: 1, fingerprint: expect.stringContaining(`worker ${reason}`) },
      ]);
      expect(parts.memory.items().filter((item) => String(item.PK).startsWith('REJECTED#'))).toHaveLength(1);
      expect(parts.queue.deadLetters()).toHaveLength(1);
    }
  });

  test.each([
    ['came from another service', { source: 'strangers' }, 'WRONG_SOURCE', '"strangers"'],
    ['names no source', { source: undefined }, 'WRONG_SOURCE', '""'],
    [
      'claims another type than EventBridge delivered',
      { 'detail-type': 'ThingLost' },
      'WRONG_TYPE',
      '"ThingLost"',
    ],
  ])('a message that %s is never run', async (_what, change, reason, named) => {
    for (const kind of [leased, transactional]) {
      const parts = rig();
      const handle = vi.fn(async () => ({}));
      const forged = envelope(parts);
      parts.queue.send({ ...body(forged), ...change });
      await consumer(parts, [kind(ThingHappened, handle)]).drain();
      expect(handle).not.toHaveBeenCalled();
      expect(inboxRow(parts, forged)).toMatchObject({ status: 'REJECTED', reason });
      expect(inboxRow(parts, forged)?.lastError).toContain(named);
    }
  });

  test('two services may each own a type of the same name: the source chooses the handler, and the handler sees it', async () => {
    const parts = rig();
    const ours = vi.fn();
    const theirs = vi.fn();
    const OfStrangers = defineEvent({ ...ThingHappened, source: 'strangers' });
    parts.queue.send({ ...body(envelope(parts)), source: 'strangers' });
    await consumer(parts, [leased(ThingHappened, ours), leased(OfStrangers, theirs)]).drain();
    expect(ours).not.toHaveBeenCalled();
    expect(theirs.mock.calls).toMatchObject([[{ source: 'strangers', type: 'ThingHappened' }, {}]]);
  });

  test('an old version is upcast', async () => {
    const parts = rig();
    const handle = vi.fn();
    send(parts, { version: 1, data: { text: '42' } });
    await consumer(parts, [leased(ThingHappened, handle)]).deliver();
    expect(handle).toHaveBeenCalledWith(
      expect.objectContaining({ version: 2, data: { n: 42 } }),
      expect.anything(),
    );
  });

  test('a message too old to run does not run when it is redriven, until an operator allows it', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({}));
    const { drain } = consumer(parts, [leased(ThingHappened, handle)]);
    const event = send(parts, { eventId: old });
    await drain();
    parts.queue.redrive();
    await drain();
    expect(handle).not.toHaveBeenCalled();
    await parts.memory.write({
      Update: {
        Key: { ...inboxKey(CONSUMER, old) },
        UpdateExpression: 'SET runAnyway = :yes',
        ExpressionAttributeValues: { ':yes': true },
      },
    });
    parts.queue.redrive();
    await drain();
    expect(handle).toHaveBeenCalledTimes(1);
    expect(inboxRow(parts, event)).toMatchObject({ status: 'PROCESSED' });
  });

  test('a message too old to run does not run after another rejection either', async () => {
    for (const kind of [leased, transactional]) {
      const parts = rig();
      const handle = vi.fn(async () => ({}));
      send(parts, { eventId: old, type: 'Unheard' });
      await consumer(parts, []).drain(); // deployed without its handler
      expect(parts.memory.item(inboxKey(CONSUMER, old))).toMatchObject({
        status: 'REJECTED',
        reason: 'EVENT_TOO_OLD',
      });
      parts.queue.redrive();
      await consumer(parts, [kind({ ...ThingHappened, type: 'Unheard' }, handle)]).drain();
      expect(handle).not.toHaveBeenCalled();
    }
  });

  test('messages too old to run that are redelivered with others are still rejected: no outage, no delay', async () => {
    const parts = rig();
    const handle = vi.fn(async () => ({}));
    const { deliver } = consumer(parts, [leased(ThingHappened, handle)]);
    const sent = [2, 3].map((shard) => send(parts, { eventId: mintEventId(Date.UTC(2025, 0, 1), shard) }));
    for (let receive = 1; receive <= 3; receive += 1) {
      await deliver();
      for (const event of sent) expect(inboxRow(parts, event)).toMatchObject({ reason: 'EVENT_TOO_OLD' });
      for (const { visibleAt } of parts.queue.messages())
        expect(visibleAt).toBeLessThanOrEqual(parts.clock.now());
    }
    expect(parts.telemetry.counted('TableFailures')).toBe(0);
    expect(handle).not.toHaveBeenCalled();
  });

  test.each([[undefined], [{}], [{ Records: 'x' }], [{ Records: [null, {}, { messageId: 7 }] }]])(
    'an event like %j fails no other message',
    async (event) => {
      const parts = rig();
      const { handle } = consumer(parts, [leased(ThingHappened, vi.fn())]);
      await expect(
        handle(event as unknown as SQSEvent, lambdaContext({ clock: parts.clock }) as Context),
      ).resolves.toEqual({
        batchItemFailures: [],
      });
    },
  );
});
