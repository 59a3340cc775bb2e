import { AGGREGATE_ORDER } from './aggregate-order.ts';
import { CAPTURE_COLUMNS, CAPTURE_TABLES, CAPTURED_COLUMNS, DELETE_CAPTURED } from './capture-schema.ts';

/** One step of the schema, in the order of their versions, which begin at 1. A released step is never changed. */
export interface MysqlMigration {
  readonly version: number;
  /** Each may run again: DDL commits, so a migration can end between two of them. */
  readonly statements: readonly string[];
}

/** Of every table: transactions, and characters of four bytes. */
const TABLE = 'ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin ROW_FORMAT=DYNAMIC';

function table(name: string, columns: string): string {
  return `CREATE TABLE IF NOT EXISTS mailroom.${name} (\n${columns}\n) ${TABLE}`;
}

/** The tables of the schema. */
export const TABLES = [
  'migration',
  'event',
  'pending',
  'published',
  'dead',
  'discarded',
  'cancelled',
  'commit',
  'operation',
  'inbox',
  'effect',
  'inbox_retention',
  'last_sequence',
  ...CAPTURE_TABLES,
] as const;

/** The first statements of a migration. */
export const PREPARE: readonly string[] = [
  'CREATE DATABASE IF NOT EXISTS mailroom DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin',
  table('migration', '  version INT NOT NULL PRIMARY KEY,\n  applied_at DATETIME(6) NOT NULL'),
];

/**
 * The steps of the schema.
 *
 * - `event` is only inserted into and deleted from. Its envelope is text, not JSON: consumers must read it byte for byte.
 * - An event that its bus would never accept is refused here, also past the library: one of 400 MB would outlast every lease. An entry may have
 *   999,999 bytes, of which 14 are its time. MySQL before 8.0.16 has no checks.
 * - `aggregate_type` and `aggregate_id` are keys for readers of the binlog: without a key, they do not keep the order of an aggregate's events.
 * - `pending` is the queue. Events of `captured` have no place in it: a connector reads them from the binlog.
 * - `commit` has a row of each transaction without events, by which its producer recognizes it after a lost answer. It is kept for a day.
 * - `last_sequence` has the last applied sequence of each aggregate at a consumer with an order. Its rows are never deleted.
 * - Times are UTC. No reader follows `ordinal`, the number of an event in its aggregate: it would miss events that commit late.
 * - Keys of text are bytes: collations of MySQL ignore trailing spaces.
 */
