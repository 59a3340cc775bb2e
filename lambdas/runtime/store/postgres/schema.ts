import { AGGREGATE_ORDER } from './aggregate-order.ts';
import { CAPTURE } from './capture-schema.ts';
import { EVENT_ORDER } from './order-schema.ts';
import { AUDITED, ROW_ACCESS } from './row-access.ts';

/** One step of the schema, in the order of their versions, which begin at 1. A released step is never changed. */
export interface Migration {
  readonly version: number;
  readonly sql: string;
}

/**
 * The steps of the schema.
 *
 * - `event` is only inserted into and deleted from. Its envelope is text, not JSON: consumers must read it byte for byte.
 * - An event that its bus would never accept is refused here, also past the library: one of 400 MB would outlast every lease. An entry may have
 *   999,999 bytes, of which 14 are its time.
 * - A time before 1970, or infinite, is refused: relays could not read from it on, and it would be due before the events of all others.
 * - `pending` is the queue, narrow so that its many dead row versions stay small, and is vacuumed often.
 * - `commit` has a row of each transaction without events, by which its producer recognizes it after a lost answer. It is kept for a day.
 * - `aggregate_type` and `aggregate_id` are for readers of the table that must not parse the envelope. They are null in rows of an earlier version, and are
 *   never the reason for refusing a row that fits: consumers read the envelope.
 * - Times are those of the database. No reader follows the numbers of events: it would miss what commits late.
 */
