import { expect } from 'vitest';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { paceOf } from '../../lambdas/runtime/consume/limits.ts';
import { LINE_MAX_MS, type TokenAsked } from '../../lambdas/runtime/inbox/limit-bucket.ts';
import { holderOf } from '../../lambdas/runtime/inbox/limit-places.ts';
import { freePlace, takePlace } from '../../lambdas/runtime/store/dynamo/limit-place.ts';
import { limitKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { manualClock } from '../../testing/index.ts';
import { type Case, describeCases, type Subject } from './cases.ts';

const NOW: TokenAsked = { hasSlot: false, patienceMs: 0 };

/** The time that a function has, milliseconds. */
const FUNCTION_MS = 60_000;

let keys = 0;

interface Given {
  readonly concurrency?: number;
  readonly perSecond?: number;
}

/** Random bytes of 128: messages ask again after their pause, neither earlier nor later. */
const evenly = (size: number) => new Uint8Array(size).fill(128);

/** The places of one key, and a clock. */
function places(table: Table, { concurrency = 1, perSecond }: Given = {}) {
  keys += 1;
  const clock = manualClock();
  const key = limitKey({ name: 'provider' }, `merchant-${keys}`);
  const pace = perSecond === undefined ? undefined : paceOf({ perSecond });
  const of = (name: string) => holderOf(clock.now() + FUNCTION_MS, name);
  const taken = new Map<string, string>();
  return {
    clock,
    key,
    of,
    /** @param since - the message has waited since then */
    take: (
      name: string,
      since?: number,
      { receivesLeft, ...asked }: TokenAsked & { readonly receivesLeft?: number } = NOW,
      write: Table['write'] = table.write,
    ) => {
      const holder = of(name);
      taken.set(name, holder);
      const place = { concurrency, holder, ticket: name, since, receivesLeft };
      const inbox = { table: { ...table, write }, clock, random: evenly };
      return takePlace(inbox, { key, pace, place }, { ...asked, hasSlot: since !== undefined });
    },
    free: (name: string, ms = 1_000, estimateMs?: number) =>
      freePlace(
        { table, clock, random: evenly },
        { key, holder: taken.get(name) ?? '', ran: { ms, estimateMs } },
      ),
    row: () => table.get(key, { consistent: true }),
    put: (item: Item) => table.write({ Put: { Item: { ...key, schema: 1, concurrency, ...item } } }),
  };
}

/** The times at which a message is received whose place is kept for another one for 14 days, from its first receive, milliseconds. */
async function receivesBehind({ clock, take, put }: ReturnType<typeof places>, most: number) {
  const since = clock.now();
  const end = since + 14 * DAY_MS;
  const running = new Set([holderOf(end, 'running')]);
  await put({ holders: running, head: 'older', headSince: since - 1, headUntil: end });
  const received = [0];
  while (clock.now() < end && received.length < most) {
    const asked = { ...NOW, receivesLeft: most - received.length };
    const { slotAt } = (await take('waiting', since, asked)) as { readonly slotAt: number };
    expect(slotAt - clock.now()).toBeLessThanOrEqual(LINE_MAX_MS);
    await clock.advance(slotAt - clock.now());
    received.push(clock.now() - since);
  }
  return received;
}

const cases: readonly Case<Table>[] = [
  [
    'as many runs as places hold one; the next message has a slot, and takes the place that is freed',
    async (table) => {
      const { clock, take, free, row, key } = places(table, { concurrency: 2 });
      const now = clock.now();
      expect([await take('a'), await take('b')]).toMatchObject([
        { is: 'token', startsAt: now },
        { is: 'token' },
      ]);
      expect(await take('c')).toMatchObject({ is: 'slot', slotAt: now + 500 });
      expect(await row()).toEqual({
        ...key,
        schema: 1,
        concurrency: 2,
        holders: new Set([holderOf(now + FUNCTION_MS, 'a'), holderOf(now + FUNCTION_MS, 'b')]),
        lineUntil: now + 1_000,
        expiresAt: expect.any(Number),
      });
      await free('a');
      await clock.advance(500);
      expect((await take('c', now)).is).toBe('token');
      expect((await take('d')).is).toBe('slot');
    },
  ],
  [
    'a run frees its own place, once, and no other',
    async (table) => {
      const { take, free, row, of } = places(table, { concurrency: 3 });
      for (const name of ['a', 'b', 'c']) await take(name);
      await free('b');
      await free('b');
      expect((await row())?.holders).toEqual(new Set([of('a'), of('c')]));
    },
  ],
  [
    'a place that was not taken cannot be freed, and leaves no row',
    async (table) => {
      const { free, row } = places(table);
      await free('a');
      expect(await row()).toBeUndefined();
    },
  ],
  [
    'a place is free when its function has stopped, and not before',
    async (table) => {
      const { clock, take, row, of } = places(table);
      const now = clock.now();
      await take('crashed');
      await clock.advance(FUNCTION_MS - 1);
      expect((await take('next', now)).is).toBe('head');
      await clock.advance(1);
      expect((await take('next', now)).is).toBe('token');
      const row2 = await row();
      expect(row2?.holders).toEqual(new Set([of('next')]));
      expect(row2?.head).toBeUndefined();
    },
  ],
  [
    'a run that replaces stopped ones is refused if another one did so first',
    async (table) => {
      const { clock, take, row, of } = places(table);
      await take('crashed');
      await clock.advance(FUNCTION_MS + 1);
      let writes = 0;
      const raced: Table['write'] = async (made) => {
        writes += 1;
        if (writes === 2) await take('first');
        return table.write(made);
      };
      expect((await take('second', undefined, NOW, raced)).is).toBe('slot');
      expect((await row())?.holders).toEqual(new Set([of('first')]));
    },
  ],
  [
    'of twenty that ask at once, as many as places have one',
    async (table) => {
      const { take, row } = places(table, { concurrency: 3 });
      const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => take(`m-${n}`)));
      expect(answers.filter(({ is }) => is === 'token')).toHaveLength(3);
      expect((await row())?.holders).toHaveProperty('size', 3);
    },
  ],
  [
    'a newcomer takes no place while a message waits, also one that is free',
    async (table) => {
      const { clock, take, put } = places(table);
      await put({ lineUntil: clock.now() + 5_000 });
      expect((await take('newcomer')).is).toBe('slot');
      expect((await take('waited', clock.now() - 1)).is).toBe('token');
    },
  ],
  [
    'a newcomer is refused if the line begins between its decision and its write',
    async (table) => {
      const { clock, take, put } = places(table);
      const raced: Table['write'] = async (made) => {
        await put({ lineUntil: clock.now() + 5_000 });
        return table.write(made);
      };
      expect((await take('newcomer', undefined, NOW, raced)).is).toBe('slot');
    },
  ],
  [
    'the message that has waited longest gets the next place: a younger one, and a newcomer, leave it free',
    async (table) => {
      const { clock, take, free, row } = places(table);
      const now = clock.now();
      await take('running');
      expect(await take('older', now - 20_000)).toMatchObject({ is: 'head', againAt: now + 1_000 });
      await free('running');
      expect((await take('younger', now - 10_000)).is).toBe('slot');
      expect((await take('newcomer')).is).toBe('slot');
      expect((await take('older', now - 20_000)).is).toBe('token');
      expect((await row())?.head).toBeUndefined();
    },
  ],
  [
    'with several places, one is kept for the head, and the others are not',
    async (table) => {
      const { clock, take, free } = places(table, { concurrency: 2 });
      const now = clock.now();
      await take('a');
      await take('b');
      await take('older', now - 20_000);
      await free('a');
      expect((await take('younger', now - 10_000)).is).toBe('slot');
      await free('b');
      expect((await take('younger', now - 10_000)).is).toBe('token');
      expect((await take('older', now - 20_000)).is).toBe('token');
    },
  ],
  [
    'a message that has waited longer than the head is the head; newcomers do not pass the one before it',
    async (table) => {
      const { clock, take, row, put } = places(table);
      const now = clock.now();
      await take('running');
      await take('younger', now - 10_000);
      const { headUntil } = (await row()) ?? {};
      expect((await take('older', now - 20_000)).is).toBe('head');
      expect(await row()).toMatchObject({ head: 'older', headSince: now - 20_000, lineUntil: headUntil });
      await put({ lineUntil: headUntil });
      expect((await take('newcomer')).is).toBe('slot');
    },
  ],
  [
    'a head that does not come loses its place to the next one',
    async (table) => {
      const { clock, take, free } = places(table);
      const now = clock.now();
      await take('running');
      await take('older', now - 20_000);
      await free('running');
      await clock.advance(31_000);
      expect((await take('younger', now - 10_000)).is).toBe('token');
    },
  ],
  [
    'a message that finds no place asks again after half of its wait, at most two minutes, and an eighth of a long one',
    async (table) => {
      const { clock, take } = places(table);
      const now = clock.now();
      await take('running');
      await take('older', now - 600_000);
      expect(await take('younger', now - 20_000)).toMatchObject({ is: 'slot', slotAt: now + 10_000 });
      expect(await take('old', now - 590_000)).toMatchObject({ is: 'slot', slotAt: now + 120_000 });
      const { take: other } = places(table);
      await other('running');
      await other('older', now - 3_600_000);
      expect(await other('old', now - 2_400_000)).toMatchObject({ is: 'slot', slotAt: now + 300_000 });
      await clock.advance(8_000);
      expect(await take('older', now - 600_000)).toMatchObject({ is: 'head', againAt: now + 12_000 });
    },
  ],
  [
    'slots are as far apart as places become free, by an average of the last runs, and at most two minutes',
    async (table) => {
      const { clock, take, free, row, put, of } = places(table);
      const now = clock.now();
      await take('a');
      await free('a', 60_000);
      expect((await row())?.runMs).toBe(60_000);
      await take('b');
      expect(await take('c')).toMatchObject({ is: 'slot', slotAt: now + 60_000 });
      await free('b', 200, 60_000);
      expect((await row())?.runMs).toBe(45_050);
      await put({ runMs: 600_000, holders: new Set([of('d')]) });
      expect(await take('e')).toMatchObject({ is: 'slot', slotAt: now + 120_000 });
    },
  ],
  [
    'the line has at most ten minutes: a message behind it asks again after half of them to all',
    async (table) => {
      const { clock, take, put, row } = places(table);
      const now = clock.now();
      await put({ lineUntil: now + 600_000 });
      expect(await take('a')).toMatchObject({ is: 'slot', slotAt: now + 600_000 });
      expect(await take('b')).toMatchObject({ is: 'slot', slotAt: now + 450_000 });
      expect((await row())?.lineUntil).toBe(now + 601_000);
    },
  ],
  [
    'a head that comes late is the head still, unless another one is: its pauses grow',
    async (table) => {
      const { clock, take, row } = places(table);
      const now = clock.now();
      await take('running');
      await take('older', now - 20_000);
      await clock.advance(58_000);
      expect(await take('older', now - 20_000)).toMatchObject({ is: 'head', againAt: now + 87_000 });
      expect(await row()).toMatchObject({ headAt: now });
    },
  ],
  [
    'a place that anyone takes ends the pauses of the heads before it',
    async (table) => {
      const { clock, take, free, row, put } = places(table);
      const now = clock.now();
      const since = now - 60_000;
      const head = { head: 'younger', headSince: since, headAt: now - 3_600_000 };
      await put({ ...head, headUntil: now + 20_000 });
      expect((await take('older', since - 10_000)).is).toBe('token');
      expect(await take('younger', since)).toMatchObject({ is: 'head', againAt: now + 1_000 });
      await free('older');
      await put({ ...head, headUntil: now - 1 });
      expect((await take('next', since + 1)).is).toBe('token');
      expect((await row())?.headAt).toBeUndefined();
      expect(await take('younger', since)).toMatchObject({ is: 'head', againAt: now + 1_000 });
    },
  ],
  [
    'a message whose pause is longer than a slot is not in the line: newcomers do not come behind it',
    async (table) => {
      const { clock, take, row, put } = places(table);
      const now = clock.now();
      await take('running');
      await take('older', now - 600_000);
      expect(await take('waiting', now - 500_000)).toMatchObject({ is: 'slot', slotAt: now + 120_000 });
      expect((await row())?.lineUntil).toBeUndefined();
      expect(await take('newcomer')).toMatchObject({ is: 'slot', slotAt: now + 1_000 });
      await put({ ...(await row()), runMs: 600_000 });
      expect(await take('waiting', now - 20_000)).toMatchObject({ is: 'slot', slotAt: now + 120_000 });
      expect((await row())?.lineUntil).toBe(now + 240_000);
    },
  ],
  [
    'a message behind another one takes 20 receives in 15 minutes, 70 in 4 days and 93 in 14 days, and no pause is longer than a queue hides it',
    async (table) => {
      const received = await receivesBehind(places(table), Number.POSITIVE_INFINITY);
      const within = (ms: number) => received.filter((at) => at <= ms).length;
      expect([within(15 * 60_000), within(4 * DAY_MS), received.length]).toEqual([20, 70, 93]);
    },
  ],
  [
    'the 48 receives of a queue last for 4 days',
    async (table) => {
      const received = await receivesBehind(places(table), 48);
      expect(received).toHaveLength(48);
      expect(Number(received.at(-1))).toBeGreaterThan(4 * DAY_MS);
    },
  ],
  [
    'the last receive of the head is not before its place is free for certain',
    async (table) => {
      const { clock, take, put } = places(table);
      const since = clock.now();
      const end = since + 900_000;
      await put({ holders: new Set([holderOf(end, 'running')]) });
      await clock.advance(1_000);
      let receivesLeft = 4;
      for (; receivesLeft > 0; receivesLeft -= 1) {
        const answer = await take('head', since, { ...NOW, receivesLeft });
        if (answer.is !== 'head') throw new Error(answer.is);
        await clock.advance(answer.againAt - clock.now());
      }
      expect(clock.now()).toBeGreaterThanOrEqual(end);
      expect((await take('head', since, { ...NOW, receivesLeft })).is).toBe('token');
    },
  ],
  [
    'a message waits within its patience for a place',
    async (table) => {
      const { clock, take, free } = places(table);
      await take('running');
      const asking = take('newcomer', undefined, { hasSlot: false, patienceMs: 2_000 });
      await free('running', 100);
      await clock.advance(2_000);
      expect((await asking).is).toBe('token');
    },
  ],
  [
    'the wait for a place and that for its token have one patience',
    async (table) => {
      const { clock, take, put, of } = places(table, { perSecond: 0.1 });
      const now = clock.now();
      const times = { everyMs: 10_000, burstMs: 0 };
      await put({ ...times, nextAt: now + 1_000, holders: new Set([of('running')]) });
      const asking = take('waiting', now - 1, { hasSlot: true, patienceMs: 2_000 });
      await clock.advance(500);
      await put({ ...times, nextAt: now + 3_000 });
      await clock.advance(1_500);
      expect((await asking).is).toBe('slot');
    },
  ],
  [
    'a place whose answer was lost is the same one',
    async (table) => {
      const { take, row } = places(table);
      const twice: Table['write'] = async (made) => {
        await table.write(made);
        return table.write(made);
      };
      expect((await take('a', undefined, NOW, twice)).is).toBe('token');
      expect((await row())?.holders).toHaveProperty('size', 1);
      const { take: timed } = places(table, { perSecond: 1 });
      expect((await timed('a', undefined, NOW, twice)).is).toBe('place');
    },
  ],
  [
    'with a rate, one write takes a token and a place, or neither',
    async (table) => {
      const { clock, take, free, row } = places(table, { concurrency: 2, perSecond: 0.1 });
      const now = clock.now();
      expect(await take('a')).toMatchObject({ is: 'token', startsAt: now });
      expect(await take('b')).toMatchObject({ is: 'slot', slotAt: now + 10_000 });
      expect(await row()).toMatchObject({
        nextAt: now + 10_000,
        holders: new Set([holderOf(now + FUNCTION_MS, 'a')]),
      });
      await clock.advance(10_000);
      expect(await take('b', now)).toMatchObject({ is: 'token', startsAt: now + 10_000 });
      await clock.advance(10_000);
      expect((await take('c', now)).is).toBe('head');
      expect((await row())?.nextAt).toBe(now + 20_000);
      await free('a');
      expect((await take('c', now)).is).toBe('token');
    },
  ],
  [
    'another concurrency of the same name is noticed',
    async (table) => {
      const { clock, take, put } = places(table);
      const other = holderOf(clock.now() + FUNCTION_MS, 'other');
      await put({ concurrency: 2, holders: new Set([other]) });
      expect(await take('a', clock.now() - 1)).toMatchObject({ is: 'head', ratesDiffer: true });
    },
  ],
  [
    'places that cannot be read are refused and left as they are',
    async (table) => {
      for (const holders of [new Set(['soon/a']), new Set([1]), 'a']) {
        const { take, put, row } = places(table);
        await put({ holders });
        await expect(take('a')).rejects.toMatchObject({ code: 'UNREADABLE_ROW' });
        expect(await row()).toMatchObject({ holders });
      }
    },
  ],
];

/** The contract of a table that stores the places of limits. */
export function describePlaces(name: string, make: () => Promise<Subject<Table>>): void {
  describeCases(name, cases, make, {});
}
