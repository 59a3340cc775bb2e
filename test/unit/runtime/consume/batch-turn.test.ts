import { describe, expect, test, vi } from 'vitest';
import { delaysOf } from '../../../../lambdas/runtime/consume/delays.ts';
import type { Delivery } from '../../../../lambdas/runtime/consume/delivery.ts';
import { dynamoInbox } from '../../../../lambdas/runtime/consume/dynamo-inbox.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { createTracer } from '../../../../lambdas/runtime/observe/tracer.ts';
import { batchTurn } from '../../../../lambdas/runtime/sources/sqs/batch-turn.ts';
import { createInbox } from '../../../../lambdas/runtime/store/dynamo/inbox-context.ts';
import { externalEventId } from '../../../../lambdas/runtime/store/external-id.ts';
import type { Key, Table } from '../../../../lambdas/runtime/store/table.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { envelope, oneMessage, send } from './consumer-rig.ts';

const unread = Object.assign(new Error('no'), { code: 'UNREAD' });

/** The event ids of messages that are not of a Mailroom event. */
const IDS: Readonly<Record<string, string>> = {
  unreadable: 'unreadable-7',
  external: externalEventId({ source: 'stripe', type: 'charge', external: { id: ['id'] } }, ['evt_1']),
};

/**
 * Decides about a batch.
 *
 * @param batch - of each message its name, how often it was received, and `!` if it must run alone, or `?` if that cannot be read
 * @returns the names of those that run, and of those that are put back, with whether they wait and why
 */
async function turn(batch: string) {
  const parts = rig();
  const messages = batch
    .split(', ')
    .map((text) => /^(?<name>\S+) (?<receives>\d+)(?<mark>.?)$/.exec(text)?.groups ?? {});
  const events = new Map(messages.map((one) => [IDS[one.name ?? ''] ?? envelope(parts).eventId, one]));
  const readRow = vi.fn(async ({ mark }: (typeof messages)[number]) => {
    if (mark === '?') throw unread;
    return { status: 'FAILED', attempts: 1, unfinished: mark === '!' ? 2 : 0 };
  });
  const get = async ({ PK }: Key) => {
    const [, received] = [...events].find(([eventId]) => PK.endsWith(eventId)) ?? [];
    return received && readRow(received); // otherwise it is the history of the inbox
  };
  const random = (length: number) => new Uint8Array(length).fill(128);
  const table = { ...parts.memory, get };
  const inbox = dynamoInbox(createInbox({ ...parts, ...consumerConfig, table, random }), parts.outbox);
  const delays = delaysOf(consumerConfig, parts.clock, random);
  const ctx = { ...parts, config: consumerConfig, table, random, delays, inbox, tracer: createTracer() };
  const deliveries = [...events].map(
    ([eventId, { name = '', receives }]): Delivery => ({
      message: { eventId, messageId: name },
      body: 'unused',
      receives: Number(receives),
      beganAt: 0,
      endsBy: 30_000,
      content: eventId.startsWith('unreadable')
        ? { problem: 'unused' }
        : { bus: ThingHappened, envelope: envelope(parts) },
    }),
  );
  const { now, later } = await batchTurn(ctx, deliveries);
  const waiting = later.map(({ delivery, outcome: { afterMs, error } }) => {
    const { code } = error as { code: string };
    return `${delivery.message.messageId} ${afterMs > 0 ? 'waits' : 'at once'} ${code}`;
  });
  return {
    reads: readRow.mock.calls.length,
    now: now.map(({ message }) => message.messageId).sort(),
    later: waiting.sort(),
  };
}

