import { describe, expect, test } from 'vitest';
import { MailroomError, PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { CommitEnd, Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { settleMessage } from '../../lambdas/runtime/inbox/settle-message.ts';
import { seedSequence, skipSequence } from '../../lambdas/runtime/operations/order-operations.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { PlaceInOrder } from '../../lambdas/runtime/store/inbox-row.ts';
import { lastKey } from '../../lambdas/runtime/store/keys.ts';
import { NOTHING_APPLIED } from '../../lambdas/runtime/store/last-sequence.ts';
import { memoryTable } from '../../testing/index.ts';
import { type DecidedInbox, FUNCTION_MS, inTime, LEASE_MS, sent } from './inbox-rig.ts';

const EVENT = { eventId: 'cause', correlationId: 'chain' } as never;
const OVERTAKEN = expect.objectContaining({ code: 'OUT_OF_ORDER' });
const NOTE = { by: 'ada', reason: 'the event is lost' };
const POISON = new PoisonMessage('never');

const keyOf = (aggregateId: string) =>
  lastKey({ consumer: 'worker', source: 'shop', group: 'strict', aggregateType: 'Thing', aggregateId }).PK;
const KEY = keyOf('thing-1');

/** The order of a consumer's events, which every storage keeps alike. */
export function inboxOrderContract(name: string, open: () => Promise<DecidedInbox>): void {
  async function opened() {
    const tested = await open();
    const { inbox, clock } = tested;
    await inbox.open();
    /** A message with a number, as its gate reads the last one now. */
    const gated = async (sequence: number, more: Partial<PlaceInOrder> = {}, skipsRejected = false) => {
      const order: PlaceInOrder = { key: KEY, mode: 'strict', sequence, ...more };
      const seen = await inbox.lastSequence(order.key);
      const message: Message = {
        eventId: mintEventId(clock.now(), 2),
        messageId: 'first',
        type: 'ThingHappened',
        place: { order, seen, skipsRejected },
      };
      return message;
    };
    const claimed = async (message: Message): Promise<Claim> => {
      const result = await inbox.claim(message, {
        alone: true,
        firstReceive: false,
        endsBy: clock.now() + FUNCTION_MS,
      });
      if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
      return result.claim;
    };
    const commits = (claim: Claim) => inbox.commit(claim, async () => ({}), EVENT, sent);
    const unclaimed = (message: Message, of: Inbox = inbox) =>
      of.commitUnclaimed(message, 1, async () => ({}), EVENT, inTime);
    const last = async (key = KEY) => (await inbox.lastSequence(key)).last;
    const settle = (message: Message, status: 'PROCESSED' | 'DISCARDED', force = false) =>
      settleMessage(
        { inboxChanges: tested.changes, clock },
        { ...NOTE, consumer: 'worker', eventId: message.eventId, force, effectsChecked: force },
        status,
      );
    return { ...tested, gated, claimed, commits, unclaimed, last, settle };
  }

  describe(`${name}: the last applied sequence`, () => {
    test('is raised by a commit, in the same transaction, and names its event', async () => {
      const { inbox, gated, claimed, commits } = await opened();
      expect(await inbox.lastSequence(KEY)).toEqual(NOTHING_APPLIED);
      const first = await gated(1);
      expect(await commits(await claimed(first))).toMatchObject({ status: 'committed' });
      expect(await inbox.lastSequence(KEY)).toMatchObject({ last: 1, exists: true, eventId: first.eventId });
      const second = await gated(2);
      expect(await inbox.complete(await claimed(second), undefined)).toBeUndefined();
      expect(await inbox.lastSequence(KEY)).toMatchObject({ last: 2, eventId: second.eventId });
    });

    test('refuses a commit and a completion that another event has overtaken, which write nothing', async () => {
      const { inbox, gated, claimed, commits, last } = await opened();
      const messages = [await gated(1), await gated(1), await gated(1)] as const;
      const [first, second, third] = await Promise.all(messages.map(claimed));
      if (first === undefined || second === undefined || third === undefined) throw new Error('not claimed');
      await commits(first);
      const end: CommitEnd = { status: 'failed', error: OVERTAKEN, wroteNothing: true, isOutage: false };
      expect(await commits(second)).toEqual(end);
      await expect(inbox.complete(third, undefined)).rejects.toEqual(OVERTAKEN);
      for (const { message, fence } of [second, third])
        expect(await inbox.read(message.eventId)).toMatchObject({ status: 'PROCESSING', fence });
      expect(await last()).toBe(1);
    });

    test('is raised once by a completion whose answer was lost', async () => {
      const { inbox, gated, claimed, commits, last } = await opened();
      const held = await claimed(await gated(1));
      await inbox.complete(held, undefined);
      await commits(await claimed(await gated(2)));
      expect(await inbox.complete(held, undefined)).toBeUndefined();
      expect(await last()).toBe(2);
    });

    test('is not raised by a worker that has lost its message', async () => {
      const { inbox, gated, claimed, commits, pass, last } = await opened();
      const message = await gated(1);
      const old = await claimed(message);
      await pass(LEASE_MS + 1_000);
      await claimed(message);
      expect(await commits(old)).toMatchObject({ status: 'failed', error: { code: 'FENCE_LOST' } });
      expect(await inbox.complete(old, undefined)).toMatchObject({ status: 'leased' });
      expect(await last()).toBe(0);
    });

    test('lets one of several events commit that are next at the same time, without a claim', async () => {
      const { gated, unclaimed, worker, last } = await opened();
      const messages = [await gated(1), await gated(1), await gated(1)];
      const ends = await Promise.all(messages.map((message) => unclaimed(message, worker())));
      expect(ends.filter(({ status }) => status === 'committed')).toHaveLength(1);
      for (const end of ends)
        if (end.status !== 'committed')
          expect(end).toEqual({ status: 'failed', error: OVERTAKEN, wroteNothing: true, isOutage: false });
      expect(await last()).toBe(1);
    });

    test.each(['a\0', 'a\\0', 'a#b', 'ä%00'])('of the aggregate %j is its own', async (aggregateId) => {
      const { gated, unclaimed, last } = await opened();
      const others = ['a', 'a\0', 'a\\0', 'a\\\\0', 'ä%00', 'b', 'a#b'].filter((id) => id !== aggregateId);
      await unclaimed(await gated(1, { key: keyOf(aggregateId) }));
      expect(await last(keyOf(aggregateId))).toBe(1);
      for (const id of others) expect(await last(keyOf(id))).toBe(0);
    });
  });

  describe(`${name}: a message in an order`, () => {
    test('has its place in its row, until a claim without one', async () => {
      const { inbox, gated, claimed, clock } = await opened();
      const message = await gated(3, { mode: 'latest' });
      const held = await claimed(message);
      const order = { key: KEY, mode: 'latest', sequence: 3 };
      expect(await inbox.read(message.eventId)).toMatchObject({ order });
      await inbox.fail(held, new Error('no'), clock.now(), {});
      await claimed({ ...message, place: undefined });
      expect((await inbox.read(message.eventId))?.order).toBeUndefined();
    });

    test('that is superseded is processed, and leaves the number', async () => {
      const { inbox, gated, claimed, unclaimed, last } = await opened();
      await unclaimed(await gated(5, { mode: 'latest' }));
      const late = await claimed(await gated(4, { mode: 'latest' }));
      expect(await inbox.supersede(late, 5)).toBeUndefined();
      expect(await inbox.supersede(late, 5)).toBeUndefined(); // its answer was lost
      expect(await inbox.read(late.message.eventId)).toMatchObject({ status: 'PROCESSED', supersededBy: 5 });
      expect(await last()).toBe(5);
    });
  });

  describe(`${name}: a rejection in an order`, () => {
    const tooOld = Object.assign(new MailroomError('EVENT_TOO_OLD', 'too old'), { nonRetryable: true });

    test.each([
      ['blocks, leaves the number', false, POISON, 0],
      ['skips, passes over its number', true, POISON, 1],
      ['skips, leaves the number of an event that may have run', true, tooOld, 0],
    ] as const)('of a consumer that %s', async (_text, skips, error, number) => {
      const { inbox, gated, claimed, last } = await opened();
      const held = await claimed(await gated(1, {}, skips));
      expect(await inbox.reject(held, error, {})).toBeUndefined();
      const { last: passed, eventId } = await inbox.lastSequence(KEY);
      expect({ passed, eventId }).toEqual({ passed: number, eventId: undefined });
      const next = await gated(number + 1, {}, skips);
      expect(await inbox.rejectUnclaimed(next, error)).toMatchObject({ status: 'rejected' });
      expect(await last()).toBe(2 * number);
      expect(await inbox.read(next.eventId)).toMatchObject({ status: 'REJECTED', order: next.place?.order });
    });

    test('that skips goes by the number as it is then, not as its gate has read it', async () => {
      const { inbox, gated, claimed, unclaimed, last } = await opened();
      const held = await claimed(await gated(1, {}, true));
      await unclaimed(await gated(1));
      expect(await inbox.reject(held, POISON, {})).toBeUndefined();
      expect(await last()).toBe(1);
      await inbox.reject(await claimed(await gated(2, {}, true)), POISON, {});
      expect(await last()).toBe(2);
    });
  });

  describe(`${name}: an operator's decision in an order`, () => {
    test('passes over the next number, and no later one', async () => {
      const { inbox, gated, claimed, settle, last, clock } = await opened();
      const [first, second] = [await gated(1), await gated(2)];
      for (const message of [first, second])
        await inbox.fail(await claimed(message), POISON, clock.now(), {});
      expect(await settle(second, 'DISCARDED')).toEqual({ status: 'out-of-order', missing: 1 });
      expect(await settle(first, 'PROCESSED')).toEqual({ status: 'resolved' });
      expect(await inbox.lastSequence(KEY)).toMatchObject({ last: 1, eventId: undefined });
      expect(await settle(second, 'DISCARDED')).toEqual({ status: 'discarded' });
      expect(await last()).toBe(2);
    });

    test('by force takes the message from its worker, with its number', async () => {
      const { gated, claimed, commits, settle, last } = await opened();
      const message = await gated(1);
      const held = await claimed(message);
      expect(await settle(message, 'PROCESSED', true)).toEqual({ status: 'resolved' });
      expect(await last()).toBe(1);
      expect(await commits(held)).toMatchObject({ status: 'failed', error: { code: 'FENCE_LOST' } });
    });

    test('of the latest state raises the number if the work is done, and leaves it if it is discarded', async () => {
      const { inbox, gated, claimed, settle, last, clock } = await opened();
      const messages = [
        await gated(7, { mode: 'latest' }),
        await gated(5, { mode: 'latest' }),
        await gated(9, { mode: 'latest' }),
      ] as const;
      for (const message of messages) await inbox.fail(await claimed(message), POISON, clock.now(), {});
      await settle(messages[0], 'PROCESSED');
      expect(await last()).toBe(7);
      await settle(messages[1], 'PROCESSED');
      expect(await last()).toBe(7);
      await settle(messages[2], 'DISCARDED');
      expect(await last()).toBe(7);
    });

    test('skips the next number only, and seeds any greater one', async () => {
      const { changes, clock, last } = await opened();
      const deps = { table: memoryTable({ clock }), clock, inboxChanges: changes };
      const at = (sequence: number) => ({ key: KEY, sequence });
      expect(await skipSequence(deps, at(2), NOTE)).toEqual({ status: 'refused', last: 0 });
      expect(await skipSequence(deps, at(1), NOTE)).toEqual({ status: 'changed', last: 1 });
      expect(await skipSequence(deps, at(1), NOTE)).toEqual({ status: 'refused', last: 1 });
      expect(await seedSequence(deps, at(40), NOTE)).toEqual({ status: 'changed', last: 40 });
      expect(await seedSequence(deps, at(40), NOTE)).toEqual({ status: 'refused', last: 40 });
      expect(await last()).toBe(40);
      expect(await changes.raise({ ...at(41), seen: { last: 39, exists: true } }, NOTE)).toBe(false);
      expect(await changes.raise({ ...at(41), seen: NOTHING_APPLIED }, NOTE)).toBe(false);
      expect(await last()).toBe(40);
    });
  });
}
