import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { migrateMysql, SCHEMA_VERSION, schemaVersion } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { TABLES } from '../../lambdas/runtime/store/mysql/schema.ts';
import { serverProblems } from '../../lambdas/runtime/store/mysql/server-check.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { changedDatabase } from './support/changed-database.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-migrate', { 'log-bin': 'binlog' });
});

afterAll(() => rig.close());

beforeEach(async () => {
  await rig.pool.query('DROP DATABASE IF EXISTS mailroom');
});

describe('the schema of MySQL', () => {
  test('is made by any number of concurrent migrations, in all tables of InnoDB and utf8mb4', async () => {
    const migrated = await Promise.all([1, 2, 3, 4].map(() => migrateMysql(rig.database)));
    expect(migrated.toSorted((a, b) => a.from - b.from)).toEqual(
      [0, SCHEMA_VERSION, SCHEMA_VERSION, SCHEMA_VERSION].map((from) => ({ from, to: SCHEMA_VERSION })),
    );
    const tables = await rig.rows(
      "SELECT TABLE_NAME AS name, ENGINE AS engine, TABLE_COLLATION AS collation FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mailroom'",
    );
    expect(tables.toSorted((a, b) => String(a.name).localeCompare(String(b.name)))).toEqual(
      TABLES.toSorted().map((name) => ({ name, engine: 'InnoDB', collation: 'utf8mb4_bin' })),
    );
    expect(await schemaVersion(rig.database)).toBe(SCHEMA_VERSION);
  });

  test('of a newer version is refused', async () => {
    await migrateMysql(rig.database);
    await rig.pool.query('INSERT INTO mailroom.migration VALUES (99, UTC_TIMESTAMP(6))');
    await expect(migrateMysql(rig.database)).rejects.toThrow(
      expect.objectContaining({ code: 'NEWER_SCHEMA' }),
    );
  });

  test('is completed after a migration that ended between two tables', async () => {
    await migrateMysql(rig.database);
    await rig.pool.query('DELETE FROM mailroom.migration');
    await rig.pool.query('DROP TABLE mailroom.effect');
    await migrateMysql(rig.database);
    expect(await rig.rows('SELECT * FROM mailroom.effect')).toEqual([]);
  });

  test('does not take over a table without transactions', async () => {
    await rig.pool.query('CREATE DATABASE mailroom');
    await rig.pool.query('CREATE TABLE mailroom.pending (event_id INT) ENGINE=MyISAM');
    await expect(migrateMysql(rig.database)).rejects.toThrow(
      expect.objectContaining({
        code: 'BAD_DATABASE',
        message: expect.stringContaining('mailroom.pending has the engine MyISAM'),
      }),
    );
  });
});

describe('a table that cannot store every character', () => {
  test('is refused', async () => {
    await migrateMysql(rig.database);
    await rig.pool.query('ALTER TABLE mailroom.event CONVERT TO CHARACTER SET utf8mb3');
    await expect(migrateMysql(rig.database)).rejects.toThrow(
      expect.objectContaining({
        code: 'BAD_DATABASE',
        message: expect.stringContaining('mailroom.event has columns in utf8mb3'),
      }),
    );
  });
});

/** A database whose server does not know SKIP LOCKED, as before MySQL 8.0.1 and MariaDB 10.6. */
const earlier = () =>
  changedDatabase(rig.pool, (query, send) =>
    send({ ...query, sql: query.sql.replace('SKIP LOCKED', 'SKIP') }),
  );

describe('a server without SKIP LOCKED', () => {
  test('has a problem only for a relay that skips locked rows', async () => {
    await migrateMysql(earlier());
    const problems = await serverProblems(earlier());
    expect(problems).toEqual([
      { subject: 'claim', text: expect.stringContaining("Set claim to 'token' for the relay") },
    ]);
    expect(await serverProblems(earlier(), 'token')).toEqual([]);
    expect(await serverProblems(rig.database)).toEqual([]);
  });
});

describe('a server that forgets numbers when it restarts', () => {
  const versions: readonly (readonly [version: string, isRefused: boolean])[] = [
    ['5.7.44-log', true],
    ['5.7.mysql_aurora.2.11.5', true],
    ['10.2.3-MariaDB', true],
    ['10.2.4-MariaDB', false],
    ['5.5.5-10.1.48-MariaDB', true],
    ['8.0.0', false],
    ['8.4.3', false],
    ['11.4.2-MariaDB-log', false],
  ];
  test.each(versions)('%s has a problem with orderBy: %s', async (version, isRefused) => {
    await migrateMysql(rig.database);
    const server = changedDatabase(rig.pool, (query, send) =>
      send({ ...query, sql: query.sql.replace('VERSION()', `'${version}'`) }),
    );
    const found = (await serverProblems(server, 'token', 'aggregate')).map(({ subject }) => subject);
    expect(found).toEqual(isRefused ? ['orderBy'] : []);
    expect(await serverProblems(server, 'token')).toEqual([]);
    const bus = memoryBus();
    const config = { ...relayConfig({ orderBy: 'aggregate' }), claim: 'token' as const };
    const relay = createMysqlRelay({ config, database: server, bus, telemetry: memoryTelemetry() });
    expect((await relay.pass()).failed).toBe(isRefused);
  });
});