export const MIGRATIONS: readonly MysqlMigration[] = [
  {
    version: 1,
    statements: [
      table(
        'event',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  source VARCHAR(256) NOT NULL,
  type VARCHAR(128) NOT NULL,
  aggregate_type MEDIUMTEXT NOT NULL,
  aggregate_id MEDIUMTEXT NOT NULL,
  trace_id VARCHAR(512),
  envelope MEDIUMTEXT NOT NULL,
  CONSTRAINT event_id_is_uuidv7 CHECK (SUBSTR(HEX(event_id), 13, 1) = '7'),
  CONSTRAINT event_is_named CHECK (source <> '' AND type <> ''),
  CONSTRAINT event_is_an_object CHECK (envelope LIKE '{%}'),
  CONSTRAINT event_fits_an_entry
    CHECK (OCTET_LENGTH(envelope) + OCTET_LENGTH(source) + OCTET_LENGTH(type) + COALESCE(OCTET_LENGTH(trace_id), 0) < 999986)`,
      ),
      table(
        'pending',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  due_at DATETIME(6) NOT NULL,
  fence BINARY(16),
  attempts INT NOT NULL DEFAULT 0,
  last_error MEDIUMTEXT,
  CONSTRAINT pending_is_due_after_1970 CHECK (due_at >= '1970-01-01 00:00:00'),
  KEY pending_due_at (due_at),
  KEY pending_fence (fence)`,
      ),
      table(
        'published',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  published_at DATETIME(6) NOT NULL,
  resent_at DATETIME(6),
  KEY published_at (published_at)`,
      ),
      table(
        'dead',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  dead_at DATETIME(6) NOT NULL,
  attempts INT NOT NULL,
  last_error MEDIUMTEXT NOT NULL,
  fingerprint VARCHAR(512) NOT NULL`,
      ),
      table(
        'discarded',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  discarded_at DATETIME(6) NOT NULL,
  operator VARCHAR(512) NOT NULL,
  reason MEDIUMTEXT NOT NULL,
  KEY discarded_at (discarded_at)`,
      ),
      table(
        'cancelled',
        `  event_id BINARY(16) NOT NULL PRIMARY KEY,
  cancelled_at DATETIME(6) NOT NULL,
  KEY cancelled_at (cancelled_at)`,
      ),
      table('commit', '  commit_id BINARY(16) NOT NULL PRIMARY KEY'),
      table(
        'operation',
        `  at DATETIME(6) NOT NULL,
  token VARBINARY(64) NOT NULL,
  operator VARCHAR(512) NOT NULL,
  command VARCHAR(128) NOT NULL,
  subject VARCHAR(512) NOT NULL,
  reason MEDIUMTEXT NOT NULL,
  PRIMARY KEY (at, token)`,
      ),
      table(
        'inbox',
        `  consumer VARBINARY(512) NOT NULL,
  event_id VARBINARY(512) NOT NULL,
  type VARCHAR(128) NOT NULL,
  status VARCHAR(16) NOT NULL,
  fence VARBINARY(64),
  attempts INT NOT NULL DEFAULT 0,
  unfinished INT NOT NULL DEFAULT 0,
  out_of_time BOOLEAN NOT NULL DEFAULT FALSE,
  claimed_at DATETIME(6),
  lease_until DATETIME(6),
  ends_by DATETIME(6),
  retry_at DATETIME(6),
  processed_at DATETIME(6),
  rejected_at DATETIME(6),
  rejected_ids MEDIUMTEXT,
  reason MEDIUMTEXT,
  last_error MEDIUMTEXT,
  fingerprint VARCHAR(512),
  past_attempts MEDIUMTEXT,
  result MEDIUMTEXT,
  run_anyway BOOLEAN NOT NULL DEFAULT FALSE,
  allowed_at DATETIME(6),
  allowed_by VARCHAR(512),
  allowed_reason MEDIUMTEXT,
  resolved_by VARCHAR(512),
  resolved_reason MEDIUMTEXT,
  discarded_at DATETIME(6),
  discarded_by VARCHAR(512),
  discarded_reason MEDIUMTEXT,
  replaced_by VARBINARY(512),
  changed_at DATETIME(6) NOT NULL,
  expires_at DATETIME(6),
  PRIMARY KEY (consumer, event_id),
  CONSTRAINT inbox_status CHECK (status IN ('PROCESSING', 'PROCESSED', 'FAILED', 'REJECTED', 'DISCARDED')),
  KEY inbox_open (consumer, status, changed_at),
  KEY inbox_expires_at (expires_at)`,
      ),
      table(
        'effect',
        `  consumer VARBINARY(512) NOT NULL,
  event_id VARBINARY(512) NOT NULL,
  name VARBINARY(128) NOT NULL,
  status VARCHAR(16) NOT NULL,
  fence VARBINARY(64) NOT NULL,
  run INT NOT NULL,
  started_at DATETIME(6) NOT NULL,
  ends_by DATETIME(6) NOT NULL,
  ended_at DATETIME(6),
  result MEDIUMTEXT,
  error MEDIUMTEXT,
  nothing_happened BOOLEAN,
  PRIMARY KEY (consumer, event_id, name),
  CONSTRAINT effect_status CHECK (status IN ('IN_PROGRESS', 'RELEASED', 'COMPLETED'))`,
      ),
      table(
        'inbox_retention',
        `  consumer VARBINARY(512) NOT NULL,
  since DATETIME(6) NOT NULL,
  days INT NOT NULL,
  PRIMARY KEY (consumer, since)`,
      ),
    ],
  },
  {
    version: 2,
    statements: [
      `ALTER TABLE mailroom.inbox ADD COLUMN place MEDIUMTEXT, ADD COLUMN superseded_by BIGINT, ADD COLUMN commit_id VARBINARY(64)`,
      table(
        'last_sequence',
        `  consumer VARBINARY(512) NOT NULL,
  place VARBINARY(2048) NOT NULL,
  last BIGINT NOT NULL,
  event_id VARBINARY(512),
  at DATETIME(6) NOT NULL,
  PRIMARY KEY (consumer, place),
  CONSTRAINT last_sequence_is_safe CHECK (last BETWEEN 0 AND 9007199254740991)`,
      ),
    ],
  },
  {
    version: 3,
    statements: [
      table('captured', CAPTURED_COLUMNS),
      table('capture', CAPTURE_COLUMNS),
      'DROP PROCEDURE IF EXISTS mailroom.delete_captured',
      DELETE_CAPTURED,
    ],
  },
  { version: 4, statements: AGGREGATE_ORDER },
];
