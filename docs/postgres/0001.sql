DO $mailroom$
DECLARE
  path_before text := pg_catalog.current_setting('search_path'::text);
  foreign_object text;
BEGIN
PERFORM pg_catalog.set_config('search_path'::text, 'pg_catalog, pg_temp'::text, true);
SELECT object INTO foreign_object FROM (WITH ours AS (
  SELECT oid, nspowner, nspacl FROM pg_catalog.pg_namespace WHERE nspname = 'mailroom'
)
SELECT 'relation ' || c.relname::text AS object, c.relowner AS owner FROM pg_catalog.pg_class c, ours
  WHERE c.relnamespace = ours.oid AND c.relowner <> ours.nspowner
UNION ALL SELECT 'function ' || p.proname::text, p.proowner FROM pg_catalog.pg_proc p, ours
  WHERE p.pronamespace = ours.oid AND p.proowner <> ours.nspowner
UNION ALL SELECT 'type ' || t.typname::text, t.typowner FROM pg_catalog.pg_type t, ours
  WHERE t.typnamespace = ours.oid AND t.typowner <> ours.nspowner AND t.typtype IN ('d'::"char", 'e'::"char", 'r'::"char")
UNION ALL SELECT 'trigger ' || t.tgname::text || ' of ' || c.relname::text, p.proowner
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_proc p ON p.oid = t.tgfoid, ours
  WHERE c.relnamespace = ours.oid AND NOT t.tgisinternal
UNION ALL SELECT 'rule ' || r.rulename::text || ' of ' || c.relname::text, c.relowner
  FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class, ours
  WHERE c.relnamespace = ours.oid AND c.relkind NOT IN ('v'::"char", 'm'::"char")
UNION ALL SELECT 'right to create objects', a.grantee FROM ours, LATERAL pg_catalog.aclexplode(ours.nspacl) a
  WHERE a.privilege_type = 'CREATE' AND a.grantee <> ours.nspowner
UNION ALL SELECT 'schema', nspowner FROM ours WHERE pg_get_userbyid(nspowner) <> current_user) objects LIMIT 1;
IF foreign_object IS NOT NULL THEN
  RAISE EXCEPTION 'The schema mailroom has an object that does not belong to the role that migrates it: %', foreign_object
    USING HINT = 'Its code could run as this role. Migrate as its owner, or remove it.';
END IF;
IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'mailroom') THEN
  CREATE SCHEMA mailroom;
END IF;
CREATE TABLE IF NOT EXISTS mailroom.migration (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE mailroom.event (
  event_id uuid PRIMARY KEY,
  source text NOT NULL,
  type text NOT NULL,
  trace_id text,
  envelope text NOT NULL
);
CREATE TABLE mailroom.pending (
  event_id uuid PRIMARY KEY,
  due_at timestamptz NOT NULL DEFAULT clock_timestamp(),
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
  published_at timestamptz NOT NULL
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
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  expires_at timestamptz,
  PRIMARY KEY (consumer, event_id)
) WITH (fillfactor = 80);
CREATE INDEX inbox_open ON mailroom.inbox (consumer, status, changed_at) WHERE status IN ('PROCESSING', 'FAILED', 'REJECTED');
CREATE INDEX inbox_expires_at ON mailroom.inbox (expires_at);
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
  FOREACH name IN ARRAY ARRAY['mailroom_producer', 'mailroom_relay', 'mailroom_consumer', 'mailroom_operator'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I NOLOGIN', name);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA mailroom TO %I', name);
    EXECUTE format('GRANT SELECT ON mailroom.migration TO %I', name);
  END LOOP;
END
$roles$;
DO $roles$
BEGIN
  GRANT pg_read_all_stats TO mailroom_relay, mailroom_operator;
  EXCEPTION WHEN insufficient_privilege THEN
    RAISE NOTICE 'The age of the oldest snapshot stays unknown: this login may not grant pg_read_all_stats.';
END
$roles$;
GRANT INSERT ON mailroom.event, mailroom.pending TO mailroom_producer, mailroom_consumer;
GRANT SELECT (event_id, source) ON mailroom.event TO mailroom_producer, mailroom_consumer;
GRANT SELECT, DELETE ON mailroom.pending TO mailroom_producer, mailroom_consumer;
GRANT SELECT, INSERT ON mailroom.cancelled, mailroom.commit TO mailroom_producer, mailroom_consumer;
GRANT SELECT, DELETE ON mailroom.cancelled, mailroom.commit TO mailroom_relay;
GRANT SELECT ON mailroom.event TO mailroom_relay;
GRANT DELETE ON mailroom.event TO mailroom_relay;
GRANT SELECT, UPDATE, DELETE ON mailroom.pending TO mailroom_relay;
GRANT SELECT, INSERT, DELETE ON mailroom.published, mailroom.dead TO mailroom_relay;
GRANT SELECT, DELETE ON mailroom.inbox, mailroom.effect TO mailroom_relay;
GRANT SELECT, INSERT, UPDATE ON mailroom.inbox, mailroom.effect TO mailroom_consumer;
GRANT SELECT, INSERT ON mailroom.inbox_retention TO mailroom_consumer;
GRANT SELECT ON ALL TABLES IN SCHEMA mailroom TO mailroom_operator;
GRANT INSERT, UPDATE ON mailroom.pending, mailroom.inbox TO mailroom_operator;
GRANT DELETE ON mailroom.dead TO mailroom_operator;
GRANT INSERT ON mailroom.operation TO mailroom_operator;
INSERT INTO mailroom.migration (version) VALUES (1);
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$;
