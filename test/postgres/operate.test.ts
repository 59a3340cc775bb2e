import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { type OpenPostgres, openPostgres } from '../../cli/deployment/postgres-database.ts';
import { postgresTable } from '../../cli/deployment/postgres-table.ts';
import { runMailroom } from '../../cli/program.ts';
import { runChecks } from '../../cli/reports/checks/check.ts';
import { postgresChecks } from '../../cli/reports/checks/postgres-checks.ts';
import { migratePostgres } from '../../lambdas/runtime/postgres/migrate.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { recordOperation } from '../../lambdas/runtime/store/operation-record.ts';
import { capturedIo } from '../support/captured-io.ts';
import { mailroomInMemory } from '../unit/cli/support/mailroom-in-memory.ts';
import { runInMemory } from '../unit/cli/support/run-in-memory.ts';
import { type PostgresServer, startPostgres } from './server/postgres-server.ts';

let server: PostgresServer;
let pool: Pool;
let postgres: OpenPostgres;

beforeAll(async () => {
  server = await startPostgres('operate');
  pool = new Pool({ connectionString: server.url });
  postgres = await openPostgres(server.url);
  await migratePostgres(postgres.database);
});

afterAll(async () => {
  await postgres.end();
  await pool.end();
  await server.close();
});

beforeEach(async () => {
  const tables = ['event', 'pending', 'published', 'dead', 'inbox', 'effect', 'operation'];
  await pool.query(`TRUNCATE ${tables.map((name) => `mailroom.${name}`).join(', ')}`);
});

/** The rig's Mailroom with its rows in PostgreSQL. Its clock agrees with the database's. */
function mailroom() {
  const made = mailroomInMemory([]);
  const clock = { ...made.clock, now: () => Date.now() };
  return { ...made, clock, table: postgresTable(postgres.database, made.table.name), postgres };
}

async function storedEvent(at: number, aggregateId = '42'): Promise<string> {
  const eventId = mintEventId(at, 256);
  const envelope = {
    eventId,
    type: 'ThingHappened',
    version: 1,
    aggregateType: 'Thing',
    aggregateId,
    occurredAt: at,
    correlationId: eventId,
    data: { n: 1 },
  };
  await pool.query('INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, $2, $3, $4)', [
    eventId,
    'things',
    'ThingHappened',
    JSON.stringify(envelope),
  ]);
  return eventId;
}

async function deadEvent(): Promise<string> {
  const eventId = await storedEvent(Date.now() - 60_000);
  await pool.query(
    `INSERT INTO mailroom.dead VALUES ($1, clock_timestamp(), 5, 'Detail is not valid', 'relay InvalidArgument')`,
    [eventId],
  );
  return eventId;
}

async function json(...argv: string[]) {
  const { out, err } = await runInMemory(mailroom(), [...argv, '--json']);
  if (out === '') throw new Error(err);
  return JSON.parse(out);
}

test('status counts the events that wait, also old ones, and those that are dead', async () => {
  const old = await storedEvent(Date.now() - 86_400_000);
  await pool.query(`INSERT INTO mailroom.pending (event_id) VALUES ($1)`, [old]);
  await deadEvent();
  const { outbox } = await json('status');
  expect(outbox).toMatchObject({ pending: 1, dead: 1, unreadable: 0 });
  expect(outbox.oldestPendingMs).toBeGreaterThanOrEqual(86_400_000);
});

test('events list shows the published, the pending and the dead', async () => {
  const published = await storedEvent(Date.now() - 60_000);
  await pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [published]);
  const pending = await storedEvent(Date.now() - 60_000);
  await pool.query(`INSERT INTO mailroom.pending (event_id, attempts, last_error) VALUES ($1, 2, 'no bus')`, [
    pending,
  ]);
  const dead = await deadEvent();
  const unpublished = await json('events', 'list');
  const shown = JSON.stringify(unpublished);
  expect(shown).toContain(pending);
  expect(shown).toContain('no bus');
  expect(shown).toContain(dead);
  expect(shown).not.toContain(published);
});

test('why finds an event by its id, the beginning of it, and its aggregate', async () => {
  const eventId = await storedEvent(Date.now() - 60_000, 'order-7');
  await pool.query('INSERT INTO mailroom.published VALUES ($1, clock_timestamp())', [eventId]);
  await pool.query(
    `INSERT INTO mailroom.inbox (consumer, event_id, type, status, fence, attempts, retry_at, last_error, fingerprint, past_attempts)
      VALUES ('worker', $1, 'ThingHappened', 'FAILED', 'f', 1, clock_timestamp() + interval '1 min', 'the bank is closed', 'worker Error', '[]')`,
    [eventId],
  );
  await pool.query(
    `INSERT INTO mailroom.effect (consumer, event_id, name, status, fence, run, started_at, ends_by, ended_at, error)
      VALUES ('worker', $1, 'charge', 'RELEASED', 'f', 1, clock_timestamp(), clock_timestamp(), clock_timestamp(), 'no answer')`,
    [eventId],
  );
  for (const id of [eventId, eventId.slice(0, 18), 'order-7']) {
    const { verdict, events } = await json('why', id);
    expect(verdict).toMatchObject({ state: 'retrying', eventId, consumer: 'worker' });
    expect(JSON.stringify(events)).toContain('the bank is closed');
  }
  expect(JSON.stringify(await json('messages', 'list', '--failed'))).toContain(eventId);
});

