import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage } from '../../../../lambdas/runtime/base/errors.ts';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { allowTooOld } from '../../../../lambdas/runtime/operations/message-operations.ts';
import {
  discardDead,
  markResent,
  requeueDead,
} from '../../../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import { outboxKeyOf } from '../../../../lambdas/runtime/store/event-id.ts';
import { inboxHistoryKey, inboxKey } from '../../../../lambdas/runtime/store/keys.ts';
import { SCHEMA } from '../../../../lambdas/runtime/store/row-schema.ts';
import type { Item } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import {
  body,
  CONSUMER,
  consumer,
  domainRow,
  envelope,
  inboxRow,
  type Parts,
} from '../consume/consumer-rig.ts';

const NEWER = SCHEMA + 1;
/** The id that the queue in memory gives to its first message. */
const FIRST_MESSAGE = '00000000-0000-4000-8001-000000000001';
const NOTE = { by: 'ada', reason: 'the price was wrong' };

/** A message whose row has been written by a newer version. */
async function written(parts: Parts, row: Item) {
  const event = envelope(parts);
  const stored = { ...inboxKey(CONSUMER, event.eventId), fence: 'newer', attempts: 1, schema: NEWER, ...row };
  await parts.memory.write({ Put: { Item: stored } });
  parts.queue.send(body(event));
  return { event, stored };
}

const STATES: readonly [string, Item][] = [
  ['FAILED', { status: 'FAILED' }],
  ['PROCESSING under a lease that has passed', { status: 'PROCESSING', leaseUntil: 1, endsBy: 1 }],
  ['PROCESSING after two claims without a result', { status: 'PROCESSING', leaseUntil: 1, unfinished: 2 }],
  ['REJECTED under another message id', { status: 'REJECTED', rejectedIds: new Set(['older']) }],
  ['REJECTED under this message id', { status: 'REJECTED', rejectedIds: new Set([FIRST_MESSAGE]) }],
  ['PROCESSED', { status: 'PROCESSED', expiresAt: 4_000_000_000 }],
];

describe.each(STATES)('a row of a newer schema that is %s', (_, state) => {
  test('is not changed, and its handler does not run', async () => {
    const parts = rig();
    const { event, stored } = await written(parts, state);
    const handle = vi.fn(async () => ({}));

    await consumer(parts, [leased(ThingHappened, handle)]).deliver();

    expect(handle).not.toHaveBeenCalled();
    expect(inboxRow(parts, event)).toEqual(stored);
  });

  test('refuses the writes of a transactional handler', async () => {
    const parts = rig();
    const { event, stored } = await written(parts, state);

    await consumer(parts, [transactional(ThingHappened, async () => ({ writes: [domainRow] }))]).drain(2);

    expect(parts.memory.item(domainRow.Put.Item)).toBeUndefined();
    expect(inboxRow(parts, event)).toEqual(stored);
  });

  test('keeps its message waiting like an outage, for the version that can read the row', async () => {
    const parts = rig();
    await written(parts, state);
    expect(parts.queue.messages()).toMatchObject([{ messageId: FIRST_MESSAGE }]);

    await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();

    const [message] = parts.queue.messages();
    expect((message?.visibleAt ?? 0) - parts.clock.now()).toBeGreaterThanOrEqual(48_000);
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(0);
  });

  test('is not rejected as poison', async () => {
    const parts = rig();
    const { event, stored } = await written(parts, state);
    parts.queue.send(body({ ...event, type: 'UnknownToThisVersion' }));

    await consumer(parts, [
      transactional(ThingHappened, () => Promise.reject(new PoisonMessage('bad'))),
    ]).deliver();

    expect(inboxRow(parts, event)).toEqual(stored);
  });
});

test('an operator does not allow a message whose row has a newer schema', async () => {
  const parts = rig();
  const { event, stored } = await written(parts, { status: 'REJECTED', reason: 'EVENT_TOO_OLD' });

  await expect(
    allowTooOld(parts, { ...NOTE, consumer: CONSUMER, eventId: event.eventId }),
  ).rejects.toMatchObject({ code: 'NOT_TOO_OLD' });
  expect(inboxRow(parts, event)).toEqual(stored);
});

test('no message runs while the history of the inbox has a newer schema', async () => {
  const parts = rig();
  const retentions = [{ days: consumerConfig.inboxRetentionDays, since: 1 }];
  const history = { ...inboxHistoryKey(CONSUMER), schema: NEWER, retentions, changedAt: 1 };
  await parts.memory.write({ Put: { Item: history } });
  parts.queue.send(body(envelope(parts)));
  const handle = vi.fn(async () => {});

  await consumer(parts, [leased(ThingHappened, handle)]).deliver();

  expect(handle).not.toHaveBeenCalled();
  expect(parts.memory.item(inboxHistoryKey(CONSUMER))).toEqual(history);
});

test.each([
  ['requeues', requeueDead],
  ['discards', discardDead],
])('no operator %s a DEAD event whose row has a newer schema', async (_, decide) => {
  const parts = rig();
  const { eventId } = envelope(parts);
  const row = { ...outboxKeyOf(eventId), schema: NEWER, status: 'DEAD' };
  await parts.memory.write({ Put: { Item: row } });

  expect(await decide(parts, eventId, NOTE)).toBe(false);
  expect(parts.memory.item(outboxKeyOf(eventId))).toEqual(row);
});

test('an event whose row has a newer schema is not marked as sent again', async () => {
  const parts = rig();
  const { eventId } = envelope(parts);
  const row = { ...outboxKeyOf(eventId), schema: NEWER, status: 'PUBLISHED' };
  await parts.memory.write({ Put: { Item: row } });

  expect(await markResent(parts, eventId)).toBeUndefined();
  expect(parts.memory.item(outboxKeyOf(eventId))).toEqual(row);
});
