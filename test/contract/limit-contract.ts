import { expect } from 'vitest';
import { paceOf } from '../../lambdas/runtime/consume/limits.ts';
import type { TokenAsked } from '../../lambdas/runtime/inbox/limit-bucket.ts';
import { takeToken } from '../../lambdas/runtime/store/dynamo/limit-bucket.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { limitKey } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Table } from '../../lambdas/runtime/store/table.ts';
import { manualClock } from '../../testing/index.ts';
import { type Case, describeCases, type Subject } from './cases.ts';

/** Ten tokens per second, of which two may be taken at once. */
const PACE = paceOf({ perSecond: 10, burst: 2 });
const NOW: TokenAsked = { hasSlot: false, patienceMs: 0 };
const SLOT: TokenAsked = { hasSlot: true, patienceMs: 0 };

let keys = 0;

/** A bucket of its own in the table, and a clock. */
function bucket(table: Table, pace = PACE) {
  keys += 1;
  const clock = manualClock();
  const key = limitKey({ name: 'bank' }, `merchant-${keys}`);
  const inbox = { table, clock, random: systemRandomBytes };
  return {
    clock,
    key,
    /** @param meanwhile - happens before the second write */
    take: (asked = NOW, behindMs = 0, meanwhile: () => Promise<unknown> = async () => {}) => {
      let writes = 0;
      const write: Table['write'] = async (made) => {
        writes += 1;
        if (writes === 2) await meanwhile();
        return table.write(made);
      };
      const own = { ...clock, now: () => clock.now() - behindMs };
      return takeToken({ ...inbox, table: { ...table, write }, clock: own }, { key, pace }, asked);
    },
    row: () => table.get(key, { consistent: true }),
    put: (item: Item) => table.write({ Put: { Item: { ...key, ...item } } }),
  };
}

