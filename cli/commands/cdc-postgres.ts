import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { readPostgresUrl } from '../../lambdas/runtime/postgres/postgres-url.ts';
import { isLoopback } from '../../lambdas/runtime/store/sql/database-address.ts';
import { type ConnectorOptions, commonConfig, env } from './cdc-connector.ts';

/**
 * The configuration of a Debezium connector for PostgreSQL. The driver confirms the log between events, too: otherwise a quiet database beside a busy one holds
 * back the log of both.
 *
 * @throws `BAD_POSTGRES`
 */
export function postgresConfig(options: ConnectorOptions): Readonly<Record<string, string>> {
  const { database, name, retentionDays } = options;
  const events = "SELECT * FROM mailroom.event WHERE published_by = 'cdc' ORDER BY event_id";
  return {
    'connector.class': 'io.debezium.connector.postgresql.PostgresConnector',
    ...addressOf(database),
    'plugin.name': 'pgoutput',
    'slot.name': name,
    'publication.name': name,
    'publication.autocreate.mode': 'disabled',
    'table.include.list': 'mailroom.event',
    'snapshot.select.statement.overrides': 'mailroom.event',
    'snapshot.select.statement.overrides.mailroom.event': events,
    'lsn.flush.mode': 'connector_and_driver',
    'heartbeat.action.query': `SELECT mailroom.delete_captured('${name}', interval '${retentionDays} days')`,
    ...commonConfig(options),
  };
}

/** The statements that the owner of the database runs before the connector is created. */
export function postgresSql({ name, slotCap }: ConnectorOptions): string {
  return `-- wal_level must be logical. For RDS and Aurora, set rds.logical_replication = 1 and max_slot_wal_keep_size in the parameter group.
-- The row filter needs PostgreSQL 15. Before, leave WHERE (...) out, and let every outbox of the database have relay: 'cdc'.
CREATE PUBLICATION ${name} FOR TABLE mailroom.event WHERE (published_by = 'cdc') WITH (publish = 'insert');
-- A connector that is stopped holds back the log. At this size its slot is lost: \`doctor\` reports it, and the next snapshot reads the events again.
ALTER SYSTEM SET max_slot_wal_keep_size = '${slotCap}';
SELECT pg_reload_conf();
-- The login of the connector. Then: npx cdk-mailroom postgres grant debezium --role connector
CREATE ROLE debezium LOGIN REPLICATION;`;
}

/** @throws `BAD_POSTGRES` */
function addressOf(database: string): Readonly<Record<string, string>> {
  const password = env('PGPASSWORD');
  const verified = { 'database.sslmode': 'verify-full', 'database.sslrootcert': env('PGSSLROOTCERT') };
  if (/^postgres(ql)?$/.test(database))
    return {
      'database.hostname': env('PGHOST'),
      'database.port': env('PGPORT'),
      'database.dbname': env('PGDATABASE'),
      'database.user': env('PGUSER'),
      'database.password': password,
      ...verified,
    };
  const bad = (problem: string) =>
    new MailroomError(
      'BAD_POSTGRES',
      `--database cannot be used: ${problem}. Set it to postgres, or to postgresql://<user>@<host>:<port>/<database>; the password is that of PGPASSWORD in the environment of the Connect worker.`,
    );
  const {
    host,
    port = '5432',
    database: dbname,
    user,
    password: given,
    ssl = !isLoopback(host),
    verifyHost,
  } = readPostgresUrl(database, bad);
  if (host === '') throw bad('it has no host');
  if (dbname === undefined || user === undefined)
    throw bad(`it has no ${user === undefined ? 'user' : 'database'}`);
  if (given !== undefined) throw bad('it has a password, which Connect would store and show');
  const mode = verifyHost === false ? { ...verified, 'database.sslmode': 'verify-ca' } : verified;
  return {
    'database.hostname': host,
    'database.port': port,
    'database.dbname': dbname,
    'database.user': user,
    'database.password': password,
    ...(ssl ? mode : { 'database.sslmode': 'disable' }),
  };
}
