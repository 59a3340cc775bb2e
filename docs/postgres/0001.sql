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
  WHERE c.relnamespace = ours.oid AND NOT t.tgisinternal AND p.pronamespace <> ours.oid
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
GRANT SELECT ON mailroom.event, mailroom.pending, mailroom.published, mailroom.dead, mailroom.discarded, mailroom.cancelled, mailroom.inbox, mailroom.effect, mailroom.inbox_retention TO mailroom_auditor;
GRANT SELECT ON ALL TABLES IN SCHEMA mailroom TO mailroom_operator;
GRANT INSERT (consumer, event_id, type, status, fence, processed_at, resolved_by, resolved_reason, discarded_at, discarded_by, discarded_reason,
  replaced_by, expires_at) ON mailroom.inbox TO mailroom_operator;
GRANT UPDATE (status, fence, processed_at, resolved_by, resolved_reason, discarded_at, discarded_by, discarded_reason, replaced_by, expires_at,
  run_anyway, allowed_at, allowed_by, allowed_reason, lease_until, ends_by, retry_at, reason, rejected_at, unfinished, out_of_time, changed_at)
  ON mailroom.inbox TO mailroom_operator;
CREATE TABLE mailroom.login (
  login name NOT NULL,
  role text NOT NULL CHECK (role IN ('producer', 'consumer', 'relay', 'auditor', 'operator')),
  scope text NOT NULL DEFAULT '',
  PRIMARY KEY (login, role, scope)
);
GRANT SELECT ON mailroom.login TO mailroom_producer, mailroom_relay, mailroom_consumer, mailroom_auditor, mailroom_operator;
ALTER TABLE mailroom.event ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.pending ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.published ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.dead ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.discarded ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.cancelled ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.commit ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.inbox ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.effect ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.operation ENABLE ROW LEVEL SECURITY;
ALTER TABLE mailroom.inbox_retention ENABLE ROW LEVEL SECURITY;
CREATE POLICY relay ON mailroom.event TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.pending TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.published TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.dead TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.discarded TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.cancelled TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.commit TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.inbox TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY relay ON mailroom.effect TO mailroom_relay USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'relay'));
CREATE POLICY auditor ON mailroom.event FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.pending FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.published FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.dead FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.discarded FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.cancelled FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.inbox FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.effect FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY auditor ON mailroom.inbox_retention FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY operator ON mailroom.event FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.pending FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.published FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.dead FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.discarded FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.cancelled FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.commit FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.inbox FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.effect FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.operation FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY operator ON mailroom.inbox_retention FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE POLICY own_insert ON mailroom.event FOR INSERT TO mailroom_producer, mailroom_consumer WITH CHECK (source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer')));
CREATE POLICY own_select ON mailroom.event FOR SELECT TO mailroom_producer, mailroom_consumer USING (source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer')));
CREATE POLICY own_insert ON mailroom.pending FOR INSERT TO mailroom_producer, mailroom_consumer
  WITH CHECK (fence IS NULL AND attempts = 0 AND last_error IS NULL AND EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'));
CREATE POLICY own_select ON mailroom.pending FOR SELECT TO mailroom_producer, mailroom_consumer USING (EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = pending.event_id AND e.source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'))));
CREATE POLICY own_delete ON mailroom.pending FOR DELETE TO mailroom_producer, mailroom_consumer USING (EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = pending.event_id AND e.source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'))));
CREATE POLICY own_insert ON mailroom.cancelled FOR INSERT TO mailroom_producer, mailroom_consumer WITH CHECK (EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = cancelled.event_id AND e.source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'))));
CREATE POLICY own_select ON mailroom.cancelled FOR SELECT TO mailroom_producer, mailroom_consumer USING (EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = cancelled.event_id AND e.source = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'))));
CREATE POLICY own_insert ON mailroom.commit FOR INSERT TO mailroom_producer, mailroom_consumer WITH CHECK (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'));
CREATE POLICY own_select ON mailroom.commit FOR SELECT TO mailroom_producer, mailroom_consumer USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'producer'));
CREATE POLICY own ON mailroom.inbox TO mailroom_consumer USING (consumer = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'consumer')));
CREATE POLICY own ON mailroom.effect TO mailroom_consumer USING (consumer = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'consumer')));
CREATE POLICY own ON mailroom.inbox_retention TO mailroom_consumer USING (consumer = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'consumer')));
CREATE POLICY decide_absent ON mailroom.inbox FOR INSERT TO mailroom_operator WITH CHECK (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator') AND (status IN ('PROCESSED', 'DISCARDED') AND fence IS NOT NULL AND coalesce(resolved_by, discarded_by) IS NOT NULL
  AND expires_at > clock_timestamp() + interval '3650 days'));
