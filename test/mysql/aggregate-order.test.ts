import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import type { ClaimedEvent } from '../../lambdas/runtime/relay/database-transitions.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { aggregateKey } from '../../lambdas/runtime/store/mysql/aggregate-order.ts';
import { mysqlReads } from '../../lambdas/runtime/store/mysql/mailroom-rows.ts';
import { changeEvents, type OutboxChange } from '../../lambdas/runtime/store/mysql/outbox-operator.ts';
import { mysqlTransitions } from '../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../lambdas/runtime/store/mysql/server-check.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { eventsNamed, namesOf } from '../contract/aggregate-order-contract.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { eventually, PRODUCER } from '../postgres/support/rig.ts';
import { changedDatabase } from './support/changed-database.ts';
import { describeHoles } from './support/holes.ts';
import { type Rig, startRig, WAITING } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-aggregate-order');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

type MysqlDatabase = Database<PoolConnection>;

const parts = () => ({ clock: systemClock, random: systemRandomBytes, telemetry: memoryTelemetry() });
const relayOn = (database: MysqlDatabase, claim?: ClaimMode) =>
  mysqlTransitions({ ...parts(), config: relayConfig({ orderBy: 'aggregate' }), database, claim });
const outbox = () =>
  createMysqlOutbox({ config: PRODUCER, database: rig.database, telemetry: memoryTelemetry() });
const commit = async (...names: string[]) =>
  (await outbox().commit(async () => eventsNamed(names))).map(({ eventId }) => eventId);
const operate = (change: OutboxChange, eventId: string | undefined, database = rig.database) =>
  changeEvents({ ...parts(), database }, change, [eventId ?? ''], 'fixed', Date.now() + 60_000);
const makeDue = () => rig.pool.query('UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6)');

const REFUSED = new MailroomError('MalformedDetail', 'Detail is malformed');

const die = async (database: MysqlDatabase, rows: readonly ClaimedEvent[]) => {
  for (const row of rows) await relayOn(database).failEvent({ ...row, attempts: 99 }, REFUSED, true);
};

