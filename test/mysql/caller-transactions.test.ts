import type { PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-callers', { 'innodb-lock-wait-timeout': '5' });
  await rig.pool.query('CREATE DATABASE shop');
  await rig.pool.query('CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB');
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('DELETE FROM shop.orders');
});
afterAll(() => rig.close());

const outboxOn = (database: Database<PoolConnection>) =>
  createMysqlOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });

const count = async (table: string) => (await rig.rows(`SELECT 1 FROM ${table}`)).length;

/** The outbox of a database, and what its caller sends on the same connection after each of the outbox's statements. */
function beside(meanwhile: (tx: PoolConnection, text: string) => Promise<unknown>) {
  return outboxOn({
    ...rig.database,
    in: (tx) => ({
      query: async (text, values) => {
        const answer = await rig.database.in(tx).query(text, values);
        await meanwhile(tx, text);
        return answer;
      },
    }),
  });
}

describe('statements that a caller sends while events are written in the same transaction', () => {
  test('stay', async () => {
    let id = 0;
    const outbox = beside((tx) => {
      id += 1;
      return tx.query('INSERT INTO shop.orders VALUES (?)', [id]);
    });
    await rig.database.transaction((tx) => outbox.write(tx, [placed(1)]));
    expect(id).toBeGreaterThan(2);
    expect(await count('shop.orders')).toBe(id);
  });

  test.each(['SAVEPOINT', 'INSERT INTO mailroom.event', 'INSERT INTO mailroom.pending'])(
    'that write other events, after %s: each event has its place in the queue',
    async (after) => {
      const other = outboxOn(rig.database);
      let written: Promise<unknown> | undefined;
      const outbox = beside(async (tx, text) => {
        if (text.startsWith(after)) written ??= other.write(tx, [placed(2)]);
      });
      await rig.database.transaction(async (tx) => {
        await outbox.write(tx, [placed(1)]);
        await written;
      });
      expect([await count('mailroom.event'), await count('mailroom.pending')]).toEqual([2, 2]);
    },
  );

  test('that write events which fail leave those of the others', async () => {
    const failing = outboxOn({
      ...rig.database,
      in: (tx) => ({
        query: (text, values) =>
          rig.database.in(tx).query(text.replace('mailroom.pending', 'mailroom.missing'), values),
      }),
    });
    await rig.database.transaction(async (tx) => {
      const writes = [outboxOn(rig.database), failing, outboxOn(rig.database)].map((outbox, n) =>
        outbox.write(tx, [placed(n)]),
      );
      const ends = await Promise.allSettled(writes);
      expect(ends.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    });
    expect([await count('mailroom.event'), await count('mailroom.pending')]).toEqual([2, 2]);
  });
});

/** Ways to end a transaction. */
const ENDS: readonly [how: string, end: (tx: PoolConnection) => Promise<unknown>][] = [
  ['by the error of a deadlock, which it catches', (tx) => tx.query('ROLLBACK')],
  ['by another transaction', (tx) => tx.query('START TRANSACTION')],
  ['by DDL', (tx) => tx.query('CREATE TABLE IF NOT EXISTS shop.t (id INT)')],
  [
    'and goes on with another one',
    async (tx) => {
      await tx.query('COMMIT');
      await tx.query('START TRANSACTION');
    },
  ],
];

const serverError = (errno: number) => Object.assign(new Error(`error ${errno}`), { errno });

describe('a function that ends the transaction of commit', () => {
  test.each(ENDS)('%s writes no event', async (_how, end) => {
    for (const events of [[placed(1)], []]) {
      const committed = outboxOn(rig.database).commit(async (tx) => {
        await end(tx);
        return events;
      });
      await expect(committed).rejects.toMatchObject({ code: 'TRANSACTION_ENDED' });
    }
    expect([await count('mailroom.event'), await count('mailroom.commit')]).toEqual([0, 0]);
  });

  test.each(
    ENDS.flatMap(([how, end]) =>
      [new Error('sold out'), serverError(1205), serverError(1290)].map((error) => ({ how, end, error })),
    ),
  )('$how, and throws $error.message, is not repeated', async ({ end, error }) => {
    let runs = 0;
    const committed = outboxOn(rig.database).commit(async (tx) => {
      runs += 1;
      await end(tx);
      await tx.query('INSERT INTO shop.orders VALUES (?)', [runs]);
      throw error;
    });
    await expect(committed).rejects.toMatchObject({ code: 'TRANSACTION_ENDED', cause: error });
    expect(runs).toBe(1);
  });

  test('may write other events itself', async () => {
    const outbox = outboxOn(rig.database);
    await outbox.commit(async (tx) => {
      await outbox.write(tx, [placed(1)]);
      return [placed(2)];
    });
    expect(await count('mailroom.pending')).toBe(2);
  });
});

describe('a function of commit that throws the error of its statement', () => {
  /** Changes two orders in the other order than another transaction, which waits for the first one. */
  async function deadlock(tx: PoolConnection): Promise<void> {
    const other = await rig.pool.getConnection();
    await tx.query('DELETE FROM shop.orders WHERE id = 1');
    await other.query('START TRANSACTION');
    await other.query('DELETE FROM shop.orders WHERE id BETWEEN 2 AND 5');
    const blocked = other.query('DELETE FROM shop.orders WHERE id = 1');
    await tx.query('DELETE FROM shop.orders WHERE id = 2').finally(async () => {
      await blocked;
      await other.query('ROLLBACK');
      other.release();
    });
  }

  /** Waits in vain for an order that another transaction has. */
  async function lockTimeout(tx: PoolConnection, { pool }: Rig): Promise<void> {
    const other = await pool.getConnection();
    await other.query('START TRANSACTION');
    await other.query('DELETE FROM shop.orders WHERE id = 1');
    await tx.query('SET innodb_lock_wait_timeout = 1');
    await tx.query('DELETE FROM shop.orders WHERE id = 1').finally(async () => {
      await other.query('ROLLBACK');
      other.release();
    });
  }

  /** Commits on a server with six orders. @param fail - in the first run */
  async function runsOf(on: Rig, fail: (tx: PoolConnection) => Promise<unknown>): Promise<number> {
    await on.pool.query('INSERT INTO shop.orders VALUES (1), (2), (3), (4), (5), (6)');
    let runs = 0;
    await outboxOn(on.database).commit(async (tx) => {
      runs += 1;
      await tx.query('INSERT INTO shop.orders VALUES (7)');
      if (runs === 1) await fail(tx);
      return [placed(1)];
    });
    expect(await on.rows('SELECT id FROM shop.orders')).toHaveLength(7);
    return runs;
  }

  test.each<[string, (tx: PoolConnection) => Promise<unknown>]>([
    ['a deadlock', deadlock],
    [
      'a deadlock as the cause of another error',
      (tx) => deadlock(tx).catch((cause) => Promise.reject(new Error('no order', { cause }))),
    ],
    [
      'a row that is newer than its snapshot',
      (tx) => tx.query('ROLLBACK').then(() => Promise.reject(serverError(1020))),
    ],
    ['a lock that it waited for in vain', (tx) => lockTimeout(tx, rig)],
  ])('%s, is repeated', async (_what, fail) => {
    expect(await runsOf(rig, fail)).toBe(2);
  });

  test('a lock that it waited for in vain, is repeated also if that rolls the transaction back', async () => {
    const other = await startRig('mysql-callers-timeout', { 'innodb-rollback-on-timeout': 'ON' });
    try {
      await other.pool.query('CREATE DATABASE shop');
      await other.pool.query('CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB');
      expect(await runsOf(other, (tx) => lockTimeout(tx, other))).toBe(2);
    } finally {
      await other.close();
    }
  });

  test('is not repeated if it lost its connection before', async () => {
    let runs = 0;
    const committed = outboxOn(rig.database).commit(async (tx) => {
      runs += 1;
      await tx.query('COMMIT');
      tx.destroy();
      throw serverError(1205);
    });
    await expect(committed).rejects.not.toMatchObject({ errno: 1205 });
    expect(runs).toBe(1);
  });
});

test('an event is not cancelled without a transaction: a relay could take it between two statements', async () => {
  const outbox = outboxOn(rig.database);
  const deliverAt = Date.now() + 60_000;
  const [event] = await outbox.commit(async () => [placed(1, { deliverAt })]);
  const connection = await rig.pool.getConnection();
  const cancel = outbox.cancel(connection, event?.eventId ?? '');
  await expect(cancel).rejects.toMatchObject({ code: 'NO_TRANSACTION' });
  connection.release();
  expect(await count('mailroom.pending')).toBe(1);
});

test('a transaction begins although the pool lends a connection that its last user left in one', async () => {
  const pool = rig.poolOf({ connectionLimit: 1 });
  const connection = await pool.getConnection();
  await connection.query('START TRANSACTION');
  await connection.query('INSERT INTO shop.orders VALUES (7)');
  connection.release();
  await outboxOn(mysql2(pool)).commit(async () => [placed(1)]);
  expect([await count('shop.orders'), await count('mailroom.pending')]).toEqual([0, 1]);
  await pool.end();
});
