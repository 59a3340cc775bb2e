import { sql } from 'drizzle-orm';
import { drizzle as drizzleOf } from 'drizzle-orm/node-postgres';
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { kysely, typeOrm } from '../../lambdas/runtime/database/orm-databases.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { drizzle } from '../../lambdas/runtime/postgres/orm-databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { type Database, sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { type CuttingProxy, startCuttingProxy } from './support/cutting-proxy.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let proxy: CuttingProxy;

beforeAll(async () => {
  rig = await startRig('outbox');
  await rig.pool.query('CREATE TABLE orders (id int PRIMARY KEY)');
  proxy = await startCuttingProxy(rig.server.port);
});

beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('TRUNCATE orders CASCADE');
});

afterAll(async () => {
  await proxy.close();
  await rig.close();
});

const stored = () =>
  rig.rows(
    'SELECT event_id::text AS id, envelope, source, type, due_at <= clock_timestamp() AS due FROM mailroom.event JOIN mailroom.pending USING (event_id) ORDER BY event_id',
  );

test('an event and its place in the queue are written in the transaction of the caller', async () => {
  const client = await rig.pool.connect();
  await client.query('BEGIN');
  const [event] = await rig.outbox.write(client, [placed(1)]);
  await client.query('INSERT INTO orders VALUES (1)');
  expect(await stored()).toEqual([]);
  await client.query('COMMIT');
  const [row, ...more] = await stored();
  expect(more).toEqual([]);
  expect(row).toMatchObject({ id: event?.eventId, source: 'orders', type: 'Placed', due: true });
  expect(JSON.parse(String(row?.envelope))).toEqual(event);

  await client.query('BEGIN');
  await rig.outbox.write(client, [placed(2)]);
  await client.query('ROLLBACK');
  client.release();
  expect(await stored()).toHaveLength(1);
});

test('an envelope is stored byte for byte, also with characters that JSON escapes', async () => {
  const text = 'quote " backslash \\ nul \u0000 line\u2028 €𝄞';
  const note = `${text} lone \ud800`; // an id may not have half of a surrogate pair, but a payload may
  const noted = { ...placed(1), aggregateId: text, data: { n: 1, note } };
  const [event] = await rig.outbox.commit(async () => [noted]);
  const [row] = await stored();
  expect(row?.envelope).toBe(JSON.stringify(event));
  expect(JSON.parse(String(row?.envelope))).toMatchObject({ aggregateId: text, data: { note } });
});

test('an event has its aggregate in columns, without the NUL that PostgreSQL does not store', async () => {
  await rig.outbox.commit(async () => [{ ...placed(1), aggregateId: 'a\u0000€"𝄞' }]);
  expect(await rig.rows('SELECT aggregate_type, aggregate_id FROM mailroom.event')).toEqual([
    { aggregate_type: 'order', aggregate_id: 'a€"𝄞' },
  ]);
});

test('an event with deliverAt is due then', async () => {
  await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + 3_600_000 }), placed(2)]);
  expect((await stored()).map(({ due }) => due)).toEqual([true, false]);
});

test('a cause gives its events the correlation id and the number of hops', async () => {
  const cause = { eventId: 'e', correlationId: 'c', hops: 3, traceId: undefined };
  const [event] = await rig.database.transaction((tx) => rig.outbox.write(tx, [placed(1)], cause));
  expect(event).toMatchObject({ correlationId: 'c', causationId: 'e', hops: 4 });
});

test('an undeclared event, and one that is too large, are refused before anything is sent', async () => {
  const outbox = createPostgresOutbox({
    config: { ...PRODUCER, publishes: [] },
    database: rig.database,
    telemetry: memoryTelemetry(),
  });
  await expect(outbox.commit(async () => [placed(1)])).rejects.toMatchObject({ code: 'NOT_DECLARED' });
  const large = { ...placed(1), aggregateId: 'x'.repeat(1_000_000) };
  await expect(rig.outbox.commit(async () => [large])).rejects.toMatchObject({ code: 'EVENT_TOO_LARGE' });
  expect(await stored()).toEqual([]);
});

test('a REPEATABLE READ transaction of the caller writes events, and its own conflict is the caller’s', async () => {
  await rig.pool.query('INSERT INTO orders VALUES (1)');
  const client = await rig.pool.connect();
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await rig.outbox.write(client, [placed(1)]);
  await client.query('COMMIT');
  expect(await stored()).toHaveLength(1);
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await rig.outbox.write(client, [placed(2)]);
  await rig.pool.query('UPDATE orders SET id = 2');
  const conflict = client.query('UPDATE orders SET id = 3').catch((error: unknown) => error);
  expect(sqlState(await conflict)).toBe('40001');
  await client.query('ROLLBACK');
  client.release();
  expect(await stored()).toHaveLength(1);
});

test('a transaction that loses a deadlock is run again, and one that fails otherwise is not', async () => {
  await rig.pool.query('INSERT INTO orders VALUES (1), (2)');
  const locked: ((value?: unknown) => void)[] = [];
  const both = new Promise((resolve) => {
    locked.push(resolve);
  });
  let waiting = 2;
  const lock = (first: number, second: number) => {
    let runs = 0;
    return rig.outbox
      .commit(async (tx) => {
        runs += 1;
        await tx.query('SELECT FROM orders WHERE id = $1 FOR UPDATE', [first]);
        waiting -= 1;
        if (waiting <= 0) locked[0]?.();
        await both;
        await tx.query('SELECT FROM orders WHERE id = $1 FOR UPDATE', [second]);
        return [placed(first)];
      })
      .then(() => runs);
  };
  expect((await Promise.all([lock(1, 2), lock(2, 1)])).toSorted()).toEqual([1, 2]);
  expect(await stored()).toHaveLength(2);
  let runs = 0;
  const failed = rig.outbox.commit(async (tx) => {
    runs += 1;
    await tx.query('INSERT INTO orders VALUES (1)');
    return [];
  });
  expect(sqlState(await failed.catch((error: unknown) => error))).toBe('23505');
  expect(runs).toBe(1);
});