describe('a schema of version 3', () => {
  test('gets the order of aggregates, keeps its events, and lets earlier outboxes write; a migration that ended between two statements is completed', async () => {
    await migrateMysql(rig.database);
    const outbox = createMysqlOutbox({
      config: PRODUCER,
      database: rig.database,
      telemetry: memoryTelemetry(),
    });
    const events = await outbox.commit(async () => [placed(1), placed(2)]);
    await rig.pool.query(
      'ALTER TABLE mailroom.pending DROP KEY pending_ordinal, DROP KEY pending_in_aggregate, DROP COLUMN ordinal, DROP COLUMN aggregate_key, DROP COLUMN waits_for',
    );
    await rig.pool.query('DELETE FROM mailroom.migration WHERE version = 4');
    expect(await migrateMysql(rig.database)).toEqual({ from: 3, to: SCHEMA_VERSION });
    await rig.pool.query(
      "INSERT INTO mailroom.event (event_id, source, type, aggregate_type, aggregate_id, envelope) SELECT UNHEX('01a1fba644587a419c373f5d2b8e1103'), source, type, aggregate_type, aggregate_id, envelope FROM mailroom.event LIMIT 1",
    );
    await rig.pool.query(
      "INSERT INTO mailroom.pending (event_id, due_at) VALUES (UNHEX('01a1fba644587a419c373f5d2b8e1103'), UTC_TIMESTAMP(6))",
    );
    const bus = memoryBus();
    const config = relayConfig({ orderBy: 'aggregate' });
    const relay = createMysqlRelay({ config, database: rig.database, bus, telemetry: memoryTelemetry() });
    expect(await relay.pass()).toMatchObject({ published: events.length + 1, failed: false });
  });
});

describe('a relay', () => {
  test('publishes nothing while its server can lose events, and begins once that is put right', async () => {
    await migrateMysql(rig.database);
    const telemetry = memoryTelemetry();
    await createMysqlOutbox({ config: PRODUCER, database: rig.database, telemetry }).commit(async () => [
      placed(1),
    ]);
    const pool = rig.poolOf({ connectionLimit: 1 });
    await pool.query("SET SESSION sql_mode = ''");
    const bus = memoryBus();
    const relay = createMysqlRelay({ config: relayConfig(), database: mysql2(pool), bus, telemetry });
    expect(await relay.pass()).toEqual({ claimed: 0, published: 0, failed: true });
    expect(telemetry.lines()).toMatchObject([{ extra: { error: { code: 'BAD_DATABASE' } } }]);
    await pool.query("SET SESSION sql_mode = 'STRICT_TRANS_TABLES'");
    expect(await relay.pass()).toEqual({ claimed: 1, published: 1, failed: false });
    await pool.end();
  });

  test('without SKIP LOCKED claims by token only', async () => {
    await migrateMysql(rig.database);
    const telemetry = memoryTelemetry();
    const outbox = createMysqlOutbox({ config: PRODUCER, database: rig.database, telemetry });
    await outbox.commit(async () => [placed(1)]);
    const passOf = (claim?: 'token') =>
      createMysqlRelay({
        config: { ...relayConfig(), claim },
        database: earlier(),
        bus: memoryBus(),
        telemetry,
      }).pass();
    expect(await passOf()).toMatchObject({ failed: true });
    expect(await passOf('token')).toMatchObject({ published: 1 });
  });
});

describe('a server with a setting that can lose events', () => {
  const settings: readonly (readonly [set: string, name: string])[] = [
    ["SET SESSION sql_mode = ''", 'sql_mode'],
    ['SET SESSION autocommit = 0', 'autocommit'],
    ["SET SESSION tx_isolation = 'SERIALIZABLE'", 'tx_isolation'],
    ["SET SESSION binlog_format = 'STATEMENT'", 'binlog_format'],
  ];
  test.each(settings)('%s is refused', async (set, name) => {
    const pool = rig.poolOf({ connectionLimit: 1 });
    try {
      await pool.query(set);
      await expect(migrateMysql(mysql2(pool))).rejects.toThrow(
        expect.objectContaining({ code: 'BAD_DATABASE', message: expect.stringContaining(name) }),
      );
      expect(await rig.rows("SHOW DATABASES LIKE 'mailroom'")).toEqual([]);
    } finally {
      await pool.end();
    }
  });

  test.each([
    ['max_allowed_packet', 1024 * 1024, 16 * 1024 * 1024],
    ['read_only', 1, 0],
  ])('%s is refused', async (name, bad, good) => {
    await rig.pool.query(`SET GLOBAL ${name} = ${bad}`);
    const pool = rig.poolOf({ connectionLimit: 1 });
    try {
      await expect(migrateMysql(mysql2(pool))).rejects.toThrow(
        expect.objectContaining({ code: 'BAD_DATABASE', message: expect.stringContaining(name) }),
      );
    } finally {
      await rig.pool.query(`SET GLOBAL ${name} = ${good}`);
      await pool.end();
    }
  });
});
