import { describe, expect, test, vi } from 'vitest';
import { batchTurn } from '../../../../lambdas/runtime/consume/batch-turn.ts';
import type { Delivery } from '../../../../lambdas/runtime/consume/delivery.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { foreignEventId } from '../../../../lambdas/runtime/store/foreign-id.ts';
import { createInbox } from '../../../../lambdas/runtime/store/inbox.ts';
import { inboxKey } from '../../../../lambdas/runtime/store/rows.ts';
import type { Key, Table } from '../../../../lambdas/runtime/store/table.ts';
import { NO_TRACER } from '../../../../lambdas/runtime/tracer.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { CONSUMER, consumer, envelope, inboxRow, type Parts, send } from './consumer-rig.ts';

/** A message of a batch: its name, how often it was received, and whether it must run alone. */
interface Received {
  readonly name: string;
  readonly receives: number;
  readonly suspect?: boolean | Error;
  /** @default that of a Mailroom event */
  readonly eventId?: string;
}

/** Decides about a batch. @returns the names of those that run, and of those that come again, with their delay and its reason */
async function turn(batch: readonly Received[]) {
  const parts = rig();
  const events = new Map(batch.map((received) => [received.eventId ?? envelope(parts).eventId, received]));
  const get = vi.fn(async ({ PK }: Key) => {
    const [, { suspect = false } = {}] = [...events].find(([eventId]) => PK.endsWith(eventId)) ?? [];
    if (typeof suspect !== 'boolean') throw suspect;
    return { status: 'FAILED', attempts: 1, unfinished: suspect ? 2 : 0 };
  });
  const random = (length: number) => new Uint8Array(length).fill(128);
  const table = { ...parts.memory, get };
  const inbox = createInbox({ ...parts, ...consumerConfig, table, random });
  const ctx = { ...parts, config: consumerConfig, table, random, inbox, tracer: NO_TRACER };
  const deliveries = [...events].map(
    ([eventId, { receives, name }]): Delivery => ({
      message: { eventId, messageId: name },
      receiptHandle: name,
      receives,
      beganAt: 0,
      endsBy: 30_000,
      content: { problem: 'unused' },
    }),
  );
  const { now, later } = await batchTurn(ctx, deliveries);
  return {
    asked: get.mock.calls.length,
    now: now.map(({ message }) => message.messageId).sort(),
    later: later
      .map(({ delivery, outcome }) => ({
        name: delivery.message.messageId,
        waits: outcome.afterMs > 0,
        code: (outcome.error as { code: string }).code,
      }))
      .sort((a, b) => a.name.localeCompare(b.name)),
  };
}