const cases: readonly Case<Table>[] = [
  [
    'a full bucket gives its burst at once, and then a slot',
    async (table) => {
      const { clock, take, row, key } = bucket(table);
      const now = clock.now();
      expect(await take()).toEqual({ is: 'token', startsAt: now, ratesDiffer: false });
      expect(await take()).toEqual({ is: 'token', startsAt: now, ratesDiffer: false });
      expect(await take()).toEqual({ is: 'slot', slotAt: now + 100, ratesDiffer: false });
      expect(await row()).toEqual({
        ...key,
        schema: 1,
        nextAt: now + 100,
        lineUntil: now + 200,
        everyMs: 100,
        burstMs: 100,
        expiresAt: expect.any(Number),
      });
    },
  ],
  [
    'tokens return at the rate, up to the burst',
    async (table) => {
      const { clock, take } = bucket(table);
      await take();
      await take();
      await clock.advance(100);
      expect((await take()).is).toBe('token');
      expect((await take()).is).toBe('slot');
      await clock.advance(10_000);
      expect([(await take()).is, (await take()).is, (await take()).is]).toEqual(['token', 'token', 'slot']);
    },
  ],
  [
    'a token that is free within the patience is taken for its time',
    async (table) => {
      const { clock, take } = bucket(table);
      const now = clock.now();
      const patient = { hasSlot: false, patienceMs: 150 };
      const answers = [];
      for (let n = 0; n < 4; n += 1) answers.push(await take(patient));
      expect(answers).toMatchObject([
        { startsAt: now },
        { startsAt: now },
        { startsAt: now + 100 },
        { is: 'slot', slotAt: now + 200 },
      ]);
    },
  ],
  [
    'the line is in the order of the asking, and a newcomer does not pass it',
    async (table) => {
      const { clock, take } = bucket(table);
      const now = clock.now();
      await take();
      await take();
      expect([await take(), await take()]).toMatchObject([{ slotAt: now + 100 }, { slotAt: now + 200 }]);
      await clock.advance(100);
      expect(await take()).toMatchObject({ is: 'slot', slotAt: now + 300 });
      expect(await take(SLOT)).toMatchObject({ is: 'token', startsAt: now + 100 });
      await clock.advance(100);
      expect(await take(SLOT)).toMatchObject({ is: 'token', startsAt: now + 200 });
    },
  ],
  [
    'a newcomer does not take a token that has become free for the line',
    async (table) => {
      const { clock, take, put } = bucket(table);
      const now = clock.now();
      const line = { schema: 1, everyMs: 100, burstMs: 100, lineUntil: now + 1_000 };
      await put({ ...line, nextAt: now - 101 });
      expect(await take()).toMatchObject({ is: 'slot', slotAt: now + 1_000 });
      expect(await take(SLOT)).toMatchObject({ is: 'token', startsAt: now });
    },
  ],
  [
    'a newcomer is refused if the line begins between its decision and its write',
    async (table) => {
      const { clock, take, put } = bucket(table);
      const now = clock.now();
      const row = { schema: 1, everyMs: 100, burstMs: 100, nextAt: now - 50 };
      await put(row);
      const meanwhile = () => put({ ...row, lineUntil: now + 1_000 });
      expect(await take(NOW, 0, meanwhile)).toMatchObject({ is: 'slot', slotAt: now + 1_000 });
    },
  ],
  [
    'a slot is not a token: of two that come with one, the second joins the line again',
    async (table) => {
      const { clock, take } = bucket(table);
      await take();
      await take();
      await take();
      await clock.advance(100);
      expect((await take(SLOT)).is).toBe('token');
      expect(await take(SLOT)).toMatchObject({ is: 'slot', slotAt: clock.now() + 100 });
    },
  ],
  [
    'a worker whose clock is behind neither sets a time back nor takes a token too many',
    async (table) => {
      const { clock, take, row } = bucket(table);
      await take();
      await take();
      const before = await row();
      const answers = await Promise.all([5_000, 60_000, 3_600_000].map((behindMs) => take(NOW, behindMs)));
      expect(answers.map(({ is }) => is)).not.toContain('token');
      expect(Number((await row())?.nextAt)).toBe(before?.nextAt);
      await clock.advance(100);
      expect((await take(SLOT)).is).toBe('token');
      expect((await take(SLOT)).is).toBe('slot');
    },
  ],
  [
    'of twenty that ask at once, the burst gets tokens, and each other one its own slot',
    async (table) => {
      const { take } = bucket(table, paceOf({ perSecond: 1, burst: 3 }));
      const answers = await Promise.all(Array.from({ length: 20 }, () => take()));
      expect(answers.filter(({ is }) => is === 'token')).toHaveLength(3);
      const slots = answers.flatMap((answer) => (answer.is === 'slot' ? [answer.slotAt] : []));
      expect(new Set(slots).size).toBe(slots.length);
    },
  ],
  [
    'a line of hours is not joined',
    async (table) => {
      const { clock, take, put } = bucket(table);
      const now = clock.now();
      const hours = 12 * 3_600_000;
      await put({ schema: 1, nextAt: now + 10_000, lineUntil: now + hours, everyMs: 100, burstMs: 100 });
      expect(await take()).toMatchObject({ is: 'line-full' });
    },
  ],
  [
    'a raised rate applies at the next token, however large the burst that was used up',
    async (table) => {
      const { clock, take, put, row } = bucket(table, paceOf({ perSecond: 100, burst: 1_000 }));
      const now = clock.now();
      // What a worker with one token per second and the same burst leaves, when it has taken all.
      await put({ schema: 1, nextAt: now + 1_000, everyMs: 1_000, burstMs: 999_000 });
      expect(await take({ hasSlot: false, patienceMs: 2_000 })).toMatchObject({ startsAt: now + 1_000 });
      expect((await row())?.nextAt).toBe(now + 1_010);
    },
  ],
  [
    'a smaller burst takes no token away, and adds none',
    async (table) => {
      const { clock, take, put } = bucket(table, paceOf({ perSecond: 10, burst: 1 }));
      const now = clock.now();
      await put({ schema: 1, nextAt: now - 99_900, everyMs: 100, burstMs: 99_900 });
      expect((await take()).is).toBe('token');
      expect(await take()).toMatchObject({ is: 'slot', slotAt: now + 100 });
    },
  ],
  [
    'another rate of the same name is noticed, and each worker keeps its own',
    async (table) => {
      const { clock, take, put } = bucket(table);
      await put({ schema: 1, nextAt: clock.now() - 50, everyMs: 1_000, burstMs: 0 });
      expect(await take()).toMatchObject({ is: 'token', ratesDiffer: true });
    },
  ],
  [
    'a bucket of a newer schema, or with a text for a time, is refused and left as it is',
    async (table) => {
      for (const wrong of [
        { schema: 2, nextAt: 1 },
        { schema: 1, nextAt: 'soon' },
      ]) {
        const { take, put, row } = bucket(table);
        await put(wrong);
        await expect(take()).rejects.toMatchObject({ code: 'UNREADABLE_ROW' });
        expect(await row()).toMatchObject(wrong);
      }
    },
  ],
  [
    'a rate that divides no millisecond keeps its rate',
    async (table) => {
      const { clock, take, row } = bucket(table, paceOf({ perSecond: 3, burst: 1 }));
      const now = clock.now();
      await take();
      expect((await row())?.nextAt).toBeCloseTo(now + 333.334, 3);
      expect(await take()).toMatchObject({ is: 'slot', slotAt: now + 334 });
      expect(await take()).toMatchObject({ is: 'slot', slotAt: now + 667 });
    },
  ],
];

/** The contract of a table that stores limits. */
export function describeLimits(name: string, make: () => Promise<Subject<Table>>): void {
  describeCases(name, cases, make, {});
}
