import { expect } from 'vitest';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { DAY_MS } from '../../lambdas/runtime/base/units.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { uniqueKey } from '../../lambdas/runtime/store/keys.ts';
import type { Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import { manualClock } from '../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { type Case, describeCases, type Subject } from './cases.ts';

let keys = 0;

/** An outbox with a clock, and a key that no other test has. */
function producer<C extends Clock>(table: Table, clock: C) {
  keys += 1;
  const uniqueBy = `invoice#${keys}`;
  const outbox = createOutbox({ config: consumerConfig, table, clock });
  const drafts = (more: object = {}) =>
    ThingHappened.create({ aggregateId: 'thing-1', data: { n: 1 }, uniqueBy, ...more });
  return {
    outbox,
    clock,
    drafts,
    /** @returns the event's id, or the id that refused it */
    commit: async (more: object = {}, writes: readonly TransactAction[] = []) => {
      try {
        const [event] = await outbox.commit({ writes, events: [drafts(more)] });
        return { eventId: event?.eventId };
      } catch (error) {
        if (!isMailroomError(error, 'ALREADY_COMMITTED')) throw error;
        return { firstEventId: error.firstEventId };
      }
    },
    row: () => table.get(uniqueKey(ThingHappened, uniqueBy), { consistent: true }),
  };
}

const domainKey = () => ({ PK: `THING#${keys}`, SK: 'THING' });

const cases: readonly Case<Table>[] = [
  [
    'a second commit is refused by the event of the first one, and writes nothing',
    async (table) => {
      const { commit, row } = producer(table, manualClock());
      const { eventId } = await commit();
      expect(await row()).toMatchObject({ schema: 1, eventId });
      const Key = domainKey();
      expect(await commit({ data: { n: 2 } }, [{ Put: { Item: Key } }])).toEqual({ firstEventId: eventId });
      expect(await table.get(Key, { consistent: true })).toBeUndefined();
    },
  ],
  [
    'of many commits at once, one happens, and the others name its event',
    async (table) => {
      const { commit } = producer(table, systemClock);
      const ends = await Promise.all([1, 2, 3, 4, 5].map(() => commit()));
      const [first] = ends.flatMap(({ eventId }) => eventId ?? []);
      expect(ends.filter(({ eventId }) => eventId !== undefined)).toHaveLength(1);
      expect(ends.filter(({ firstEventId }) => firstEventId !== undefined)).toEqual(
        Array.from({ length: 4 }, () => ({ firstEventId: first })),
      );
    },
  ],
  [
    'a commit that is refused by another condition takes no key; one that is refused by both names the first event',
    async (table) => {
      const { commit, row } = producer(table, manualClock());
      const Item = domainKey();
      const once = { Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } };
      await table.write({ Put: { Item } });
      await expect(commit({}, [once])).rejects.toMatchObject({
        code: 'TRANSACTION_CANCELLED',
        reasons: [{ code: 'ConditionalCheckFailed' }, { code: 'None' }, { code: 'None' }],
      });
      expect(await row()).toBeUndefined();
      const { eventId } = await commit();
      expect(await commit({}, [once])).toEqual({ firstEventId: eventId });
    },
  ],
  [
    'of several unique events, the error tells which one was refused, and none is committed',
    async (table) => {
      const [first, second] = [producer(table, manualClock()), producer(table, manualClock())];
      const plain = first.drafts({ uniqueBy: undefined });
      const { eventId } = await second.commit();
      const events = [plain, first.drafts(), second.drafts()];
      await expect(first.outbox.commit({ events })).rejects.toMatchObject({
        index: 2,
        firstEventId: eventId,
      });
      expect(await first.row()).toBeUndefined();
    },
  ],
  [
    'a key is taken for 35 days, also if TTL is late, and of a scheduled event from its due time',
    async (table) => {
      const { commit, clock } = producer(table, manualClock());
      const first = await commit();
      await clock.advance(35 * DAY_MS);
      expect(await commit()).toEqual({ firstEventId: first.eventId });
      await clock.advance(3_000);
      const second = await commit({ deliverAt: clock.now() + 10 * DAY_MS });
      expect(second.eventId).toEqual(expect.any(String));
      await clock.advance(45 * DAY_MS);
      expect(await commit()).toEqual({ firstEventId: second.eventId });
      await clock.advance(3_000);
      expect((await commit()).eventId).toEqual(expect.any(String));
    },
  ],
  [
    'a cancelled event keeps its key',
    async (table) => {
      const { commit, outbox, clock, drafts } = producer(table, manualClock());
      const { eventId = '' } = await commit({ deliverAt: clock.now() + DAY_MS });
      expect(await outbox.cancel(eventId)).toBe('cancelled');
      expect(await commit()).toEqual({ firstEventId: eventId });
      const later = drafts({ deliverAt: clock.now() + 2 * DAY_MS });
      await expect(outbox.reschedule(eventId, later)).rejects.toMatchObject({
        code: 'ALREADY_COMMITTED',
        firstEventId: eventId,
      });
    },
  ],
  [
    'a retry after a lost answer is not refused by its own row',
    async (table) => {
      let tries = 0;
      const losing: Table = {
        ...table,
        transact: async (actions, token) => {
          await table.transact(actions, token);
          tries += 1;
          if (tries === 1) throw Object.assign(new Error('no answer'), { name: 'TimeoutError' });
        },
      };
      const { commit, row } = producer(losing, systemClock);
      const { eventId } = await commit();
      expect(tries).toBe(2);
      expect(await row()).toMatchObject({ eventId });
    },
  ],
];

/** The contract of unique events, with any table. */
export function describeUniqueEvents(what: string, open: () => Promise<Subject<Table>>): void {
  describeCases(what, cases, open);
}