describeHoles(
  [
    {
      rule: 'an event waits while the one before it is in the queue',
      changes: [
        [
          'COALESCE((SELECT b.event_id FROM mailroom.pending b',
          'COALESCE((SELECT NULL FROM mailroom.pending b',
        ],
      ],
      isBroken: async (make) => {
        await commit('a1', 'a2');
        return (await relayOn(make()).claim(10)).length > 1;
      },
    },
    {
      rule: 'an event waits while the one before it is DEAD',
      changes: [['SELECT b.event_id FROM mailroom.dead b', 'SELECT NULL FROM mailroom.dead b']],
      isBroken: async (make) => {
        await commit('a1', 'a2');
        const database = make();
        await die(database, await relayOn(database).claim(10));
        await makeDue();
        return (await relayOn(database).claim(10)).length > 0;
      },
    },
    {
      rule: 'only events that were written before hold an event up',
      changes: [['AND b.ordinal < CAST', 'AND b.ordinal <> CAST']],
      isBroken: async (make) => {
        await commit('a1', 'a2');
        return (await relayOn(make()).claim(10)).length === 0;
      },
    },
    {
      rule: 'only events of its aggregate hold an event up',
      changes: [
        [
          'b.aggregate_key = UNHEX(?) AND b.ordinal <',
          '(b.aggregate_key = UNHEX(?) OR TRUE) AND b.ordinal <',
        ],
      ],
      isBroken: async (make) => {
        await commit('a1', 'b1');
        return (await relayOn(make()).claim(10)).length === 1;
      },
    },
    {
      rule: 'an event waits for the last one before it',
      changes: [['ORDER BY b.ordinal DESC', 'ORDER BY b.ordinal']],
      isBroken: async (make) => {
        const [, second] = await commit('a1', 'a2', 'a3');
        await relayOn(make()).claim(10);
        const rows = await rig.rows('SELECT LOWER(HEX(waits_for)) AS id FROM mailroom.pending');
        return !rows.some(({ id }) => id === second?.replaceAll('-', ''));
      },
    },
    {
      rule: 'an event that is put off is not due, and no relay holds it',
      changes: [[', fence = NULL, waits_for = w.before_it', ', waits_for = w.before_it']],
      isBroken: async (make) => {
        // Its lease has passed, and an event whose transaction did not lock the aggregate has been committed meanwhile.
        const relay = relayOn(make());
        await rig.database.transaction(async (tx) => {
          await outbox().write(tx, eventsNamed(['a1']));
          await commit('a2');
          await relay.claim(10);
        });
        await makeDue();
        await relay.claim(10);
        return (
          (await rig.rows('SELECT 1 FROM mailroom.pending WHERE waits_for IS NOT NULL AND fence IS NOT NULL'))
            .length > 0
        );
      },
    },
    {
      rule: 'a claim ends a wait',
      changes: [['SET waits_for = NULL, due_at', 'SET waits_for = waits_for, due_at']],
      isBroken: async (make) => {
        await commit('a1', 'a2');
        const relay = relayOn(make());
        const first = await relay.claim(10);
        await relay.claim(10);
        // A relay without the option wakes no event.
        const other = mysqlTransitions({ ...parts(), config: relayConfig(), database: rig.database });
        await other.markPublished(first);
        await makeDue();
        await relay.claim(10);
        return (await rig.rows('SELECT 1 FROM mailroom.pending WHERE waits_for IS NOT NULL')).length > 0;
      },
    },
    {
      rule: 'a publication makes the next event of its aggregate due',
      changes: [['SET due_at = UTC_TIMESTAMP(6), waits_for = NULL WHERE', 'SET waits_for = waits_for WHERE']],
      isBroken: async (make) => {
        await commit('a1', 'a2');
        const relay = relayOn(make());
        const first = await relay.claim(10);
        await relay.claim(10);
        await relay.markPublished(first);
        return (await relay.claim(10)).length === 0;
      },
    },
    {
      rule: 'a publication wakes the next event, and none before it',
      changes: [['AND b.ordinal > CAST', 'AND b.ordinal <> CAST']],
      isBroken: async (make) => {
        const relay = relayOn(make());
        let second: ClaimedEvent[] = [];
        await rig.database.transaction(async (tx) => {
          await outbox().write(tx, eventsNamed(['a1']));
          await commit('a2', 'a3');
          second = await relay.claim(10);
          await relay.claim(10);
        });
        // The late one has failed, and waits for its next try.
        const [late] = await relay.claim(10);
        if (late !== undefined) await relay.failEvent(late, REFUSED, false);
        await relay.markPublished(second);
        return !(await isDue('a3'));
      },
    },
    {
      rule: 'a publication leaves an event that a relay holds, or that waits for another try',
      changes: [['waits_for = NULL WHERE waits_for IS NOT NULL', 'waits_for = NULL']],
      isBroken: async (make) => {
        const relay = relayOn(make());
        let second: ClaimedEvent[] = [];
        await rig.database.transaction(async (tx) => {
          await outbox().write(tx, eventsNamed(['a1']));
          await commit('a2');
          second = await relay.claim(10);
        });
        await relay.markPublished(await relay.claim(10));
        return second.length !== 1 || (await relay.claim(10)).length > 0;
      },
    },
    {
      rule: 'a discard makes the next event of its aggregate due',
      changes: [['SET due_at = UTC_TIMESTAMP(6), waits_for = NULL WHERE', 'SET waits_for = waits_for WHERE']],
      isBroken: async (make) => {
        const [first] = await commit('a1', 'a2');
        const database = make();
        await die(database, await relayOn(database).claim(10));
        await relayOn(database).claim(10);
        await operate('discard', first, database);
        return (await relayOn(database).claim(10)).length === 0;
      },
    },
    {
      rule: 'by token, an event is locked before it is put off, so that no mark overtakes that',
      changes: [['WHERE due_at <= UTC_TIMESTAMP(6) FOR UPDATE', 'WHERE due_at <= UTC_TIMESTAMP(6)']],
      isBroken: async (make) => {
        await commit('a1');
        const relay = relayOn(rig.database, 'token');
        const first = await relay.claim(1);
        await commit('a2');
        let marked: Promise<unknown> = Promise.resolve();
        const slow = make(async (query, send) => {
          if (!query.sql.includes('SET due_at = UTC_TIMESTAMP(6) + INTERVAL 60000000')) return send(query);
          let isDone = false;
          marked = relay.markPublished(first).finally(() => {
            isDone = true;
          });
          await eventually(async () => isDone || (await rig.rows(WAITING)).length > 0 || undefined);
          return send(query);
        });
        await relayOn(slow, 'token').claim(10);
        await marked;
        return (await relay.claim(10)).length === 0;
      },
    },
  ],
  () => rig.pool,
);

/** True if the event of this name is due. */
async function isDue(name: string): Promise<boolean> {
  const rows = await rig.rows(
    'SELECT e.envelope, p.due_at <= UTC_TIMESTAMP(6) AS due FROM mailroom.pending p JOIN mailroom.event e USING (event_id)',
  );
  return rows.some(({ envelope, due }) => due === 1 && String(envelope).includes(`"n":${name.slice(1)}`));
}

describe('the place of an event', () => {
  test('is kept while it is DEAD and when it is requeued, and later events have none that is equal', async () => {
    const places = () =>
      rig.rows(
        'SELECT ordinal, HEX(aggregate_key) AS k FROM mailroom.pending UNION ALL SELECT ordinal, HEX(aggregate_key) FROM mailroom.dead ORDER BY ordinal',
      );
    const [first] = await commit('a1', 'a2');
    const before = await places();
    await die(rig.database, await relayOn(rig.database).claim(10));
    expect(await places()).toEqual(before);
    await operate('requeue', first);
    expect(await places()).toEqual(before);
    await commit('a3');
    const ordinals = (await places()).map(({ ordinal }) => Number(ordinal));
    expect(ordinals).toEqual([...new Set(ordinals)].toSorted((a, b) => a - b));
    expect(before[0]?.k).toBe(aggregateKey('orders', 'order', 'a').toUpperCase());
  });

  test('is not given to an event that an operator publishes again, so it holds up no others', async () => {
    const [first] = await commit('a1');
    const relay = relayOn(rig.database);
    await relay.markPublished(await relay.claim(10));
    await operate('republish', first);
    await commit('a2');
    expect(namesOf(await relay.claim(10))).toEqual(['a1', 'a2']);
  });

  test('differs for names that are alike', () => {
    const names: [string, string, string][] = [
      ['a', 'b', 'c'],
      ['a,b', 'c', ''],
      ['a', 'b"', 'c'],
      ['a', 'b', 'c '],
      ['a', 'b', 'C'],
    ];
    expect(new Set(names.map((name) => aggregateKey(...name))).size).toBe(names.length);
  });

  test('is not given to an event of an earlier version of the outbox', async () => {
    await commit('a1', 'a2');
    await rig.pool.query('UPDATE mailroom.pending SET aggregate_key = NULL');
    expect(namesOf(await relayOn(rig.database).claim(10))).toEqual(['a1', 'a2']);
  });
});