export const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    sql: `CREATE TABLE mailroom.event (
  event_id uuid PRIMARY KEY CHECK (substr(event_id::text, 15, 1) = '7'),
  source text NOT NULL CHECK (length(source) BETWEEN 1 AND 256),
  type text NOT NULL CHECK (length(type) BETWEEN 1 AND 128),
  trace_id text,
  envelope text NOT NULL CHECK (envelope LIKE '{%}'),
  CONSTRAINT event_fits_an_entry
    CHECK (octet_length(envelope) + octet_length(source) + octet_length(type) + octet_length(coalesce(trace_id, '')) < 999986)
);
CREATE TABLE mailroom.pending (
  event_id uuid PRIMARY KEY,
  due_at timestamptz NOT NULL DEFAULT clock_timestamp() CHECK (due_at >= '1970-01-01 00:00:00+00' AND due_at < 'infinity'),
  fence uuid,
  attempts integer NOT NULL DEFAULT 0,
  last_error text
) WITH (
  fillfactor = 70,
  autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_insert_scale_factor = 0,
  autovacuum_vacuum_insert_threshold = 100000,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX pending_due_at ON mailroom.pending (due_at);
CREATE TABLE mailroom.published (
  event_id uuid NOT NULL,
  published_at timestamptz NOT NULL,
  resent_at timestamptz
);
CREATE INDEX published_event_id ON mailroom.published (event_id);
CREATE INDEX published_at ON mailroom.published (published_at);
CREATE TABLE mailroom.dead (
  event_id uuid PRIMARY KEY,
  dead_at timestamptz NOT NULL,
  attempts integer NOT NULL,
  last_error text NOT NULL,
  fingerprint text NOT NULL
);
CREATE TABLE mailroom.discarded (
  event_id uuid PRIMARY KEY,
  discarded_at timestamptz NOT NULL,
  operator text NOT NULL,
  reason text NOT NULL
);
CREATE INDEX discarded_at ON mailroom.discarded (discarded_at);
CREATE TABLE mailroom.cancelled (
  event_id uuid PRIMARY KEY,
  cancelled_at timestamptz NOT NULL
);
CREATE INDEX cancelled_at ON mailroom.cancelled (cancelled_at);
CREATE TABLE mailroom.commit (
  commit_id uuid PRIMARY KEY
);
CREATE TABLE mailroom.operation (
  at timestamptz NOT NULL,
  token text NOT NULL,
  operator text NOT NULL,
  command text NOT NULL,
  subject text NOT NULL,
  reason text NOT NULL,
  PRIMARY KEY (at, token)
);
CREATE TABLE mailroom.inbox (
  consumer text NOT NULL,
  event_id text NOT NULL,
  type text NOT NULL,
  status text NOT NULL CHECK (status IN ('PROCESSING', 'PROCESSED', 'FAILED', 'REJECTED', 'DISCARDED')),
  fence text,
  attempts integer NOT NULL DEFAULT 0,
  unfinished integer NOT NULL DEFAULT 0,
  out_of_time boolean NOT NULL DEFAULT false,
  claimed_at timestamptz,
  lease_until timestamptz,
  ends_by timestamptz,
  retry_at timestamptz,
  processed_at timestamptz,
  rejected_at timestamptz,
  rejected_ids text[] NOT NULL DEFAULT '{}',
  reason text,
  last_error text,
  fingerprint text,
  past_attempts text,
  result text,
  run_anyway boolean NOT NULL DEFAULT false,
  allowed_at timestamptz,
  allowed_by text,
  allowed_reason text,
  resolved_by text,
  resolved_reason text,
  discarded_at timestamptz,
  discarded_by text,
  discarded_reason text,
  replaced_by text,
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  PRIMARY KEY (consumer, event_id)
) WITH (fillfactor = 80);
CREATE INDEX inbox_open ON mailroom.inbox (consumer, status, changed_at) WHERE status IN ('PROCESSING', 'FAILED', 'REJECTED');
CREATE INDEX inbox_expires_at ON mailroom.inbox (expires_at);
CREATE INDEX inbox_settled_unread ON mailroom.inbox (consumer) WHERE event_id LIKE 'unreadable-%' AND status IN ('PROCESSED', 'DISCARDED');
CREATE TABLE mailroom.effect (
  consumer text NOT NULL,
  event_id text NOT NULL,
  name text NOT NULL,
  status text NOT NULL CHECK (status IN ('IN_PROGRESS', 'RELEASED', 'COMPLETED')),
  fence text NOT NULL,
  run integer NOT NULL,
  started_at timestamptz NOT NULL,
  ends_by timestamptz NOT NULL,
  ended_at timestamptz,
  result text,
  error text,
  nothing_happened boolean,
  PRIMARY KEY (consumer, event_id, name)
);
CREATE TABLE mailroom.inbox_retention (
  consumer text NOT NULL,
  since timestamptz NOT NULL DEFAULT clock_timestamp(),
  days integer NOT NULL,
  PRIMARY KEY (consumer, since)
);

DO $roles$
DECLARE name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['mailroom_producer', 'mailroom_relay', 'mailroom_consumer', 'mailroom_auditor', 'mailroom_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', name);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA mailroom TO %I', name);
    EXECUTE format('GRANT SELECT ON mailroom.migration TO %I', name);
  END LOOP;
END
$roles$;
GRANT INSERT ON mailroom.event, mailroom.pending TO mailroom_producer, mailroom_consumer;
GRANT SELECT (event_id, source) ON mailroom.event TO mailroom_producer, mailroom_consumer;
GRANT SELECT, DELETE ON mailroom.pending TO mailroom_producer, mailroom_consumer;
GRANT SELECT, INSERT ON mailroom.cancelled, mailroom.commit TO mailroom_producer, mailroom_consumer;
GRANT SELECT, DELETE ON mailroom.cancelled, mailroom.discarded, mailroom.commit TO mailroom_relay;
GRANT SELECT ON mailroom.event TO mailroom_relay;
GRANT DELETE ON mailroom.event TO mailroom_relay;
GRANT SELECT, UPDATE, DELETE ON mailroom.pending TO mailroom_relay;
GRANT SELECT, INSERT, DELETE ON mailroom.published, mailroom.dead TO mailroom_relay;
GRANT SELECT, DELETE ON mailroom.inbox, mailroom.effect TO mailroom_relay;
GRANT SELECT, INSERT, UPDATE ON mailroom.inbox, mailroom.effect TO mailroom_consumer;
GRANT SELECT, INSERT ON mailroom.inbox_retention TO mailroom_consumer;
GRANT SELECT ON ${AUDITED.map((table) => `mailroom.${table}`).join(', ')} TO mailroom_auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA mailroom TO mailroom_operator;
GRANT INSERT (consumer, event_id, type, status, fence, processed_at, resolved_by, resolved_reason, discarded_at, discarded_by, discarded_reason,
  replaced_by, expires_at) ON mailroom.inbox TO mailroom_operator;
GRANT UPDATE (status, fence, processed_at, resolved_by, resolved_reason, discarded_at, discarded_by, discarded_reason, replaced_by, expires_at,
  run_anyway, allowed_at, allowed_by, allowed_reason, lease_until, ends_by, retry_at, reason, rejected_at, unfinished, out_of_time, changed_at)
  ON mailroom.inbox TO mailroom_operator;
${ROW_ACCESS}`,
  },
  {
    version: 2,
    // NOT VALID: the rows that exist have no aggregate, and need not be read under the lock.
    sql: `ALTER TABLE mailroom.event
  ADD COLUMN aggregate_type text,
  ADD COLUMN aggregate_id text,
  ADD CONSTRAINT aggregate_fits_a_key CHECK (octet_length(aggregate_type) + octet_length(aggregate_id) < 999986) NOT VALID;`,
  },
  { version: 3, sql: CAPTURE },
  { version: 4, sql: EVENT_ORDER },
  { version: 5, sql: AGGREGATE_ORDER },
];
