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
ALTER TABLE mailroom.event
  ADD COLUMN published_by text,
  ADD CONSTRAINT captured_event_has_a_key CHECK (published_by IS NULL OR (published_by = 'cdc'
    AND coalesce(octet_length(aggregate_type) BETWEEN 1 AND 1024, false) AND coalesce(octet_length(aggregate_id) BETWEEN 1 AND 1024, false))) NOT VALID;
CREATE INDEX event_captured ON mailroom.event (event_id) WHERE published_by = 'cdc';
CREATE TABLE mailroom.capture (
  slot name PRIMARY KEY,
  retention interval NOT NULL,
  since timestamptz NOT NULL,
  lsn pg_lsn NOT NULL,
  lsn_at timestamptz NOT NULL,
  captured_until timestamptz
);
ALTER TABLE mailroom.capture ENABLE ROW LEVEL SECURITY;
DO $roles$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'mailroom_connector') THEN
    CREATE ROLE mailroom_connector NOLOGIN;
  END IF;
END
$roles$;
ALTER TABLE mailroom.login DROP CONSTRAINT login_role_check,
  ADD CONSTRAINT login_role_check CHECK (role IN ('producer', 'consumer', 'relay', 'auditor', 'operator', 'connector'));
GRANT USAGE ON SCHEMA mailroom TO mailroom_connector;
GRANT SELECT ON mailroom.event, mailroom.login TO mailroom_connector;
GRANT SELECT ON mailroom.capture TO mailroom_auditor, mailroom_operator;
CREATE POLICY connector ON mailroom.event FOR SELECT TO mailroom_connector
  USING (published_by = 'cdc' AND EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'connector'));
CREATE POLICY auditor ON mailroom.capture FOR SELECT TO mailroom_auditor
  USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY operator ON mailroom.capture FOR SELECT TO mailroom_operator
  USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE FUNCTION mailroom.delete_captured(slot name, retention interval) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
DECLARE
  confirmed pg_lsn;
  expired timestamptz;
  deleted bigint;
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'connector') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not a connector of the Mailroom in this database';
  END IF;
  IF retention IS NULL OR retention < interval '1 hour' THEN
    RAISE invalid_parameter_value USING MESSAGE = 'The retention of captured events must be at least one hour';
  END IF;
  SELECT s.confirmed_flush_lsn INTO confirmed FROM pg_replication_slots s
    WHERE s.slot_name = $1 AND s.database = current_database() AND s.wal_status IS DISTINCT FROM 'lost';
  IF confirmed IS NULL THEN
    RETURN 0;
  END IF;
  INSERT INTO mailroom.capture AS c (slot, retention, since, lsn, lsn_at)
    VALUES ($1, $2, clock_timestamp(), pg_current_wal_insert_lsn(), clock_timestamp())
    ON CONFLICT ON CONSTRAINT capture_pkey DO UPDATE SET retention = excluded.retention, lsn = CASE WHEN confirmed >= c.lsn OR c.lsn > excluded.lsn THEN excluded.lsn ELSE c.lsn END, lsn_at = CASE WHEN confirmed >= c.lsn OR c.lsn > excluded.lsn THEN excluded.lsn_at ELSE c.lsn_at END,
      since = CASE WHEN c.lsn > excluded.lsn OR c.since > excluded.since OR $2 < c.retention OR (confirmed >= c.lsn AND (c.captured_until BETWEEN excluded.lsn_at - $2 / 2 AND excluded.lsn_at) IS NOT TRUE) THEN excluded.since ELSE c.since END,
      captured_until = CASE WHEN confirmed >= c.lsn THEN least(c.lsn_at, excluded.lsn_at) WHEN c.captured_until <= excluded.lsn_at THEN c.captured_until END;
  SELECT CASE WHEN bool_and(coalesce(c.captured_until - c.retention / 2 >= c.since, false)) THEN min(c.captured_until - c.retention) END
    INTO expired FROM mailroom.capture c;
  DELETE FROM mailroom.event e USING (
    SELECT o.event_id FROM mailroom.event o WHERE o.published_by = 'cdc'
      AND o.event_id < (lpad(to_hex((extract(epoch FROM expired) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid
    ORDER BY o.event_id LIMIT 10000
  ) old WHERE e.event_id = old.event_id;
  GET DIAGNOSTICS deleted = ROW_COUNT;
  RETURN deleted;
END
$function$;
REVOKE ALL ON FUNCTION mailroom.delete_captured FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.delete_captured TO mailroom_connector;
INSERT INTO mailroom.migration (version) VALUES (3);
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$;
