import { beforeEach, describe, expect, test } from 'vitest';
import { PoisonMessage } from '../../lambdas/runtime/base/errors.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { newEventId } from '../postgres/consumer-parts.ts';
import { hurriedClock, losingCommits, vanishing } from '../support/lost-answers.ts';
import {
  aggregate,
  Counted,
  happened,
  KEY,
  type OrderedDatabase,
  orderedConsumers,
  type RejectedOptions,
} from './ordered-consumers.ts';

/** The contract of order in a database: strict consumers, `rejected` functions, backfills and operators. */
export function orderedConsumerContract<Tx>(tested: OrderedDatabase<Tx>): void {
  const { pay, spoils } = tested;
  const { counting, booking, last, begin, notes, statuses, eventCount, logged } = orderedConsumers(tested);

  describe('a strict consumer', () => {
    test('applies each event after its predecessor, and absorbs what was applied', async () => {
      const { deliver, telemetry } = counting((make) => [booking(make)]);
      const [first, second] = [newEventId(), newEventId()];
      expect(await deliver(2, second)).toEqual(['OUT_OF_ORDER']);
      expect(await deliver(1, first)).toEqual([]);
      expect(await deliver(2, second, 2)).toEqual([]);
      expect(await deliver(1, first, 2)).toEqual([]);
      expect(await deliver(2, newEventId())).toEqual(['SEQUENCE_REPEATED']);
      expect(await notes()).toEqual(['1', '2']);
      expect(await last()).toMatchObject({ last: 2, eventId: second });
      expect(telemetry.counted('MessagesOutOfOrder')).toBe(1);
    });

    test('refuses the commit of an event that was overtaken between the reads of its handler and the commit', async () => {
      let overtake = async () => {};
      const { deliver } = counting((make) => [
        make.leased(Counted, async ({ data }, ctx) => {
          await overtake();
          await ctx.commit(async (tx) => {
            await pay(tx, String(data.n));
            return {};
          });
        }),
      ]);
      overtake = async () => {
        overtake = async () => {};
        await deliver(1, newEventId());
      };
      // Both have number 1, which another event has by then.
      expect(await deliver(1, newEventId())).toEqual(['OUT_OF_ORDER']);
      expect(await notes()).toEqual(['1']);
    });
  });

  describe('a rejected function', () => {
    const announces: RejectedOptions<Tx> = {
      rejected: async ({ data }, { tx, by, cause }) => {
        await pay(tx, `refused ${data.n} by ${by}: ${cause?.code}`);
        return { events: [happened] };
      },
    };
    beforeEach(() => begin(12));

    test('commits its writes and events with DISCARDED, and the later events go on', async () => {
      const { deliver, reject } = counting((make) => [booking(make, announces)]);
      const [bad, next] = [newEventId(), newEventId()];
      expect(await deliver(13, bad)).toEqual(['POISON_MESSAGE']);
      expect(await deliver(14, next)).toEqual(['OUT_OF_ORDER']);
      expect(await reject(13, bad)).toEqual({ status: 'discarded' });
      expect(await reject(13, bad)).toEqual({ status: 'discarded' }); // the same request, whose answer was lost
      expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
      expect([await eventCount(), await logged()]).toEqual([1, [expect.stringMatching(/ discard$/)]]);
      expect(await last()).toMatchObject({ last: 13, eventId: undefined });
      expect(await deliver(14, next, 2)).toEqual([]);
    });

    test('whose COMMIT has no answer is not reported as one that changed nothing', async () => {
      const losing = vanishing(tested.database());
      const { deliver } = counting((make) => [booking(make, announces)]);
      const { reject } = counting((make) => [booking(make, announces)], losing, hurriedClock());
      const bad = newEventId();
      await deliver(13, bad);
      await expect(reject(13, bad)).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
      losing.comeBack();
      expect(await reject(13, bad)).toEqual({ status: 'discarded' });
      expect(await notes()).toEqual(['refused 13 by ada: POISON_MESSAGE']);
    });

    const throwing = async (tx: Tx) => {
      await pay(tx, 'no');
      throw new PoisonMessage('not like this');
    };
    const rejecting = (run: (tx: Tx) => Promise<unknown>): RejectedOptions<Tx> => ({
      rejected: async (_event, { tx }) => {
        await run(tx);
        return { events: [happened] };
      },
    });
    test.each<[string, RejectedOptions<Tx>, object]>([
      ['that throws', rejecting(throwing), { status: 'refused', code: 'POISON_MESSAGE' }],
      [spoils[0], rejecting(spoils[1]), { status: 'refused', ...spoils[2] }],
      ['that does not exist', {}, { status: 'refused', code: 'NO_REJECTED_FUNCTION' }],
    ])('%s leaves the message as it is', async (_text, options, answer) => {
      const { deliver, reject } = counting((make) => [booking(make, options)]);
      const eventId = newEventId();
      await deliver(13, eventId);
      expect(await reject(13, eventId)).toMatchObject(answer);
      expect([await notes(), (await last()).last, await statuses()]).toEqual([[], 12, ['REJECTED']]);
      expect(await eventCount()).toBe(0);
    });
  });

  test('a backfill begins a sequence in its own transaction, once', async () => {
    const database = tested.database();
    const backfill = () =>
      database.transaction(async (tx) => {
        await pay(tx, 'state');
        await tested.seedOrder(database, tx, { consumer: 'worker', ...aggregate, last: 7 });
      });
    await backfill();
    await expect(backfill()).rejects.toMatchObject({ code: 'OUT_OF_ORDER' });
    expect([await notes(), (await last()).last]).toEqual([['state'], 7]);
    expect(await counting((make) => [booking(make)]).deliver(8)).toEqual([]);
  });

  describe("an operator's raise of the last applied sequence", () => {
    const raiseIn = (database: Database<Tx>, sequence = 5, seen = 4) =>
      tested
        .changesIn(database, hurriedClock())
        .raise({ key: KEY, sequence, seen: { last: seen, exists: true } }, { by: 'ada', reason: 'lost' });
    beforeEach(() => begin(4));

    test('is made from the number that was read, with an entry in the log', async () => {
      expect(await raiseIn(tested.operated(), 5, 3)).toBe(false);
      expect(await logged()).toEqual([]);
      expect(await raiseIn(tested.operated(), 7)).toBe(true);
      expect([(await last()).last, await logged()]).toEqual([7, [expect.stringMatching(/ order$/)]]);
    });

    test('is left to a worker that is about to change it', async () => {
      await tested.database().transaction(async (tx) => {
        const held = { key: KEY, sequence: 5, seen: { last: 4, exists: true } };
        expect(await tested.raiseLast(tested.database().in(tx), held)).toBe(true);
        expect(await raiseIn(tested.operated())).toBe(false);
      });
      expect([(await last()).last, await logged()]).toEqual([5, []]);
    });

    test('whose answer was lost is known to be made, also if the number was raised again', async () => {
      const database = tested.operated();
      const losing = losingCommits(database);
      expect(await raiseIn(losing)).toBe(true);
      const passing: Database<Tx> = {
        ...database,
        transaction: (run) =>
          losing.transaction(run).catch(async (error: unknown) => {
            await raiseIn(database, 8, 6);
            throw error;
          }),
      };
      expect(await raiseIn(passing, 6, 5)).toBe(true);
      expect([(await last()).last, (await logged()).length]).toEqual([8, 3]);
    });

    test('is unknown while the database is away', async () => {
      await expect(raiseIn(vanishing(tested.operated()))).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
    });

    test('that was rolled back fails with the error', async () => {
      const database = tested.operated();
      const aborted = new Error('The connection was lost.');
      const rolledBack: Database<Tx> = {
        ...database,
        transaction: (run) =>
          database.transaction(async (tx) => {
            await run(tx);
            throw aborted;
          }),
      };
      await expect(raiseIn(rolledBack)).rejects.toBe(aborted);
      expect([(await last()).last, await logged()]).toEqual([4, []]);
    });
  });
}
