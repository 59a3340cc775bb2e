import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { readPostgresUrl } from '../../lambdas/runtime/postgres/postgres-url.ts';
import { isLoopback } from '../../lambdas/runtime/store/sql/database-address.ts';

/** The column by which a topic is chosen, or one topic for all events. */
export const TOPICS = {
  'aggregate-type': 'aggregate_type',
  type: 'type',
  source: 'source',
  one: undefined,
} as const;

/** The options of a connector. */
export interface ConnectorOptions {
  /** A `postgresql://` URL, or the name of the database's kind. */
  readonly database: string;
  /** Names the connector, its slot and its publication, and begins its topics. */
  readonly name: string;
  readonly topics: keyof typeof TOPICS;
  readonly retentionDays: number;
  /** The log that the slot may hold back, as PostgreSQL writes it. */
  readonly slotCap: string;
}

/** The interval of heartbeats, milliseconds. */
const HEARTBEAT_MS = 10_000;

const TEXT_CONVERTER = 'org.apache.kafka.connect.storage.StringConverter';

/** A value that the Connect worker reads from its environment: a configuration is stored in a topic, and shown by Connect's API. */
const env = (name: string) => `\${env:${name}}`;

/**
 * The body with which Kafka Connect creates a Debezium connector for the events of `relay: 'cdc'`.
 *
 * - Text converters: an envelope arrives byte for byte, and the key is the aggregate's id, so one partition has all events of an aggregate.
 * - The driver confirms the log between events, too: otherwise a quiet database beside a busy one holds back the log of both.
 * - `when_needed` takes a snapshot when the connector starts without a position, or after its slot was lost. It reads the events that the retention has kept,
 *   in the order of their ids; those that were sent before are duplicates, which an inbox absorbs.
 * - A name that no topic can have goes to `<name>.other`: otherwise Kafka refuses the topic, and the connector stops.
 */
export function connectorOf({ database, name, topics, retentionDays }: ConnectorOptions) {
  const column = TOPICS[topics];
  const events = "SELECT * FROM mailroom.event WHERE published_by = 'cdc' ORDER BY event_id";
  const config = {
    'connector.class': 'io.debezium.connector.postgresql.PostgresConnector',
    'tasks.max': '1',
    ...addressOf(database),
    'plugin.name': 'pgoutput',
    'slot.name': name,
    'publication.name': name,
    'publication.autocreate.mode': 'disabled',
    'table.include.list': 'mailroom.event',
    'skipped.operations': 'u,d,t',
    'tombstones.on.delete': 'false',
    'topic.prefix': name,
    'topic.creation.default.partitions': '-1',
    'topic.creation.default.replication.factor': '-1',
    'snapshot.mode': 'when_needed',
    'snapshot.select.statement.overrides': 'mailroom.event',
    'snapshot.select.statement.overrides.mailroom.event': events,
    'lsn.flush.mode': 'connector_and_driver',
    'heartbeat.interval.ms': String(HEARTBEAT_MS),
    'heartbeat.action.query': `SELECT mailroom.delete_captured('${name}', interval '${retentionDays} days')`,
    'key.converter': TEXT_CONVERTER,
    'value.converter': TEXT_CONVERTER,
    'header.converter': TEXT_CONVERTER,
    transforms: 'outbox,other',
    'transforms.outbox.type': 'io.debezium.transforms.outbox.EventRouter',
    'transforms.outbox.table.field.event.id': 'event_id',
    'transforms.outbox.table.field.event.key': 'aggregate_id',
    'transforms.outbox.table.field.event.payload': 'envelope',
    'transforms.outbox.table.fields.additional.placement':
      'event_id:header:eventId,source:header:source,type:header:type',
    'transforms.outbox.route.by.field': column ?? 'source',
    'transforms.outbox.route.topic.replacement':
      column === undefined ? `${name}.events` : `${name}.\${routedByValue}`,
    'transforms.other.type': 'org.apache.kafka.connect.transforms.RegexRouter',
    'transforms.other.regex': '(?s)(.*[^A-Za-z0-9._-].*|.{250,})',
    'transforms.other.replacement': `${name}.other`,
  };
  return { name, config };
}

/** The statements that the owner of the database runs before the connector is created. */
export function connectorSql({ name, slotCap }: ConnectorOptions): string {
  return `-- wal_level must be logical. For RDS and Aurora, set rds.logical_replication = 1 and max_slot_wal_keep_size in the parameter group.
-- The row filter needs PostgreSQL 15. Before, leave WHERE (...) out, and let every outbox of the database have relay: 'cdc'.
CREATE PUBLICATION ${name} FOR TABLE mailroom.event WHERE (published_by = 'cdc') WITH (publish = 'insert');
-- A connector that is stopped holds back the log. At this size its slot is lost: \`doctor\` reports it, and the next snapshot reads the events again.
ALTER SYSTEM SET max_slot_wal_keep_size = '${slotCap}';
SELECT pg_reload_conf();
-- The login of the connector. Then: npx cdk-mailroom postgres grant debezium --role connector
CREATE ROLE debezium LOGIN REPLICATION;`;
}

/** @throws `BAD_POSTGRES`; `BAD_ARGUMENT` for a database of another kind */
function addressOf(database: string): Readonly<Record<string, string>> {
  const password = env('PGPASSWORD');
  if (/^mysql\b/.test(database))
    throw new MailroomError(
      'BAD_ARGUMENT',
      'Change data capture from MySQL is not supported: its outbox has no mode for it. Use --database postgres, or a postgresql:// URL.',
    );
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
