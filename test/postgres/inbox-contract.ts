import { describe, expect, test, vi } from 'vitest';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import { turnOf } from '../../lambdas/runtime/consume/turn.ts';
import type { Claim, Message } from '../../lambdas/runtime/inbox/inbox.ts';
import { EFFECTS_MAX } from '../../lambdas/runtime/inbox/inbox-effect.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { ThingHappened } from '../support/runtime-rig.ts';
import { FUNCTION_MS, inTime, LEASE_MS, sent, type TestedInbox } from './inbox-rig.ts';

const broken = new Error('bank answered 503');
const happened = ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 } });
const EVENT = { eventId: 'cause', correlationId: 'chain' } as never;
const NEXT_RUN = { alone: false, firstReceive: false };

/** The transitions of an inbox, which every storage makes alike. */
export function inboxContract(name: string, open: () => Promise<TestedInbox>): void {
  async function opened() {
    const tested = await open();
    const { inbox, clock } = tested;
    await inbox.open();
    const message: Message = {
      eventId: mintEventId(clock.now(), 2),
      messageId: 'first',
      type: 'ThingHappened',
    };
    const take = (options = {}, of: Inbox = inbox, what = message) =>
      of.claim(what, { alone: false, firstReceive: true, endsBy: clock.now() + FUNCTION_MS, ...options });
    const claimed = async (options = {}, of: Inbox = inbox, what = message): Promise<Claim> => {
      const result = await take(options, of, what);
      if (result.status !== 'claimed') throw new Error(`The claim was refused: ${result.status}`);
      return result.claim;
    };
    const failed = (claim: Claim) => inbox.fail(claim, broken, clock.now() + 1_000, {});
    const row = () => inbox.read(message.eventId);
    const content = { bus: ThingHappened, envelope: { eventId: message.eventId } } as never;
    const isSuspect = async () => (await turnOf({ inbox }, { message, receives: 2, content })).alone;
    return { ...tested, message, take, claimed, failed, row, isSuspect };
  }

  describe(`${name}: a stale message`, () => {
    test('is discarded under its claim, once, and its row expires as one of a processed message', async () => {
      const { inbox, claimed, take, failed, row } = await opened();
      await failed(await claimed());
      const held = await claimed(NEXT_RUN);
      expect(await inbox.discardStale(held)).toBeUndefined();
      expect(await inbox.discardStale(held)).toBeUndefined(); // an earlier try whose answer was lost
      const ended = await row();
      expect(ended).toMatchObject({ status: 'DISCARDED', reason: 'STALE', fence: held.fence });
      expect(ended).not.toHaveProperty('discardedBy', expect.anything());
      expect(await take(NEXT_RUN)).toEqual({ status: 'processed', result: undefined });
      expect(
        await inbox.startEffect({ claim: held, name: 'charge', run: 1 }).catch((error) => error.code),
      ).toBe('FENCE_LOST');
    });
  });

  describe(`${name}: a claim`, () => {
    test('is granted once, until its lease or its function ends', async () => {
      const { take, claimed, clock, row } = await opened();
      expect(await claimed()).toMatchObject({ attempt: 1, takenOver: false, unfinished: 0, effects: {} });
      const refused = await take();
      expect(refused).toMatchObject({ status: 'leased' });
      const { until, endsBy } = refused as { until: number; endsBy: number };
      expect(until).toBeGreaterThanOrEqual(clock.now() + LEASE_MS - 60_000);
      expect(endsBy).toBeGreaterThan(until);
      expect(await row()).toMatchObject({ status: 'PROCESSING', attempts: 1, type: 'ThingHappened' });
    });

    test('counts an attempt, which begin at 1 at the first receive', async () => {
      const { claimed, failed, row } = await opened();
      await failed(await claimed());
      expect(await row()).toMatchObject({
        status: 'FAILED',
        attempts: 1,
        lastError: expect.stringContaining('503'),
      });
      const second = await claimed(NEXT_RUN);
      expect(second).toMatchObject({ attempt: 2, lastError: expect.stringContaining('503') });
      expect(second.pastAttempts).toMatchObject([{ attempt: 1, ended: 'failed' }]);
      await failed(second);
      expect(await claimed()).toMatchObject({ attempt: 1 });
    });

    test('of many at a time is granted to one', async () => {
      const { take, worker } = await opened();
      const results = await Promise.all([1, 2, 3, 4, 5].map(() => take({}, worker())));
      expect(results.map(({ status }) => status).toSorted()).toEqual([
        'claimed',
        'leased',
        'leased',
        'leased',
        'leased',
      ]);
    });

    test('takes over a message whose lease has passed, and the old holder changes nothing', async () => {
      const { inbox, claimed, failed, pass, row } = await opened();
      const old = await claimed();
      await pass(LEASE_MS + 1_000);
      const held = await claimed(NEXT_RUN);
      expect(held).toMatchObject({ takenOver: true, attempt: 1, unfinished: 1 });
      expect(held.pastAttempts).toMatchObject([{ attempt: 1, ended: 'no-result' }]);
      expect(await inbox.complete(old, undefined)).toMatchObject({ status: 'leased' });
      expect(await failed(old)).toMatchObject({ status: 'leased' });
      expect(await inbox.release(old, 0, {})).toMatchObject({ status: 'leased' });
      expect(await inbox.cutOff(old, broken, 0, {})).toMatchObject({ status: 'leased' });
      expect(await inbox.markOutOfTime(old, broken, false)).toMatchObject({ status: 'leased' });
      expect(await inbox.reject(old, broken, {})).toMatchObject({ status: 'leased' });
      expect(await inbox.discardStale(old)).toMatchObject({ status: 'leased' });
      await expect(inbox.renew(old)).rejects.toMatchObject({ code: 'FENCE_LOST' });
      expect(await row()).toMatchObject({ status: 'PROCESSING', fence: held.fence });
      expect(await inbox.complete(held, { n: 1 })).toBeUndefined();
      expect(await inbox.complete(held, { n: 1 })).toBeUndefined(); // an earlier try whose answer was lost
      expect(await failed(old)).toEqual({ status: 'processed', result: '{"n":1}' });
    });

    test('of a message whose last claims ended without a result is granted alone, and counts then', async () => {
      const { isSuspect, take, claimed, pass } = await opened();
      await claimed();
      await pass(LEASE_MS + 1_000);
      expect(await claimed(NEXT_RUN)).toMatchObject({ attempt: 1, unfinished: 1 });
      expect(await isSuspect()).toBe(false); // it is held
      await pass(LEASE_MS + 1_000);
      expect(await isSuspect()).toBe(true);
      expect(await take(NEXT_RUN)).toEqual({ status: 'suspect' });
      expect(await claimed({ ...NEXT_RUN, alone: true })).toMatchObject({ attempt: 1, unfinished: 2 });
      await pass(LEASE_MS + 1_000);
      expect(await claimed({ ...NEXT_RUN, alone: true })).toMatchObject({ attempt: 2, unfinished: 3 });
    });

    test('is extended by a renewal, but never past the end of its function', async () => {
      const { inbox, claimed, take, pass } = await opened();
      const held = await claimed();
      await pass(LEASE_MS / 2);
      await inbox.renew(held);
      await pass(LEASE_MS * 0.75);
      expect(await take(NEXT_RUN)).toMatchObject({ status: 'leased' });
      await inbox.renew(held);
      await pass(LEASE_MS * 0.9);
      await inbox.renew(held);
      await pass(LEASE_MS * 0.86); // more than three leases: the end of the function
      expect(await take(NEXT_RUN)).toMatchObject({ status: 'claimed' });
    });
  });

  describe(`${name}: the end of a claim`, () => {
    test('without a count leaves the attempt as it was', async () => {
      const { inbox, claimed, clock, row } = await opened();
      await inbox.release(await claimed(), clock.now() + 1_000, { charge: 'failed' }, broken);
      expect(await row()).toMatchObject({
        status: 'FAILED',
        attempts: 0,
        pastAttempts: [{ ended: 'released' }],
      });
      expect(await claimed(NEXT_RUN)).toMatchObject({ attempt: 1 });
    });

    test('by the end of the time counts only if it ran alone', async () => {
      const { inbox, claimed, clock, row } = await opened();
      await inbox.cutOff(await claimed(), broken, clock.now(), {});
      expect(await row()).toMatchObject({ status: 'FAILED', attempts: 0, unfinished: 1 });
      await inbox.cutOff(await claimed(NEXT_RUN), broken, clock.now(), {});
      await inbox.cutOff(await claimed({ ...NEXT_RUN, alone: true }), broken, clock.now(), {});
      expect(await row()).toMatchObject({ status: 'FAILED', attempts: 1, unfinished: 3 });
    });

    test('is marked before it is known, and its error stays the last one', async () => {
      const { inbox, claimed, pass } = await opened();
      const held = await claimed();
      expect(await inbox.markOutOfTime(held, new Error('too slow'), true)).toBeUndefined();
      await pass(LEASE_MS + 1_000);
      expect(await claimed(NEXT_RUN)).toMatchObject({ lastError: expect.stringContaining('too slow') });
    });
  });

  describe(`${name}: a rejection`, () => {
    test('is final for its message id, and another id readmits the message with its effects', async () => {
      const { inbox, message, claimed, take, failed, row } = await opened();
      await failed(await claimed());
      const held = await claimed(NEXT_RUN);
      await inbox.startEffect({ claim: held, name: 'charge', run: 1 });
      await inbox.finishEffect({ claim: held, name: 'charge', run: 1 }, { status: 'COMPLETED', result: '7' });
      const poison = new PoisonMessage('not like this');
      expect(await inbox.reject(held, poison, {})).toBeUndefined();
      expect(await inbox.reject(held, poison, {})).toBeUndefined();
      expect(await take(NEXT_RUN)).toMatchObject({ status: 'rejected', reason: 'POISON_MESSAGE' });
      expect(await row()).toMatchObject({ status: 'REJECTED', attempts: 2 });
      const redriven = { ...message, messageId: 'second' };
      const again = await claimed({}, inbox, redriven);
      expect(again).toMatchObject({ attempt: 1, effects: { charge: { status: 'COMPLETED', result: '7' } } });
      expect(await inbox.rejectUnclaimed(message, poison)).toMatchObject({ status: 'rejected' });
      expect(await inbox.rejectUnclaimed(redriven, poison)).toMatchObject({ status: 'leased' });
    });

    test('needs no claim unless a worker holds the message', async () => {
      const { inbox, message, row } = await opened();
      const poison = new PoisonMessage('not\0like this');
      expect(await inbox.rejectUnclaimed(message, poison)).toEqual({
        status: 'rejected',
        reason: 'POISON_MESSAGE',
      });
      expect(await row()).toMatchObject({ status: 'REJECTED', attempts: 0 });
      expect(await inbox.rejectUnclaimed({ ...message, messageId: 'second' }, poison)).toMatchObject({
        status: 'rejected',
      });
      expect((await row())?.rejectedIds).toEqual(new Set(['first', 'second']));
    });

    test('of a failed or abandoned message needs no claim, either', async () => {
      const { inbox, message, claimed, failed, pass } = await opened();
      await failed(await claimed());
      await claimed(NEXT_RUN);
      await pass(LEASE_MS + 1_000);
      expect(await inbox.rejectUnclaimed(message, new PoisonMessage('no'))).toMatchObject({
        status: 'rejected',
      });
    });
  });

  describe(`${name}: an event without a row`, () => {
    test('that is older than the shortest retention is not claimed', async () => {
      const { inbox, message, take, pass, worker, claimed } = await opened();
      await pass(20 * DAY_MS);
      const shorter = worker(10);
      await shorter.open();
      expect(await take({}, shorter)).toMatchObject({ status: 'too-old' });
      const longer = worker(35);
      await longer.open();
      expect(await take({}, longer)).toMatchObject({ status: 'too-old' });
      expect(await longer.rejectUnclaimed(message, new PoisonMessage('no'))).toMatchObject({
        status: 'too-old',
      });
      const old = Object.assign(new PoisonMessage('too old'), { code: 'EVENT_TOO_OLD' });
      expect(await longer.rejectUnclaimed(message, old)).toMatchObject({ status: 'rejected' });
      expect(
        await claimed({}, inbox, { ...message, eventId: mintEventId(inbox.rules.clock.now(), 2) }),
      ).toBeDefined();
    });
  });

  describe(`${name}: an effect`, () => {
    test('runs once: a later claim reads its result', async () => {
      const { inbox, claimed, failed } = await opened();
      const held = await claimed();
      const call = { claim: held, name: 'charge', run: 1 };
      expect(await inbox.startEffect(call)).toBeUndefined();
      expect(await inbox.startEffect(call)).toBeUndefined(); // its answer was lost
      await inbox.finishEffect(call, { status: 'COMPLETED', result: '{"id":7}' });
      await inbox.finishEffect(call, { status: 'COMPLETED', result: '{"id":7}' });
      await failed(held);
      const next = await claimed(NEXT_RUN);
      expect(next.effects).toMatchObject({ charge: { status: 'COMPLETED', result: '{"id":7}' } });
      expect(await inbox.startEffect({ claim: next, name: 'charge', run: 1 })).toMatchObject({
        result: '{"id":7}',
      });
    });

    test('that failed runs again, and remembers what its error said', async () => {
      const { inbox, claimed, failed } = await opened();
      const held = await claimed();
      const call = { claim: held, name: 'charge', run: 1 };
      await inbox.startEffect(call);
      await inbox.finishEffect(call, { status: 'RELEASED', error: broken, nothingHappened: true });
      await failed(held);
      const next = await claimed(NEXT_RUN);
      expect(next.effects.charge).toMatchObject({ status: 'RELEASED', nothingHappened: true });
      expect(await inbox.startEffect({ claim: next, name: 'charge', run: 1 })).toBeUndefined();
      expect(await inbox.startEffect({ claim: next, name: 'charge', run: 2 })).toBeUndefined();
      await expect(inbox.finishEffect(call, { status: 'COMPLETED', result: '1' })).rejects.toMatchObject({
        code: 'FENCE_LOST',
      });
    });

    test('of a worker that has lost the message may still run until its function ends; its result is stored', async () => {
      const { inbox, claimed, pass } = await opened();
      const held = await claimed();
      const call = { claim: held, name: 'charge', run: 1 };
      await inbox.startEffect(call);
      await pass(LEASE_MS + 1_000);
      const next = await claimed(NEXT_RUN);
      await expect(inbox.startEffect({ claim: next, name: 'charge', run: 1 })).rejects.toMatchObject({
        code: 'EFFECT_IN_PROGRESS',
      });
      await expect(inbox.startEffect({ claim: held, name: 'mail', run: 2 })).rejects.toMatchObject({
        code: 'FENCE_LOST',
      });
      await inbox.finishEffect(call, { status: 'COMPLETED', result: '7' });
      expect(await inbox.startEffect({ claim: next, name: 'charge', run: 1 })).toMatchObject({ result: '7' });
    });

    test('of a function that was stopped starts again', async () => {
      const { inbox, claimed, pass } = await opened();
      await inbox.startEffect({ claim: await claimed(), name: 'charge', run: 1 });
      await pass(FUNCTION_MS + 3_000);
      const next = await claimed(NEXT_RUN);
      expect(await inbox.startEffect({ claim: next, name: 'charge', run: 1 })).toBeUndefined();
    });

    test('is one of 64 at most', async () => {
      const { inbox, claimed } = await opened();
      const held = await claimed();
      for (let n = 1; n <= EFFECTS_MAX; n += 1)
        await inbox.startEffect({ claim: held, name: `ship.${n}`, run: n });
      await expect(inbox.startEffect({ claim: held, name: 'ship.65', run: 65 })).rejects.toMatchObject({
        code: 'TOO_MANY_EFFECTS',
      });
      expect(await inbox.startEffect({ claim: held, name: 'ship.1', run: 66 })).toBeUndefined();
    });
  });

  describe(`${name}: a commit`, () => {
    const work = async () => ({ events: [happened] });
    const DONE = { status: 'committed', events: 1 };
    const FENCE_LOST = expect.objectContaining({ code: 'FENCE_LOST' });
    const LOST = { status: 'failed', error: FENCE_LOST, wroteNothing: true, isOutage: false };

    test('ends its message with its events, once', async () => {
      const { inbox, claimed, take, row, events } = await opened();
      const held = await claimed();
      const sending = vi.fn();
      expect(await inbox.commit(held, work, EVENT, sending)).toEqual(DONE);
      expect(sending).toHaveBeenCalledOnce();
      expect(await row()).toMatchObject({ status: 'PROCESSED' });
      expect(await inbox.commit(held, work, EVENT, sent)).toEqual(LOST);
      expect(await take(NEXT_RUN)).toEqual({ status: 'processed', result: undefined });
      expect(await events()).toBe(1);
    });

    test('of a lost message writes nothing', async () => {
      const { inbox, claimed, pass, events } = await opened();
      const old = await claimed();
      await pass(LEASE_MS + 1_000);
      const next = await claimed(NEXT_RUN);
      expect(await inbox.commit(old, work, EVENT, sent)).toEqual(LOST);
      expect(await events()).toBe(0);
      expect(await inbox.commit(next, work, EVENT, sent)).toEqual(DONE);
    });

    test('whose handler throws writes nothing, and the message stays held', async () => {
      const { inbox, claimed, row } = await opened();
      const held = await claimed();
      const throws = async () => {
        throw broken;
      };
      const end = { status: 'failed', error: broken, wroteNothing: true, isOutage: false };
      expect(await inbox.commit(held, throws, EVENT, sent)).toEqual(end);
      expect(await row()).toMatchObject({ status: 'PROCESSING', fence: held.fence });
      expect(await inbox.commit(held, work, EVENT, sent)).toEqual(DONE);
    });

    test('without a claim happens once, and is refused while a worker holds the message', async () => {
      const { inbox, message, claimed, failed, worker, events, row } = await opened();
      const unclaimed = (of: Inbox, what = message) => of.commitUnclaimed(what, 1, work, EVENT, inTime);
      const other = { ...message, eventId: mintEventId(inbox.rules.clock.now(), 2) };
      const ends = await Promise.all([1, 2, 3].map(() => unclaimed(worker(), other)));
      expect(ends.map(({ status }) => status).toSorted()).toEqual(['committed', 'processed', 'processed']);
      expect(await events()).toBe(1);
      const held = await claimed();
      expect(await unclaimed(inbox)).toMatchObject({ status: 'leased' });
      await failed(held);
      expect(await unclaimed(inbox)).toEqual({ status: 'open' });
      expect(await row()).toMatchObject({ status: 'FAILED' });
      expect(await events()).toBe(1);
    });
  });
}
