import { createPool, type Pool } from 'mysql2/promise';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { migrateMysql } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { eventClaim } from '../../lambdas/runtime/store/mysql/outbox-claim.ts';
import { startMariadb } from '../../test/mysql/server/mariadb-server.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import {
  type BenchDatabase,
  type BenchServer,
  PRODUCER,
  PRODUCER_CONNECTIONS,
  RELAY,
  RELAY_CONNECTIONS,
} from '../sql/database.ts';

/** As for PostgreSQL: memory for all rows, a long log, and a second log of changes for other readers. */
const SETTINGS = {
  'innodb-buffer-pool-size': '512M',
  'innodb-log-file-size': '512M',
  'log-bin': 'binlog',
  'binlog-format': 'ROW',
  'sync-binlog': '1',
  'max-connections': '200',
};

/** Rows of one statement that fills a table. */
const FILLED_AT_ONCE = 50_000;

/** MariaDB. A server has only one Mailroom, so each database is on its own. */
export const mariadb: BenchServer = {
  name: 'mysql',
  title: 'a MariaDB',
  run: async (use) => {
    const opened: BenchDatabase[] = [];
    try {
      return await use(async () => {
        const database = await openDatabase();
        opened.push(database);
        return database;
      });
    } finally {
      for (const { close } of opened) await close();
    }
  },
};

async function openDatabase(): Promise<BenchDatabase> {
  const server = await startMariadb('bench-mysql', SETTINGS);
  const pools: Pool[] = [];
  let statements = 0;
  const poolOf = (connectionLimit: number): Pool => {
    const pool = createPool({ host: '127.0.0.1', port: server.port, user: 'root', connectionLimit });
    pool.on('connection', (connection) => {
      const query = connection.query.bind(connection) as (...args: unknown[]) => unknown;
      const counted = (...args: unknown[]) => {
        statements += 1;
        return query(...args);
      };
      Object.assign(connection, { query: counted });
    });
    pools.push(pool);
    return pool;
  };
  const pool = poolOf(PRODUCER_CONNECTIONS);
  const database = mysql2(pool);
  await migrateMysql(database);
  const numberOf = async (text: string, ...values: unknown[]) => {
    const [rows] = await pool.query(text, values);
    return Number((rows as { readonly n: unknown }[])[0]?.n);
  };
  let isOpen = true;
  return {
    outbox: createMysqlOutbox({ config: PRODUCER, database }),
    relayOf: (bus, { orderBy } = {}) =>
      createMysqlRelay({
        config: { ...RELAY, orderBy },
        database: mysql2(poolOf(RELAY_CONNECTIONS)),
        bus,
        telemetry: memoryTelemetry(),
      }),
    inOrder: () => ({
      claim: eventClaim({ config: { ...RELAY, orderBy: 'aggregate' }, database, clock: systemClock }),
      countPutOff: () => numberOf('SELECT COUNT(*) AS n FROM mailroom.pending WHERE waits_for IS NOT NULL'),
      putOff: async () => {
        await pool.query('UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6) + INTERVAL 1 HOUR');
        await pool.query('ANALYZE TABLE mailroom.pending');
      },
      makeFirstDue: () =>
        pool.query(
          'UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6), fence = NULL, waits_for = NULL ORDER BY ordinal LIMIT 1',
        ),
    }),
    analyze: () => pool.query('ANALYZE TABLE mailroom.pending'),
    holdSnapshot: async () => {
      const holder = await pool.getConnection();
      await holder.query('START TRANSACTION WITH CONSISTENT SNAPSHOT');
      return async () => holder.destroy();
    },
    // The log of InnoDB, which makes a commit durable, and the binary log.
    logBytes: () =>
      numberOf(
        "SELECT SUM(VARIABLE_VALUE) AS n FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME IN ('innodb_lsn_current', 'binlog_bytes_written')",
      ),
    bytesOf: (...tables) =>
      numberOf(
        'SELECT SUM(FILE_SIZE) AS n FROM information_schema.INNODB_SYS_TABLESPACES WHERE NAME IN (?)',
        tables.map((table) => `mailroom/${table}`),
      ),
    writePublished: async (events) => {
      for (let from = 0; from < events; from += FILLED_AT_ONCE) {
        await pool.query(
          `INSERT INTO mailroom.event (event_id, source, type, aggregate_type, aggregate_id, envelope)
            SELECT UNHEX(CONCAT(LPAD(HEX(seq), 12, '0'), '7', SUBSTR(MD5(seq), 1, 19))), 'orders', 'Placed', 'order', seq, CONCAT('{"x":"', REPEAT('x', 992), '"}')
            FROM mailroom.seq_${from + 1}_to_${Math.min(events, from + FILLED_AT_ONCE)}`,
        );
      }
      await pool.query(
        'INSERT INTO mailroom.published (event_id, published_at) SELECT event_id, UTC_TIMESTAMP(6) - INTERVAL 30 DAY FROM mailroom.event',
      );
      await pool.query('ANALYZE TABLE mailroom.event, mailroom.published');
    },
    countPublished: () => numberOf('SELECT COUNT(*) AS n FROM mailroom.published'),
    statements: () => statements,
    close: async () => {
      if (!isOpen) return;
      isOpen = false;
      await Promise.all(pools.map((each) => each.end()));
      await server.close();
    },
  };
}
