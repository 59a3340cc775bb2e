import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { postgresSlotProblems } from '../../cli/reports/checks/postgres-slot-checks.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { postgresMailroomRows } from '../../lambdas/runtime/store/postgres/mailroom-rows.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

const SLOT = 'mailroom';
const WEEK_AGO = 7 * 24 * 3_600_000;

let rig: Rig;
let connector: Pool;

beforeAll(async () => {
  rig = await startRig('capture', { wal_level: 'logical', max_slot_wal_keep_size: '16MB' });
  await rig.pool.query('CREATE ROLE debezium LOGIN REPLICATION');
  await grantPostgresRole(rig.database, { login: 'debezium', role: 'mailroom_connector' });
  connector = new Pool({ connectionString: rig.server.url.replace('postgres@', 'debezium@') });
});

beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots');
  await rig.pool.query('TRUNCATE mailroom.capture');
});

afterAll(async () => {
  await connector.end();
  await rig.close();
});

const outboxAt = (now?: number) =>
  createPostgresOutbox<PgClient>({
    config: PRODUCER,
    database: nodePostgres(rig.pool),
    relay: 'cdc',
    telemetry: memoryTelemetry(),
    ...(now !== undefined && { clock: { now: () => now, sleep: async () => {} } }),
  });

const commit = async (n: number, now?: number) => {
  const [event] = await outboxAt(now).commit(async () => [placed(n)]);
  return event?.eventId ?? '';
};

const createSlot = () => rig.pool.query("SELECT pg_create_logical_replication_slot($1, 'pgoutput')", [SLOT]);

/** Confirms what is in the log, as a connector does that has sent it. */
const confirm = () => rig.pool.query('SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())', [SLOT]);

/** Runs the retention as the connector's heartbeat does. */
const retain = async (days = 1) => {
  const { rows } = await connector.query(
    "SELECT mailroom.delete_captured($1, $2::int * interval '1 day')::int AS deleted",
    [SLOT, days],
  );
  return rows[0]?.deleted;
};

const problems = async () => {
  const read = async (text: string) => (await rig.pool.query(text)).rows;
  const found: { problem: string; text: string }[] = [];
  for (const find of postgresSlotProblems({ read } as never, Date.now))
    for await (const one of find()) found.push(one);
  return found;
};

test("with relay 'cdc', a commit writes the event, its aggregate, and no place in the queue", async () => {
  const id = await commit(1);
  expect(await rig.rows('SELECT event_id::text, published_by, aggregate_type FROM mailroom.event')).toEqual([
    { event_id: id, published_by: 'cdc', aggregate_type: 'order' },
  ]);
  expect(await rig.rows('SELECT FROM mailroom.pending')).toEqual([]);
  const stored = await postgresMailroomRows(nodePostgres(rig.pool)).outbox.byId(id);
  expect(stored).toMatchObject({ status: 'PUBLISHED', publishedBy: 'cdc' });
});

test('an event that change data capture cannot publish is refused before anything is sent', async () => {
  const refused = (draft: object) =>
    expect(outboxAt().commit(async () => [{ ...placed(1), ...draft }])).rejects.toMatchObject({
      code: 'INVALID_EVENT',
    });
  await refused({ deliverAt: Date.now() + 60_000 });
  await refused({ aggregateId: 'x'.repeat(1_025) });
  await refused({ aggregateId: '\u0000' });
  expect(await rig.rows('SELECT FROM mailroom.event')).toEqual([]);
  expect(() =>
    createPostgresOutbox({ config: PRODUCER, database: rig.database, relay: 'kafka' as 'cdc' }),
  ).toThrow(/relay is "kafka"/);
});

test('a row without a key, or with one that is too long, is refused by the database', async () => {
  const insert = (type: string | null, id: string | null) =>
    rig.pool.query(
      `INSERT INTO mailroom.event (event_id, source, type, envelope, aggregate_type, aggregate_id, published_by)
       VALUES ('019b76da-a800-7000-8000-000000000001', 'orders', 'Placed', '{}', $1, $2, 'cdc')`,
      [type, id],
    );
  for (const [type, id] of [
    [null, 'a'],
    ['a', null],
    ['', 'a'],
    ['a', 'x'.repeat(1_025)],
  ] as const)
    await expect(insert(type, id)).rejects.toMatchObject({ code: '23514' });
});

test('a connector reads only the events that are left to it, and calls only its retention', async () => {
  await rig.outbox.commit(async () => [placed(1)]);
  const id = await commit(2);
  const { rows } = await connector.query('SELECT event_id::text AS id FROM mailroom.event');
  expect(rows).toEqual([{ id }]);
  await expect(connector.query('SELECT FROM mailroom.inbox')).rejects.toMatchObject({ code: '42501' });
  await expect(connector.query('DELETE FROM mailroom.event')).rejects.toMatchObject({ code: '42501' });
  await expect(connector.query("SELECT mailroom.delete_captured('x', interval '1 s')")).rejects.toMatchObject(
    {
      code: '22023',
    },
  );
});

test('an event is deleted after its retention, once the slot has confirmed a position read after its commit', async () => {
  await createSlot();
  const old = await commit(1, Date.now() - WEEK_AGO);
  const young = await commit(2);
  expect(await retain()).toBe(0); // the first reading of the position
  expect(await retain()).toBe(0); // nothing is confirmed
  await confirm();
  expect(await retain()).toBe(1);
  expect(await rig.rows('SELECT event_id::text AS id FROM mailroom.event')).toEqual([{ id: young }]);
  expect(old < young).toBe(true);
});

test('nothing is deleted while a second slot has not confirmed it', async () => {
  await createSlot();
  await commit(1, Date.now() - WEEK_AGO);
  await rig.pool.query("SELECT pg_create_logical_replication_slot('second', 'pgoutput')");
  await rig.pool.query(
    "INSERT INTO mailroom.capture (slot, lsn, lsn_at) VALUES ('second', pg_current_wal_lsn(), clock_timestamp())",
  );
  await retain();
  await confirm();
  expect(await retain()).toBe(0);
});

test('a slot that was lost deletes nothing, and is a finding with its remedy', async () => {
  await createSlot();
  await commit(1, Date.now() - WEEK_AGO);
  await retain();
  for (let round = 0; round < 4; round += 1)
    await rig.pool.query('SELECT pg_switch_wal(), pg_logical_emit_message(false, $1, repeat($2, 1000000))', [
      'fill',
      'x',
    ]);
  await rig.pool.query('CHECKPOINT');
  const lost = await rig.rows('SELECT wal_status FROM pg_replication_slots');
  expect(lost).toEqual([{ wal_status: 'lost' }]);
  expect(await retain()).toBe(0);
  const found = await problems();
  expect(found.map(({ problem }) => problem)).toEqual(['slot-lost', 'capture-behind']);
  expect(found[0]?.text).toContain('drop the slot');
});

test('events that no slot reads are a finding', async () => {
  await commit(1, Date.now() - WEEK_AGO);
  const found = await problems();
  expect(found).toMatchObject([{ problem: 'capture-behind' }]);
  expect(found[0]?.text).toContain('no replication slot');
});