CREATE POLICY decide ON mailroom.inbox FOR UPDATE TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator') AND status NOT IN ('PROCESSED', 'DISCARDED'))
  WITH CHECK ((status IN ('PROCESSED', 'DISCARDED') AND fence IS NOT NULL AND coalesce(resolved_by, discarded_by) IS NOT NULL
  AND expires_at > clock_timestamp() + interval '3650 days') OR (status = 'REJECTED' AND reason = 'EVENT_TOO_OLD' AND run_anyway AND allowed_by IS NOT NULL
  AND coalesce(resolved_by, discarded_by) IS NULL));
CREATE FUNCTION mailroom.record_decision() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
  VALUES (date_trunc('milliseconds', clock_timestamp()), gen_random_uuid()::text, session_user,
    CASE NEW.status WHEN 'PROCESSED' THEN 'postgres resolve' WHEN 'DISCARDED' THEN 'postgres discard' ELSE 'postgres allow' END,
    NEW.consumer || ' ' || NEW.event_id,
    coalesce(CASE NEW.status WHEN 'PROCESSED' THEN NEW.resolved_reason WHEN 'DISCARDED' THEN NEW.discarded_reason ELSE NEW.allowed_reason END, ''));
  RETURN NULL;
END
$function$;
CREATE TRIGGER decided AFTER UPDATE OF resolved_by, discarded_by, allowed_by ON mailroom.inbox
  FOR EACH ROW EXECUTE FUNCTION mailroom.record_decision();
CREATE TRIGGER decided_absent AFTER INSERT ON mailroom.inbox FOR EACH ROW
  WHEN (NEW.resolved_by IS NOT NULL OR NEW.discarded_by IS NOT NULL) EXECUTE FUNCTION mailroom.record_decision();
REVOKE ALL ON FUNCTION mailroom.record_decision FROM PUBLIC;
CREATE FUNCTION mailroom.requeue(event_ids uuid[], reason text, token uuid DEFAULT gen_random_uuid()) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  WITH changed AS (
    DELETE FROM mailroom.dead d WHERE $1 IS NULL OR d.event_id = ANY ($1) RETURNING d.event_id
  ), queued AS (
    INSERT INTO mailroom.pending (event_id) SELECT changed.event_id FROM changed ON CONFLICT DO NOTHING
  )
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
    SELECT date_trunc('milliseconds', clock_timestamp()), $3::text || '/' || changed.event_id::text, session_user, 'postgres requeue', changed.event_id::text, $2
    FROM changed;
  RETURN QUERY SELECT o.subject::uuid FROM mailroom.operation o
    WHERE o.at > statement_timestamp() - interval '1 hour' AND starts_with(o.token, $3::text || '/');