describe('in a batch', () => {
  test('all messages of a batch run without a further call if it has one message, or none was received before', async () => {
    await expect(turn([{ name: 'a', receives: 4, suspect: true }])).resolves.toEqual({
      asked: 0,
      now: ['a'],
      later: [],
    });
    await expect(
      turn([
        { name: 'a', receives: 1 },
        { name: 'b', receives: 1 },
      ]),
    ).resolves.toEqual({ asked: 0, now: ['a', 'b'], later: [] });
  });

  test('a message that must run alone does so at its odd receives, and the others are redelivered at once', async () => {
    await expect(
      turn([
        { name: 'other', receives: 1 },
        { name: 'suspect', receives: 3, suspect: true },
      ]),
    ).resolves.toMatchObject({
      now: ['suspect'],
      later: [{ name: 'other', waits: false, code: 'PUT_BACK' }],
    });
  });

  test('the others run at its even receives, and it waits', async () => {
    await expect(
      turn([
        { name: 'other', receives: 3 },
        { name: 'suspect', receives: 4, suspect: true },
      ]),
    ).resolves.toMatchObject({
      now: ['other'],
      later: [{ name: 'suspect', waits: true, code: 'PUT_BACK' }],
    });
  });

  test('suspects with the same number of receives give way or not by their message ids', async () => {
    const turns = await Promise.all(
      [...'0123456789abcdef'].map((end) =>
        turn([
          { name: 'other', receives: 1 },
          { name: `2f1c9d3e-7a4b-4c58-9e21-8d5b6f3a709${end}`, receives: 3, suspect: true },
        ]),
      ),
    );
    expect(turns.filter(({ now }) => now.includes('other'))).toHaveLength(8);
  });

  test('a suspect has its turn beside a message that was received more often, such as a rejected one', async () => {
    await expect(
      turn([
        { name: 'rejected', receives: 60 },
        { name: 'suspect', receives: 3, suspect: true },
      ]),
    ).resolves.toMatchObject({ now: ['suspect'] });
  });

  test('one message of a batch in which all must run alone runs: the one received most often, also at an even receive', async () => {
    await expect(
      turn([
        { name: 'a', receives: 3, suspect: true },
        { name: 'b', receives: 6, suspect: true },
        { name: 'c', receives: 5, suspect: true },
      ]),
    ).resolves.toMatchObject({
      now: ['b'],
      later: [
        { name: 'a', waits: true },
        { name: 'c', waits: true },
      ],
    });
  });

  test('a foreign message that must run alone does so', async () => {
    const eventId = foreignEventId({ source: 'stripe', type: 'charge', foreign: { id: ['id'] } }, ['evt_1']);
    await expect(
      turn([
        { name: 'other', receives: 1 },
        { name: 'foreign', receives: 3, suspect: true, eventId },
      ]),
    ).resolves.toMatchObject({ now: ['foreign'], later: [{ name: 'other', code: 'PUT_BACK' }] });
  });

  test('an unreadable message, which never runs, costs no call', async () => {
    await expect(
      turn([
        { name: 'other', receives: 1 },
        { name: 'unreadable', receives: 3, suspect: true, eventId: 'unreadable-7' },
      ]),
    ).resolves.toEqual({ asked: 0, now: ['other', 'unreadable'], later: [] });
  });

  test('a message that was received once before may have to run alone', async () => {
    await expect(
      turn([
        { name: 'other', receives: 1 },
        { name: 'suspect', receives: 2, suspect: true },
      ]),
    ).resolves.toMatchObject({ asked: 1, now: ['other'], later: [{ name: 'suspect' }] });
  });

  test.each([
    ['runs', 3, ['suspect'], ['other', 'unread']],
    ['waits', 4, ['other'], ['suspect', 'unread']],
  ])(
    'a message that cannot be read is redelivered, too, while a suspect %s',
    async (_does, receives, now, later) => {
      const { now: runs, later: waits } = await turn([
        { name: 'other', receives: 1 },
        { name: 'suspect', receives, suspect: true },
        { name: 'unread', receives: 2, suspect: Object.assign(new Error('no'), { code: 'UNREAD' }) },
      ]);
      expect(runs).toEqual(now);
      expect(waits.map(({ name }) => name)).toEqual(later);
    },
  );

  test('a message waits as in an outage if it cannot be read whether it must run alone', async () => {
    await expect(
      turn([
        { name: 'other', receives: 1 },
        { name: 'unread', receives: 2, suspect: Object.assign(new Error('no'), { code: 'UNREAD' }) },
      ]),
    ).resolves.toMatchObject({ now: ['other'], later: [{ name: 'unread', waits: true, code: 'UNREAD' }] });
  });
});

/** An event whose message was received before, and whose claims ended twice without a result: it must run alone. */
async function suspectIn(parts: Parts, unfinished: number) {
  const suspect = send(parts, { aggregateId: 'suspect' });
  parts.queue.receive();
  await parts.clock.advance(60_000);
  const row = { schema: 1, status: 'FAILED', fence: 'theirs', attempts: 1, unfinished };
  await parts.memory.write({ Put: { Item: { ...inboxKey(CONSUMER, suspect.eventId), ...row } } });
  return suspect;
}

test('whatever makes room is shown again before a message that must run alone starts, however long SQS takes', async () => {
  const parts = rig();
  await suspectIn(parts, 2);
  send(parts, { aggregateId: 'other' });
  const shown: number[] = [];
  const handler = leased(ThingHappened, async () => {
    shown.push(parts.queue.messages().filter(({ visibleAt }) => visibleAt <= parts.clock.now()).length);
  });
  const change = parts.queue.changeVisibility.bind(parts.queue);
  vi.spyOn(parts.queue, 'changeVisibility').mockImplementation(async (...args) => {
    await parts.clock.sleep(500);
    await change(...args);
  });
  const { failed } = await consumer(parts, [handler]).deliver();
  expect(shown).toEqual([1]);
  expect(failed).toHaveLength(1);
});

test('a message that must run alone only since its row was read is not claimed in company', async () => {
  const parts = rig();
  const suspect = await suspectIn(parts, 1);
  send(parts, { aggregateId: 'other' });
  const get: Table['get'] = async (...args) => {
    const row = await parts.memory.get(...args);
    // Meanwhile a second worker claims it, and dies.
    await parts.memory.write({
      Update: {
        Key: { ...inboxKey(CONSUMER, suspect.eventId) },
        UpdateExpression: 'SET unfinished = :two',
        ExpressionAttributeValues: { ':two': 2 },
      },
    });
    return row;
  };
  const ran: string[] = [];
  const handler = leased(ThingHappened, async ({ aggregateId }) => void ran.push(aggregateId));
  const { deliver } = consumer(parts, [handler], { ...parts.memory, get });
  await deliver();
  expect(ran).toEqual(['other']);
  expect(inboxRow(parts, suspect)).toMatchObject({ status: 'FAILED', unfinished: 2 });
  await parts.clock.advance(60_000);
  await deliver();
  expect(ran).toEqual(['other', 'suspect']);
});
