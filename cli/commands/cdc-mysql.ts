import { createHash } from 'node:crypto';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { MYSQL_ADDRESS } from '../../lambdas/runtime/mysql/mysql-url.ts';
import { isLoopback, readDatabaseUrl } from '../../lambdas/runtime/store/sql/database-address.ts';
import { type ConnectorOptions, commonConfig, env } from './cdc-connector.ts';

/** The name or the URL of a MySQL or MariaDB database. */
const KIND = /^(mysql|mariadb)\b/;

/** Returns true for a database that is MySQL or MariaDB. */
export function isMysql(database: string): boolean {
  return KIND.test(database);
}

/**
 * The configuration of a Debezium connector for MySQL or MariaDB.
 *
 * - Locks of the snapshot stay as they are: without them, an event that commits between the snapshot and the reading of its position is lost.
 * - The history of the schema has its own topic, without which the connector cannot start again.
 *
 * @throws `BAD_MYSQL`
 */
export function mysqlConfig(options: ConnectorOptions): Readonly<Record<string, string>> {
  const { database, name, retentionDays } = options;
  const isMariadb = database.startsWith('mariadb');
  return {
    'connector.class': isMariadb
      ? 'io.debezium.connector.mariadb.MariaDbConnector'
      : 'io.debezium.connector.mysql.MySqlConnector',
    ...addressOf(database, isMariadb),
    'database.server.id': String(serverIdOf(name)),
    'database.include.list': 'mailroom',
    'table.include.list': 'mailroom.captured',
    'include.schema.changes': 'false',
    'schema.history.internal.kafka.bootstrap.servers': env('KAFKA_BOOTSTRAP_SERVERS'),
    'schema.history.internal.kafka.topic': `__debezium-schema-history.${name}`,
    'schema.history.internal.store.only.captured.tables.ddl': 'true',
    'snapshot.locking.mode': 'minimal',
    'heartbeat.action.query': `CALL mailroom.delete_captured('${name}', ${retentionDays})`,
    ...commonConfig(options),
  };
}

/** The statements that the owner of the database runs before the connector is created. */
export const MYSQL_SQL = `-- The server needs log_bin, binlog_format = ROW, binlog_row_image = FULL, a server_id, and a binlog that is kept for longer than the
-- connector may be away: binlog_expire_logs_seconds, or on RDS CALL mysql.rds_set_configuration('binlog retention hours', 168).
CREATE USER 'debezium'@'%' IDENTIFIED BY '<password>';
GRANT SELECT ON mailroom.captured TO 'debezium'@'%';
GRANT EXECUTE ON PROCEDURE mailroom.delete_captured TO 'debezium'@'%';
-- For its snapshots, which lock for a moment, and for the binlog.
GRANT LOCK TABLES ON mailroom.* TO 'debezium'@'%';
GRANT RELOAD, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'debezium'@'%';`;

/** A connector reads as a replica, whose number is unique in its topology: one of a billion, the same for each name. */
function serverIdOf(name: string): number {
  return 1_000_000_000 + (createHash('sha256').update(name).digest().readUInt32BE() % 1_000_000_000);
}

/** @throws `BAD_MYSQL` */
function addressOf(database: string, isMariadb: boolean): Readonly<Record<string, string>> {
  const password = env('MYSQL_PWD');
  const modes = isMariadb ? MARIADB_TLS : MYSQL_TLS;
  if (/^(mysql|mariadb)$/.test(database))
    return {
      'database.hostname': env('MYSQL_HOST'),
      'database.port': env('MYSQL_TCP_PORT'),
      'database.user': env('MYSQL_USER'),
      'database.password': password,
      'database.ssl.mode': modes.host,
    };
  const bad = (problem: string) =>
    new MailroomError(
      'BAD_MYSQL',
      `--database cannot be used: ${problem}. Set it to mysql, mariadb, or mysql://<user>@<host>:<port>; the password is that of MYSQL_PWD in the environment of the Connect worker.`,
    );
  if (/[?&]ssl-ca=/.test(database))
    throw bad(
      'ssl-ca names a file of this machine, and connectors read certificates from a trust store of the Connect worker. Leave it out, and set database.ssl.truststore of the connector, or add the certificates to the trust store of its Java',
    );
  const {
    host,
    port = '3306',
    user,
    password: given,
    ssl = !isLoopback(host),
    verifyHost,
  } = readDatabaseUrl(MYSQL_ADDRESS, database, bad);
  if (host === '') throw bad('it has no host');
  if (user === undefined) throw bad('it has no user');
  if (given !== undefined) throw bad('it has a password, which Connect would store and show');
  return {
    'database.hostname': host,
    'database.port': port,
    'database.user': user,
    'database.password': password,
    'database.ssl.mode': modes[ssl ? (verifyHost === false ? 'ca' : 'host') : 'none'],
  };
}

/** Values of `database.ssl.mode`, in which the two connectors differ. */
const MARIADB_TLS = { none: 'disable', ca: 'verify-ca', host: 'verify-full' } as const;
const MYSQL_TLS = { none: 'disabled', ca: 'verify_ca', host: 'verify_identity' } as const;
