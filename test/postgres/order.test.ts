import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresConsumer } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { seedPostgresOrder } from '../../lambdas/runtime/postgres/postgres-order-seed.ts';
import { postgresInboxChanges } from '../../lambdas/runtime/store/postgres/inbox-operator.ts';
import { raiseLast, readLastSequence } from '../../lambdas/runtime/store/postgres/last-sequence.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { orderedConsumerContract } from '../contract/ordered-consumer-contract.ts';
import { KEY, type OrderedDatabase, orderedConsumers } from '../contract/ordered-consumers.ts';
import { newEventId } from './consumer-parts.ts';
import { migratedPostgres, testOutbox } from './inbox-rig.ts';

let postgres: Awaited<ReturnType<typeof migratedPostgres>>;
let logins: Readonly<Record<'worker' | 'stranger' | 'ada', Pool>>;

beforeAll(async () => {
  postgres = await migratedPostgres('order');
  const { database, server } = postgres;
  const login = (user: string) =>
    new Pool({ connectionString: `postgresql://${user}@127.0.0.1:${server.port}/postgres` });
  for (const name of ['worker', 'stranger', 'ada']) await database.query(`CREATE ROLE ${name} LOGIN`);
  for (const name of ['worker', 'stranger'])
    await grantPostgresRole(database, {
      login: name,
      role: 'mailroom_consumer',
      service: 'things',
      consumers: [name],
    });
  await grantPostgresRole(database, { login: 'ada', role: 'mailroom_operator' });
  await database.query('GRANT ALL ON payment TO worker; GRANT ALL ON SEQUENCE payment_id_seq TO worker');
  logins = { worker: login('worker'), stranger: login('stranger'), ada: login('ada') };
});
afterAll(async () => {
  for (const pool of Object.values(logins)) await pool.end();
  await postgres.close();
});
beforeEach(() =>
  postgres.database.query(
    'TRUNCATE mailroom.inbox, mailroom.effect, mailroom.event, mailroom.last_sequence, mailroom.operation, payment',
  ),
);

const rows = async (text: string) => (await postgres.database.query(text)).rows;

const ORDERED: OrderedDatabase<PgClient> = {
  database: () => nodePostgres(logins.worker),
  operated: () => nodePostgres(logins.ada),
  outbox: testOutbox,
  createConsumer: createPostgresConsumer,
  changesIn: (database, clock) => postgresInboxChanges({ database, whole: database, clock }),
  seedOrder: seedPostgresOrder,
  raiseLast,
  readLastSequence,
  pay: (tx, note) => tx.query("INSERT INTO payment (event_id, note) VALUES ('paid', $1)", [note]),
  rows,
  payments: 'payment',
  spoils: [
    'whose statement failed, which it has caught',
    async (tx) => {
      await ORDERED.pay(tx, 'no');
      await tx.query('SELECT 1 / 0').catch(() => {});
    },
    { message: expect.stringContaining('aborted') },
  ],
};

orderedConsumerContract(ORDERED);

test('waits for an event of the aggregate that is being applied, and is then superseded by it', async () => {
  const { database } = postgres;
  const { counting, booking, notes } = orderedConsumers(ORDERED);
  const eventId = newEventId();
  const { deliver } = counting((make) => [booking(make)]);
  const holder = await postgres.pool.connect();
  await holder.query('BEGIN');
  const place = KEY.slice('LAST#worker#'.length);
  await holder.query(
    "INSERT INTO mailroom.last_sequence (consumer, place, last, event_id) VALUES ('worker', $1, 1, 'other')",
    [place],
  );
  const delivered = deliver(1, eventId);
  await vi.waitFor(async () => {
    const blocked = 'SELECT 1 FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0';
    expect((await database.query(blocked)).rows).toHaveLength(1);
  }, 60_000);
  await holder.query('COMMIT');
  holder.release();
  expect(await delivered).toEqual(['SEQUENCE_REPEATED']);
  expect(await notes()).toEqual([]);
});

describe('the last applied sequence', () => {
  const REFUSED = { code: '42501' };
  const begin = (pool: Pool, consumer: string) =>
    pool.query("INSERT INTO mailroom.last_sequence VALUES ($1, 'things#strict#Thing#9', 4)", [consumer]);
  const raise = (pool: Pool, ...values: readonly unknown[]) =>
    pool.query('SELECT mailroom.raise_last($1, $2, $3, $4, $5) AS raised', [...values]);

  test('belongs to the login of its consumer', async () => {
    const { worker, stranger, ada } = logins;
    await begin(worker, 'worker');
    await expect(begin(stranger, 'worker')).rejects.toMatchObject(REFUSED);
    expect((await stranger.query('SELECT * FROM mailroom.last_sequence')).rows).toEqual([]);
    expect((await stranger.query('UPDATE mailroom.last_sequence SET last = 9')).rowCount).toBe(0);
    await expect(worker.query('DELETE FROM mailroom.last_sequence')).rejects.toMatchObject(REFUSED);
    await expect(ada.query('UPDATE mailroom.last_sequence SET last = 9')).rejects.toMatchObject(REFUSED);
    expect((await ada.query('SELECT consumer, last::int FROM mailroom.last_sequence')).rows).toEqual([
      { consumer: 'worker', last: 4 },
    ]);
  });

  test('is raised by an operator only from the number that was read, with an entry in the log', async () => {
    const { worker, ada } = logins;
    await begin(worker, 'worker');
    const place = 'things#strict#Thing#9';
    const raised = async (...values: readonly unknown[]) =>
      (await raise(ada, 'worker', place, ...values, 'lost')).rows[0].raised;
    expect(await raised(null, 5)).toBe(false);
    expect(await raised(3, 5)).toBe(false);
    expect(await raised(4, 4)).toBe(false);
    expect(await raised(4, 7)).toBe(true);
    expect(await rows('SELECT operator, command, subject, reason FROM mailroom.operation')).toEqual([
      { operator: 'ada', command: 'postgres order', subject: `worker ${place} 7`, reason: 'lost' },
    ]);
    await expect(raise(worker, 'worker', place, 7, 8, 'no')).rejects.toMatchObject(REFUSED);
  });
});