describe('in a batch', () => {
  test.each<[string, string, object]>([
    ['a lone message runs, without a read', 'a 4!', { reads: 0, now: ['a'], later: [] }],
    [
      'messages that were never received before run, without a read',
      'a 1, b 1',
      { reads: 0, now: ['a', 'b'], later: [] },
    ],
    [
      'an unreadable message, which never runs, costs no read',
      'other 1, unreadable 3!',
      { reads: 0, now: ['other', 'unreadable'], later: [] },
    ],
    [
      'a suspect runs alone at its odd receives, and the others are put back at once',
      'other 1, suspect 3!',
      { now: ['suspect'], later: ['other at once PUT_BACK'] },
    ],
    [
      'the others run at the even receives of a suspect, which waits',
      'other 3, suspect 4!',
      { now: ['other'], later: ['suspect waits PUT_BACK'] },
    ],
    [
      'a suspect may have been received only once before',
      'other 1, suspect 2!',
      { reads: 1, now: ['other'], later: ['suspect waits PUT_BACK'] },
    ],
    [
      'a suspect runs although another message, such as a rejected one, was received more often',
      'rejected 60, suspect 3!',
      { now: ['suspect'], later: ['rejected at once PUT_BACK'] },
    ],
    [
      'the suspect that was received most often runs before the others, at an even receive, too',
      'a 3!, b 6!, c 5!',
      { now: ['b'], later: ['a waits PUT_BACK', 'c waits PUT_BACK'] },
    ],
    [
      'an external message can be a suspect',
      'other 1, external 3!',
      { now: ['external'], later: ['other at once PUT_BACK'] },
    ],
    [
      'a message waits as in an outage if its row cannot be read',
      'other 1, unread 2?',
      { now: ['other'], later: ['unread waits UNREAD'] },
    ],
    [
      'a message whose row cannot be read waits while a suspect runs',
      'other 1, suspect 3!, unread 2?',
      { now: ['suspect'], later: ['other at once PUT_BACK', 'unread waits UNREAD'] },
    ],
    [
      'a message whose row cannot be read waits while a suspect waits',
      'other 1, suspect 4!, unread 2?',
      { now: ['other'], later: ['suspect waits PUT_BACK', 'unread waits UNREAD'] },
    ],
  ])('%s', async (_rule, batch, expected) => {
    await expect(turn(batch)).resolves.toMatchObject(expected);
  });

  test('half of the suspects with the same number of receives give way, by their message ids', async () => {
    const turns = [...'0123456789abcdef'].map((end) =>
      turn(`other 1, 2f1c9d3e-7a4b-4c58-9e21-8d5b6f3a709${end} 3!`),
    );
    expect((await Promise.all(turns)).filter(({ now }) => now.includes('other'))).toHaveLength(8);
  });
});

/** A batch with a message that was received before, and some of whose claims ended without a result. */
async function batchWithSuspect(unfinished: number) {
  const one = oneMessage({ aggregateId: 'suspect' });
  await one.receivedBefore();
  await one.overwrite({ status: 'FAILED', fence: 'theirs', attempts: 1, unfinished });
  send(one, { aggregateId: 'other' });
  return one;
}

test('the messages that make room are visible before a suspect starts, however slow SQS is', async () => {
  const one = await batchWithSuspect(2);
  const visible: number[] = [];
  const handler = leased(ThingHappened, async () => {
    visible.push(one.queue.messages().filter(({ visibleAt }) => visibleAt <= one.clock.now()).length);
  });
  const change = one.queue.changeVisibility.bind(one.queue);
  vi.spyOn(one.queue, 'changeVisibility').mockImplementation(async (...args) => {
    await one.clock.sleep(500);
    await change(...args);
  });
  const { failed } = await one.deliver(handler);
  expect(visible).toEqual([1]);
  expect(failed).toHaveLength(1);
});

test('a message that became a suspect after its row was read is not claimed in company', async () => {
  const one = await batchWithSuspect(1);
  const get: Table['get'] = async (...args) => {
    const row = await one.memory.get(...args);
    if (row?.status !== undefined) await one.overwrite({ unfinished: 2 }); // a second worker has claimed it, and died
    return row;
  };
  const ran: string[] = [];
  const handler = leased(ThingHappened, async ({ aggregateId }) => void ran.push(aggregateId));
  const table = { ...one.memory, get };
  await one.deliver(handler, { table });
  expect(ran).toEqual(['other']);
  expect(one.row()).toMatchObject({ status: 'FAILED', unfinished: 2 });
  await one.clock.advance(60_000);
  await one.deliver(handler, { table });
  expect(ran).toEqual(['other', 'suspect']);
});