test('a transaction that fails in its COMMIT was rolled back', async () => {
  await rig.pool.query('CREATE TABLE line (id int REFERENCES orders (id) DEFERRABLE INITIALLY DEFERRED)');
  const failed = rig.outbox.commit(async (tx) => {
    await tx.query('INSERT INTO line VALUES (9)');
    return [placed(1)];
  });
  expect(sqlState(await failed.catch((error: unknown) => error))).toBe('23503');
  expect(await stored()).toEqual([]);
});

test('a COMMIT that PostgreSQL answers with a rollback, because a statement that was not awaited has failed, is an error', async () => {
  const database: Database<PgClient> = {
    ...rig.database,
    in: (tx) => ({
      query: async (text, values) => {
        const written = rig.database.in(tx).query(text, values);
        tx.query('SELECT 1 / 0').catch(() => {});
        return written;
      },
    }),
  };
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
  const failed = outbox.commit(async () => [placed(1)]);
  expect(sqlState(await failed.catch((error: unknown) => error))).toBe('25P02');
  expect(await stored()).toEqual([]);
});

type Opened = readonly [Database<unknown>, () => Promise<unknown>];

function anyTx<Tx>(database: Database<Tx>): Database<unknown> {
  return database as Database<unknown>;
}

const DATABASES: Readonly<Record<string, (pool: Pool, url: string) => Promise<Opened>>> = {
  'node-postgres': async (pool) => [anyTx(nodePostgres(pool)), async () => {}],
  Drizzle: async (pool) => [anyTx(drizzle(drizzleOf(pool), sql)), async () => {}],
  Kysely: async (pool) => [
    anyTx(kysely(new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) }), CompiledQuery.raw)),
    async () => {},
  ],
  TypeORM: async (_pool, url) => {
    const source = await new DataSource({ type: 'postgres', url }).initialize();
    return [anyTx(typeOrm(source)), () => source.destroy()];
  },
};

describe.each(Object.entries(DATABASES))('the answer to COMMIT is lost, with %s', (name, open) => {
  test.each([
    ['after', 1],
    ['before', 0],
  ] as const)('%s the server has it', async (where, events) => {
    const url = `postgresql://postgres@127.0.0.1:${proxy.port}/postgres`;
    const pool = new Pool({ connectionString: url });
    pool.on('error', () => {});
    // Drizzle and Kysely do not listen for the error of a connection that they use, which would end the process.
    if (name !== 'node-postgres') pool.on('connect', (client) => client.on('error', () => {}));
    const [database, end] = await open(pool, url);
    const telemetry = memoryTelemetry();
    const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry });
    let runs = 0;
    proxy.cutNextCommit(where);
    const committed = outbox.commit(async () => {
      runs += 1;
      return [placed(1)];
    });
    const result = await committed.catch((error: unknown) => error);
    if (events === 1) expect(result).toMatchObject([{ type: 'Placed' }]);
    else expect(result).toBeInstanceOf(Error);
    expect(runs).toBe(1);
    expect(await stored()).toHaveLength(events);
    expect(telemetry.counted('EventsCommitted')).toBe(events);
    await end();
    await pool.end();
  });
});

test('a COMMIT whose outcome the database does not tell is reported as unknown, and not repeated', async () => {
  let runs = 0;
  let now = 0;
  const clock = {
    now: () => now,
    sleep: async (ms: number) => {
      now += ms;
    },
  };
  const mute: Database<unknown> = {
    in: () => ({ query: async () => ({ rows: [{ xid: '7' }] }) }),
    query: () => Promise.reject(new Error('no connection')),
    transaction: async (run) => {
      await run(undefined);
      throw Object.assign(new Error('deadlock detected'), { code: '40P01' });
    },
  };
  const outbox = createPostgresOutbox({
    config: PRODUCER,
    database: mute,
    clock,
    telemetry: memoryTelemetry(),
  });
  const committed = outbox.commit(async () => {
    runs += 1;
    return [placed(1)];
  });
  await expect(committed).rejects.toMatchObject({ code: 'COMMIT_UNKNOWN' });
  expect(runs).toBe(1);
  expect(now).toBeGreaterThanOrEqual(40_000);
});

test('a transaction that is still in progress is asked about until it ends', async () => {
  const client = await rig.pool.connect();
  let asked = 0;
  const slow: Database<PgClient> = {
    in: rig.database.in,
    query: async (text, values) => {
      asked += 1;
      if (asked === 3) await client.query('COMMIT');
      return rig.database.query(text, values);
    },
    transaction: async (run) => {
      await client.query('BEGIN');
      await run(client);
      throw new Error('connection lost');
    },
  };
  const outbox = createPostgresOutbox({ config: PRODUCER, database: slow, telemetry: memoryTelemetry() });
  try {
    expect(await outbox.commit(async () => [placed(1)])).toHaveLength(1);
  } finally {
    client.release();
  }
  expect(asked).toBe(3);
});