test('a reader of the queue learns which event another one waits for', async () => {
  const [first, second = ''] = await commit('a1', 'a2');
  await relayOn(rig.database).claim(10);
  expect(await mysqlReads(rig.database).events([second])).toMatchObject([{ waitsFor: first }]);
});

test('a number is greater than that of a DEAD event, also after the server was killed with an empty queue', async () => {
  await commit('a1');
  await die(rig.database, await relayOn(rig.database).claim(10));
  await rig.server.recover();
  await eventually(async () => (await rig.pool.query('SELECT 1').catch(() => undefined)) && true);
  await commit('a2');
  expect(namesOf(await relayOn(rig.database).claim(10))).toEqual([]);
  expect(await rig.rows('SELECT 1 FROM mailroom.pending WHERE waits_for IS NOT NULL')).toHaveLength(1);
});

describe('a transaction of the caller', () => {
  test('has the number of its own row in LAST_INSERT_ID after a write', async () => {
    await rig.pool.query(
      'CREATE TABLE IF NOT EXISTS mailroom.own (id BIGINT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 4711',
    );
    const last = await rig.database.transaction(async (tx) => {
      await tx.query('INSERT INTO mailroom.own () VALUES ()');
      await outbox().write(tx, eventsNamed(['a1', 'a2']));
      const [rows] = await tx.query('SELECT LAST_INSERT_ID() AS id');
      return (rows as { id: number }[])[0]?.id;
    });
    await rig.pool.query('DROP TABLE mailroom.own');
    expect(last).toBe(4711);
  });

  test.each(['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE'])(
    'that locks its aggregate has its place in the order of these transactions: %s',
    async (level) => {
      await rig.pool.query('CREATE TABLE IF NOT EXISTS mailroom.own (id INT PRIMARY KEY, n INT NOT NULL)');
      await rig.pool.query('REPLACE INTO mailroom.own VALUES (1, 0)');
      let errors = 0;
      const write = async (): Promise<void> => {
        const connection = await rig.pool.getConnection();
        try {
          await connection.query(`SET TRANSACTION ISOLATION LEVEL ${level}`);
          await connection.query('START TRANSACTION');
          await connection.query('SELECT 1 FROM mailroom.migration'); // a snapshot that is older than the lock
          await connection.query('UPDATE mailroom.own SET n = n + 1 WHERE id = 1');
          const [[row]] = (await connection.query(
            'SELECT n FROM mailroom.own WHERE id = 1 FOR UPDATE',
          )) as never as [{ n: number }[]];
          await outbox().write(connection, eventsNamed([`a${row?.n}`]));
          await connection.query('COMMIT');
        } catch {
          errors += 1;
          await connection.query('ROLLBACK');
        } finally {
          connection.release();
        }
      };
      await Promise.all(Array.from({ length: 20 }, write));
      const relay = relayOn(rig.database);
      const published: string[] = [];
      for (let rows = await relay.claim(100); rows.length > 0; rows = await relay.claim(100)) {
        published.push(...namesOf(rows));
        await relay.markPublished(rows);
      }
      await rig.pool.query('DROP TABLE mailroom.own');
      expect(published).toEqual(Array.from({ length: 20 - errors }, (_, n) => `a${n + 1}`));
      expect(errors).toBe(0);
    },
  );
});

test('the events before and after another one are found by an index', async () => {
  const names = Array.from({ length: 200 }, (_, n) => [`a${n}`, `b${n}`]).flat();
  await commit(...names);
  const looks: Record<string, unknown>[] = [];
  const spy = changedDatabase(rig.pool, async (query, send) => {
    if (query.sql.includes('_in_aggregate'))
      looks.push(...(await rig.rows(`EXPLAIN ${query.sql}`, ...query.values)));
    return send(query);
  });
  const relay = relayOn(spy);
  await relay.markPublished(await relay.claim(100));
  const ofIndexes = looks.filter(({ table }) => table === 'b');
  expect(new Set(ofIndexes.map(({ key }) => key))).toEqual(
    new Set(['pending_in_aggregate', 'dead_in_aggregate']),
  );
  for (const look of ofIndexes) expect(look).toMatchObject({ type: 'range' });
});
