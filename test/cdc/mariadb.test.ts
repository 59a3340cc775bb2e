import { createPool, type PoolConnection } from 'mysql2/promise';
import { afterAll, beforeAll, expect, inject, onTestFinished, type TestContext, test } from 'vitest';
import { MYSQL_SQL } from '../../cli/commands/cdc-mysql.ts';
import { createMysqlOutbox, migrateMysql, mysql2 } from '../../lambdas/runtime/mysql.ts';
import { captureProblems } from '../../lambdas/runtime/store/mysql/capture-check.ts';
import { poll } from '../../localstack/health.ts';
import { memoryTelemetry } from '../../testing/index.ts';
import { report } from '../brokers/receipts.ts';
import { type KafkaBroker, startKafka } from '../brokers/servers/kafka-broker.ts';
import { startMariadb } from '../mysql/server/mariadb-server.ts';
import { connectorOf, consuming, DEADLINE_MS, PRODUCER, producing, topicOf } from './cdc-rig.ts';
import { type ConnectWorker, startConnect } from './connect-worker.ts';

let kafka: KafkaBroker;
let connect: ConnectWorker;

beforeAll(async () => {
  kafka = await startKafka(inject('kafka') ?? '', 'cdc-maria-kafka');
  connect = await startConnect(inject('connectMariadb'), kafka.address);
});

afterAll(async () => {
  await connect?.close();
  await kafka?.close();
});

/** A server with its connector, as the documentation sets them up. */
async function captured(name: string) {
  const mariadb = await startMariadb(`cdc-${name}`, {
    'log-bin': 'binlog',
    'binlog-format': 'ROW',
    'binlog-row-image': 'FULL',
    'server-id': '1',
    'sync-binlog': '1',
  });
  const pool = createPool({ host: '127.0.0.1', port: mariadb.port, user: 'root', connectionLimit: 20 });
  onTestFinished(async () => {
    await pool.end();
    await mariadb.close();
  });
  const database = mysql2(pool);
  await migrateMysql(database);
  const statements = MYSQL_SQL.replace('<password>', 'unused').split(';');
  for (const text of statements) if (text.trim() !== '') await pool.query(text);
  await pool.query('CREATE DATABASE shop');
  await pool.query('CREATE TABLE shop.orders (id INT PRIMARY KEY) ENGINE=InnoDB');
  const outbox = createMysqlOutbox<PoolConnection>({
    config: PRODUCER,
    database,
    relay: 'cdc',
    telemetry: memoryTelemetry(),
  });
  const insert = (tx: PoolConnection, id: number) => tx.query('INSERT INTO shop.orders VALUES (?)', [id]);
  const topic = await topicOf(kafka.address, name);
  await connect.create(await connectorOf(`mariadb://debezium@127.0.0.1:${mariadb.port}`, name));
  const consumer = await consuming(topic, connect);
  return {
    name,
    mariadb,
    database,
    consumer,
    ...producing({ ...outbox, insert }),
    rows: async (text: string, ...values: unknown[]) =>
      (await pool.query(text, values))[0] as Record<string, unknown>[],
  };
}

type Captured = Awaited<ReturnType<typeof captured>>;

/** Compares the events with the effects. */
async function compare(context: TestContext, scenario: string, { sent, consumer }: Captured, more = {}) {
  await consumer.stop();
  const figures = { deliveries: consumer.deliveries(), ...more };
  const receipt = await report(context, { broker: 'Debezium', scenario, figures }, sent, consumer.effects);
  expect(consumer.dead).toEqual([]);
  expect(receipt).toMatchObject({
    lost: 0,
    outOfOrder: 0,
    received: receipt.distinct,
    distinct: receipt.sent,
  });
}

test('restarts of the connector, of Connect and of MariaDB lose nothing, and double no effect', async (context) => {
  const db = await captured('maria');
  const { sent, produce, consumer, mariadb } = db;
  await produce(40);
  await consumer.until(sent.length);
  const producing = produce(60);
  await connect.restart(db.name);
  await producing;
  const more = produce(60);
  await connect.kill();
  await more;
  await connect.start();
  await connect.running(db.name);
  await mariadb.kill();
  await mariadb.recover();
  await produce(60);
  const { state } = await connect.state(db.name);
  if (state !== 'RUNNING') await connect.restart(db.name);
  await consumer.until(sent.length);
  const beat = await poll(
    DEADLINE_MS,
    async () => (await db.rows('SELECT connector FROM mailroom.capture'))[0],
  );
  expect(beat).toEqual({ connector: db.name });
  await compare(context, 'MariaDB: restarts', db);
});

test('a position that was purged is a finding, and the snapshot after it loses nothing and doubles no effect', async (context) => {
  const db = await captured('purged');
  const { sent, produce, consumer, rows } = db;
  const binlogs = async () => (await rows('SHOW BINARY LOGS')).map(({ Log_name }) => Log_name);
  const until = async (condition: () => Promise<boolean>) =>
    expect(await poll(DEADLINE_MS, async () => (await condition()) || undefined)).toBe(true);
  await produce(20);
  await consumer.until(sent.length);
  const beats = () => rows('SELECT connector FROM mailroom.capture');
  await until(async () => (await beats()).length === 1);
  await connect.pause(db.name);
  const stopped = async () => (await connect.state(db.name)).state === 'STOPPED';
  await until(stopped);
  const held = (await binlogs()).at(-1);
  await produce(20);
  // The server keeps a file while a reader has it open, whose end it notices when it sends the next event, and while InnoDB needs it after a crash.
  await until(async () => {
    await rows('FLUSH BINARY LOGS');
    await rows('PURGE BINARY LOGS TO ?', (await binlogs()).at(-1));
    return !(await binlogs()).includes(held);
  });
  await rows(
    'UPDATE mailroom.capture SET beat_at = beat_at - INTERVAL 2 DAY, since = since - INTERVAL 9 DAY',
  );
  await rows('SET GLOBAL binlog_expire_logs_seconds = 86400');
  const [problem] = await captureProblems(db.database);
  expect(problem?.text).toContain('its position is lost');
  const before = consumer.deliveries();
  const snapshot = sent.length;
  await connect.resume(db.name);
  await until(async () => /GTID state.*purged/.test((await connect.state(db.name)).trace ?? ''));
  await connect.pause(db.name);
  await until(stopped);
  await connect.forget(db.name);
  await connect.resume(db.name);
  await connect.running(db.name);
  await consumer.until(sent.length);
  await produce(20);
  await consumer.until(sent.length);
  const deliveriesAfterLoss = consumer.deliveries() - before;
  await compare(context, 'MariaDB: position purged', db, { deliveriesAfterLoss });
  expect(deliveriesAfterLoss).toBeGreaterThanOrEqual(snapshot);
});