test('a rejected message is listed', async () => {
  const eventId = await storedEvent(Date.now() - 60_000);
  await pool.query(
    `INSERT INTO mailroom.inbox (consumer, event_id, type, status, fence, attempts, rejected_at, rejected_ids, reason, last_error, fingerprint)
      VALUES ('worker', $1, 'ThingHappened', 'REJECTED', 'f', 1, clock_timestamp(), '{m1}', 'POISON_MESSAGE', 'no such order', 'worker POISON')`,
    [eventId],
  );
  expect(JSON.stringify(await json('messages', 'list'))).toContain('no such order');
});

test('an operation is recorded and listed; every other write is refused', async () => {
  const { table } = mailroom();
  await recordOperation({ table }, { by: 'ada', reason: 'known', command: 'ack', subject: 'x' });
  const { operations } = await json('operations');
  expect(operations).toMatchObject([{ by: 'ada', reason: 'known', command: 'ack', subject: 'x' }]);
  await expect(table.write({ Put: { Item: { PK: 'DEAD#00', SK: 'x' } } })).rejects.toMatchObject({
    code: 'NOT_IN_POSTGRES',
  });
  await expect(table.transact([])).rejects.toMatchObject({ code: 'NOT_IN_POSTGRES' });
  await expect(table.updateEach([])).rejects.toMatchObject({ code: 'NOT_IN_POSTGRES' });
});

test('requeues dead events, and says who did it', async () => {
  const eventId = await deadEvent();
  const other = mintEventId(Date.now(), 256);
  const { io, written } = capturedIo();
  const argv = ['postgres', 'requeue', eventId, other, '--reason', 'the bus is back'];
  await runMailroom([...argv, '--database', server.url, '--json'], io);
  expect(JSON.parse(written.out)).toMatchObject({ requeued: [eventId], notDead: [other] });
  expect((await json('status')).outbox).toMatchObject({ pending: 1, dead: 0 });
  const { operations } = await json('operations');
  expect(operations).toMatchObject([{ command: 'postgres requeue', subject: eventId, by: 'postgres' }]);
});

test('a page continues after its cursor', async () => {
  const at = Date.now() - 60_000;
  const ids = await Promise.all([1, 2, 3].map(() => storedEvent(at)));
  for (const id of ids) await pool.query('INSERT INTO mailroom.pending (event_id) VALUES ($1)', [id]);
  const { table } = mailroom();
  const pk = `OUTBOX#${new Date(at).toISOString().slice(0, 16)}#00`;
  const first = await table.query({ pk, skPrefix: 'EVENT#', limit: 2 });
  const rest = await table.query({ pk, skPrefix: 'EVENT#', limit: 2, cursor: first.cursor });
  const found = [...first.items, ...rest.items].map(({ SK }) => String(SK).slice('EVENT#'.length));
  expect(found).toEqual(ids.toSorted());
  expect(rest.cursor).toBeUndefined();
});

test('doctor finds a stuck event, a login without timeouts, and a slot without a limit', async () => {
  const eventId = await storedEvent(Date.now() - 900_000);
  await pool.query(
    `INSERT INTO mailroom.pending (event_id, due_at) VALUES ($1, clock_timestamp() - interval '10 min')`,
    [eventId],
  );
  await pool.query('CREATE ROLE careless LOGIN; GRANT mailroom_producer TO careless');
  await pool.query(`SELECT pg_create_physical_replication_slot('cdc', true)`);
  const found = await runChecks(postgresChecks(postgres, () => Date.now()));
  expect(found.problems.map(({ problem }) => problem)).toEqual([
    'pending-stuck',
    'slot-unlimited',
    'login-timeouts',
  ]);
  const [, , login] = found.problems;
  expect(login?.fix).toEqual(['npx', 'cdk-mailroom', 'postgres', 'grant', 'careless', '--role', 'producer']);
  await pool.query(`SELECT pg_drop_replication_slot('cdc'); DROP ROLE careless; TRUNCATE mailroom.pending`);
  expect((await runChecks(postgresChecks(postgres, () => Date.now()))).problems).toEqual([]);
});
