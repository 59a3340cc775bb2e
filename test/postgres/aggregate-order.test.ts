import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { aggregateOrderContract, eventsNamed, namesOf } from '../contract/aggregate-order-contract.ts';
import { queueRigOf } from './support/queue-rig.ts';
import { relayConfig } from './support/relay-config.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('aggregate-order');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

const parts = () => ({
  config: { ...relayConfig(), orderBy: 'aggregate' as const },
  clock: systemClock,
  random: systemRandomBytes,
  telemetry: memoryTelemetry(),
});
const relayOn = (database: Sql = rig.database) => postgresTransitions({ ...parts(), database });

const commit = (...names: string[]) => rig.outbox.commit(async () => eventsNamed(names));

const REFUSED = new MailroomError('MalformedDetail', 'Detail is malformed');

const dueAgain = () =>
  rig.pool.query('UPDATE mailroom.pending SET due_at = clock_timestamp() WHERE fence IS NULL');

describe('PostgreSQL', () =>
  aggregateOrderContract(async () => queueRigOf(await startRig('order-contract'))));

describe('a claim in the order of aggregates', () => {
  test('takes what an earlier version of the outbox has written, which knows no aggregate', async () => {
    await commit('a1', 'a2');
    await rig.pool.query('UPDATE mailroom.event SET aggregate_type = NULL, aggregate_id = NULL');
    expect(namesOf(await relayOn().claim(10, true))).toEqual(['a1', 'a2']);
  });

  test('goes to the event before and the one behind by an index, also in a table without statistics', async () => {
    await rig.pool.query("DELETE FROM pg_statistic WHERE starelid = 'mailroom.event'::regclass");
    for (let n = 0; n < 3; n += 1)
      await commit(...Array.from({ length: 1_000 }, (_, i) => `a${n * 1_000 + i}`));
    const sent: [text: string, values: readonly unknown[]][] = [];
    const spy: Sql = {
      query: (text, values = []) => {
        sent.push([text, values]);
        return rig.database.query(text, values);
      },
    };
    const relay = relayOn(spy);
    await relay.markPublished(await relay.claim(1, true));
    const inOrder = sent.filter(([text]) => text.includes('ordinal'));
    expect(inOrder).toHaveLength(2);
    for (const [text, values] of inOrder) {
      const { rows } = await rig.database.query(`EXPLAIN ${text}`, values);
      const plan = JSON.stringify(rows);
      expect(plan).toContain('using event_in_aggregate');
      expect(plan).not.toContain('Bitmap Index Scan on event_in_aggregate');
    }
  });
});

/** A database whose statements lack a clause. */
function without(clause: string, replacement: string) {
  let found = false;
  const database: Sql = {
    query: (text, values) => {
      if (text.includes(clause)) found = true;
      return rig.database.query(text.replaceAll(clause, replacement), values);
    },
  };
  return { database, wasFound: () => found };
}

describe('without a clause', () => {
  test.each<
    [rule: string, clause: string, replacement: string, isBroken: (database: Sql) => Promise<boolean>]
  >([
    [
      'an event waits while the one before it is in the queue',
      'EXISTS (SELECT FROM mailroom.pending q WHERE q.event_id = b.event_id)',
      'false',
      async (database) => {
        await commit('a1', 'a2');
        return (await relayOn(database).claim(10, true)).length > 1;
      },
    ],
    [
      'an event waits while the one before it is DEAD',
      'EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = b.event_id)',
      'false',
      async (database) => {
        await commit('a1', 'a2');
        const relay = relayOn(database);
        for (const row of await relay.claim(10, true))
          await relay.failEvent({ ...row, attempts: 99 }, REFUSED, true);
        await dueAgain();
        return (await relay.claim(10, true)).length > 0;
      },
    ],
    [
      'the event before is the last one before, not the first',
      'ORDER BY b.ordinal DESC',
      'ORDER BY b.ordinal',
      async (database) => {
        await commit('a1', 'a2', 'a3');
        const relay = relayOn(database);
        await relay.markPublished(await relay.claim(10, true));
        await dueAgain();
        return (await relay.claim(10, true)).length > 1;
      },
    ],
    [
      'only events that were written before hold an event up',
      'b.ordinal < e.ordinal',
      'b.ordinal <> e.ordinal',
      async (database) => {
        await commit('a1', 'a2');
        return (await relayOn(database).claim(10, true)).length === 0;
      },
    ],
    [
      'a publication wakes the next event of its aggregate',
      'SET due_at = clock_timestamp(), waits_for = NULL FROM following',
      'SET waits_for = p.waits_for FROM following',
      async (database) => {
        await commit('a1', 'a2');
        const relay = relayOn(database);
        const first = await relay.claim(10, true);
        await relay.claim(10, true);
        await relay.markPublished(first);
        return (await relay.claim(10, true)).length === 0;
      },
    ],
    [
      'a wake leaves an event that a relay holds',
      'AND p.fence IS NULL ORDER BY',
      'ORDER BY',
      async (database) => {
        await commit('a1', 'a2');
        const { database: both } = without('zz', 'zz');
        const relay = relayOn({
          query: (text, values) =>
            database.query(text.replace('f.event_id AND p.fence IS NULL', 'f.event_id'), values),
        });
        const first = await relay.claim(10, true);
        await relay.markPublished(first);
        await relayOn(both).claim(10, true);
        await relay.markPublished(first); // again, by a relay that has not seen it
        return (await relayOn(both).claim(10, true)).length > 0;
      },
    ],
  ])('%s', async (_rule, clause, replacement, isBroken) => {
    expect(await isBroken(rig.database)).toBe(false);
    await rig.clear();
    const { database, wasFound } = without(clause, replacement);
    expect(await isBroken(database)).toBe(true);
    expect(wasFound()).toBe(true);
  });
});
