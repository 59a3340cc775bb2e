import { Pool } from 'pg';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { postgresSlotProblems } from '../../cli/reports/checks/postgres-slot-checks.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { grantPostgresRole, migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { poll } from '../../localstack/health.ts';
import { memoryTelemetry } from '../../testing/index.ts';
import { report } from '../brokers/receipts.ts';
import { type KafkaBroker, startKafka } from '../brokers/servers/kafka-broker.ts';
import { type PostgresServer, startPostgres } from '../postgres/server/postgres-server.ts';
import { connectorOf, consuming, DEADLINE_MS, PRODUCER, producing, topicOf } from './cdc-rig.ts';
import { type ConnectWorker, startConnect } from './connect-worker.ts';

let postgres: PostgresServer;
let kafka: KafkaBroker;
let connect: ConnectWorker;
let pool: Pool;

beforeAll(async () => {
  postgres = await startPostgres('cdc', {
    wal_level: 'logical',
    max_wal_senders: '10',
    max_slot_wal_keep_size: '512MB',
    wal_sender_timeout: '10s',
  });
  kafka = await startKafka(inject('kafka') ?? '', 'cdc-kafka');
  connect = await startConnect(inject('connect'), kafka.address);
});

afterAll(async () => {
  await connect?.close();
  await kafka?.close();
  await pool?.end();
  await postgres?.close();
});

/** A database with its connector, as the documentation sets one up. */
async function captured(name: string) {
  const admin = new Pool({ connectionString: postgres.url });
  await admin.query(`CREATE DATABASE ${name}`);
  await admin.query('CREATE ROLE debezium LOGIN REPLICATION').catch(() => {});
  await admin.end();
  pool = new Pool({ connectionString: postgres.url.replace(/postgres$/, name), max: 10 });
  pool.on('error', () => {});
  const database = nodePostgres(pool);
  await migratePostgres(database);
  await grantPostgresRole(database, { login: 'debezium', role: 'mailroom_connector' });
  await pool.query(
    `CREATE PUBLICATION ${name} FOR TABLE mailroom.event WHERE (published_by = 'cdc') WITH (publish = 'insert')`,
  );
  await pool.query('CREATE TABLE orders (id int PRIMARY KEY)');
  const outbox = createPostgresOutbox<PgClient>({
    config: PRODUCER,
    database,
    relay: 'cdc',
    telemetry: memoryTelemetry(),
  });
  const insert = (tx: PgClient, id: number) => tx.query('INSERT INTO orders VALUES ($1)', [id]);
  const topic = await topicOf(kafka.address, name);
  const connector = await connectorOf(`postgresql://debezium@127.0.0.1:${postgres.port}/${name}`, name);
  return { ...topic, connector, ...producing({ ...outbox, insert }) };
}

test('restarts of the connector, of Connect and of the database lose nothing, and double no effect', async (context) => {
  const db = await captured('restarts');
  await connect.create(db.connector);
  const consumer = await consuming(db, connect);
  await db.produce(40);
  await consumer.until(db.sent.length);
  const producing = db.produce(60);
  await connect.restart(db.name);
  await producing;
  const more = db.produce(60);
  await connect.kill();
  await more;
  await connect.start();
  await connect.running(db.name);
  await postgres.kill();
  await postgres.recover();
  await db.produce(60);
  const state = await connect.state(db.name);
  if (state.state !== 'RUNNING') await connect.restart(db.name);
  await consumer.until(db.sent.length);
  await consumer.stop();
  const figures = { deliveries: consumer.deliveries() };
  const receipt = await report(
    context,
    { broker: 'Debezium', scenario: 'restarts', figures },
    db.sent,
    consumer.effects,
  );
  expect(consumer.dead).toEqual([]);
  expect(receipt).toMatchObject({
    lost: 0,
    outOfOrder: 0,
    received: receipt.distinct,
    distinct: receipt.sent,
  });
});

test('a quiet database beside a busy one holds back little of the log, and its retention runs', async (context) => {
  const db = await captured('quiet');
  await connect.create(db.connector);
  const consumer = await consuming(db, connect);
  await db.produce(2);
  await consumer.until(db.sent.length);
  const busy = new Pool({ connectionString: postgres.url });
  const position = async () => (await busy.query('SELECT pg_current_wal_lsn() AS lsn')).rows[0].lsn;
  const before = await position();
  await busy.query('CREATE TABLE noise (text text)');
  for (let round = 0; round < 30; round += 1)
    await busy.query('INSERT INTO noise SELECT repeat(md5(i::text), 30) FROM generate_series(1, 8000) i');
  const written = (
    await busy.query('SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), $1)::float8 AS bytes', [before])
  ).rows[0].bytes;
  const held = async () =>
    (
      await busy.query(
        "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::float8 AS bytes FROM pg_replication_slots WHERE slot_name = 'quiet'",
      )
    ).rows[0].bytes;
  let least = Number.POSITIVE_INFINITY;
  await poll(DEADLINE_MS, async () => {
    least = await held();
    return least < written / 20 || undefined;
  });
  const seen = await poll(
    DEADLINE_MS,
    async () =>
      (
        await pool.query(
          "SELECT captured_until FROM mailroom.capture WHERE slot = 'quiet' AND captured_until IS NOT NULL",
        )
      ).rows[0],
  );
  await busy.end();
  await consumer.stop();
  const figures = { otherLogBytes: written, unconfirmedBytes: least };
  const receipt = await report(
    context,
    { broker: 'Debezium', scenario: 'quiet beside busy', figures },
    db.sent,
    consumer.effects,
  );
  expect(written).toBeGreaterThan(200_000_000);
  expect(least).toBeLessThan(written / 20);
  expect(seen).toBeDefined();
  expect(receipt).toMatchObject({ lost: 0, outOfOrder: 0, received: receipt.sent });
});

test('a slot that was lost is a finding, and the snapshot after it loses nothing and doubles no effect', async (context) => {
  const db = await captured('capped');
  await connect.create(db.connector);
  const consumer = await consuming(db, connect);
  await db.produce(20);
  await consumer.until(db.sent.length);
  await connect.pause(db.name);
  await db.produce(20);
  const state = async () =>
    (await pool.query("SELECT wal_status, active FROM pg_replication_slots WHERE slot_name = 'capped'"))
      .rows[0];
  await poll(DEADLINE_MS, async () => (await state()).active === false || undefined);
  for (let round = 0; round < 40; round += 1)
    await pool.query("SELECT pg_switch_wal(), pg_logical_emit_message(false, 'fill', repeat('x', 1000000))");
  await pool.query('CHECKPOINT');
  expect(await state()).toEqual({ wal_status: 'lost', active: false });
  const read = async (text: string) => (await pool.query(text)).rows;
  const problems: string[] = [];
  for (const find of postgresSlotProblems({ read } as never, Date.now))
    for await (const { problem } of find()) problems.push(problem);
  expect(problems).toContain('slot-lost');
  await pool.query("SELECT pg_drop_replication_slot('capped')");
  const before = consumer.deliveries();
  await connect.resume(db.name);
  await connect.running(db.name);
  await consumer.until(db.sent.length);
  await db.produce(20);
  await consumer.until(db.sent.length);
  await consumer.stop();
  const figures = { deliveriesAfterLoss: consumer.deliveries() - before };
  const receipt = await report(
    context,
    { broker: 'Debezium', scenario: 'slot lost', figures },
    db.sent,
    consumer.effects,
  );
  expect(consumer.dead).toEqual([]);
  expect(receipt).toMatchObject({
    lost: 0,
    outOfOrder: 0,
    received: receipt.distinct,
    distinct: receipt.sent,
  });
});