END
$function$;
CREATE FUNCTION mailroom.discard(event_ids uuid[], reason text, token uuid DEFAULT gen_random_uuid()) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  WITH changed AS (
    DELETE FROM mailroom.dead d WHERE $1 IS NULL OR d.event_id = ANY ($1) RETURNING d.event_id
  ), discarded AS (
    INSERT INTO mailroom.discarded (event_id, discarded_at, operator, reason)
    SELECT changed.event_id, clock_timestamp(), session_user, $2 FROM changed ON CONFLICT DO NOTHING
  )
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
    SELECT date_trunc('milliseconds', clock_timestamp()), $3::text || '/' || changed.event_id::text, session_user, 'postgres discard', changed.event_id::text, $2
    FROM changed;
  RETURN QUERY SELECT o.subject::uuid FROM mailroom.operation o
    WHERE o.at > statement_timestamp() - interval '1 hour' AND starts_with(o.token, $3::text || '/');
END
$function$;
CREATE FUNCTION mailroom.republish(event_ids uuid[], reason text, token uuid DEFAULT gen_random_uuid(), sent_until timestamptz DEFAULT 'infinity') RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  WITH sent AS (
    UPDATE mailroom.published p SET resent_at = clock_timestamp() WHERE p.event_id = ANY ($1) AND coalesce(p.resent_at, p.published_at) <= $4
      AND EXISTS (SELECT FROM mailroom.event e WHERE e.event_id = p.event_id)
      AND NOT EXISTS (SELECT FROM mailroom.dead d WHERE d.event_id = p.event_id)
      AND NOT EXISTS (SELECT FROM mailroom.discarded d WHERE d.event_id = p.event_id)
    RETURNING p.event_id
  ), changed AS (
    SELECT DISTINCT sent.event_id FROM sent
  ), queued AS (
    INSERT INTO mailroom.pending (event_id) SELECT changed.event_id FROM changed ON CONFLICT DO NOTHING
  )
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
    SELECT date_trunc('milliseconds', clock_timestamp()), $3::text || '/' || changed.event_id::text, session_user, 'postgres republish', changed.event_id::text, $2
    FROM changed;
  RETURN QUERY SELECT o.subject::uuid FROM mailroom.operation o
    WHERE o.at > statement_timestamp() - interval '1 hour' AND starts_with(o.token, $3::text || '/');
END
$function$;
CREATE FUNCTION mailroom.mark_resent(event_ids uuid[], reason text, token uuid DEFAULT gen_random_uuid()) RETURNS SETOF uuid
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  WITH sent AS (
    UPDATE mailroom.published p SET resent_at = clock_timestamp() WHERE p.event_id = ANY ($1) RETURNING p.event_id
  ), changed AS (
    SELECT DISTINCT sent.event_id FROM sent
  )
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
    SELECT date_trunc('milliseconds', clock_timestamp()), $3::text || '/' || changed.event_id::text, session_user, 'postgres mark_resent', changed.event_id::text, $2
    FROM changed;
  RETURN QUERY SELECT o.subject::uuid FROM mailroom.operation o
    WHERE o.at > statement_timestamp() - interval '1 hour' AND starts_with(o.token, $3::text || '/');
END
$function$;
CREATE FUNCTION mailroom.oldest_snapshot() RETURNS TABLE (pid integer, login name, app text, age_ms double precision)
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
  SELECT a.pid, a.usename, a.application_name,
    CASE WHEN a.xact_start IS NOT NULL THEN greatest(0, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 * 1000) END
  FROM pg_stat_activity a WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid() AND a.datname = current_database()
    AND coalesce(a.backend_type, '') NOT IN ('autovacuum worker', 'walsender')
  ORDER BY a.xact_start NULLS FIRST LIMIT 1
$function$;
REVOKE ALL ON FUNCTION mailroom.requeue, mailroom.discard, mailroom.republish, mailroom.mark_resent, mailroom.oldest_snapshot FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.requeue, mailroom.discard, mailroom.republish, mailroom.mark_resent TO mailroom_operator;
GRANT EXECUTE ON FUNCTION mailroom.oldest_snapshot TO mailroom_relay, mailroom_operator;
INSERT INTO mailroom.migration (version) VALUES (1);
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$;
