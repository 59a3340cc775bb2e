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
ALTER TABLE mailroom.inbox ADD COLUMN place text, ADD COLUMN superseded_by bigint, ADD COLUMN commit_id text;
CREATE TABLE mailroom.last_sequence (
  consumer text NOT NULL,
  place text NOT NULL,
  last bigint NOT NULL CHECK (last BETWEEN 0 AND 9007199254740991),
  event_id text,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (consumer, place)
) WITH (fillfactor = 80);
GRANT SELECT, INSERT, UPDATE ON mailroom.last_sequence TO mailroom_consumer;
GRANT SELECT ON mailroom.last_sequence TO mailroom_auditor, mailroom_operator;
ALTER TABLE mailroom.last_sequence ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON mailroom.last_sequence TO mailroom_consumer USING (consumer = ANY (ARRAY(SELECT l.scope FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'consumer')));
CREATE POLICY auditor ON mailroom.last_sequence FOR SELECT TO mailroom_auditor USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'auditor'));
CREATE POLICY operator ON mailroom.last_sequence FOR SELECT TO mailroom_operator USING (EXISTS (SELECT FROM mailroom.login l WHERE l.login = CURRENT_USER AND l.role = 'operator'));
CREATE FUNCTION mailroom.raise_last(of_consumer text, of_place text, from_last bigint, to_last bigint, why text) RETURNS boolean
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $function$
BEGIN
  IF NOT pg_has_role(session_user, current_user, 'USAGE')
    AND NOT EXISTS (SELECT FROM mailroom.login l WHERE l.login = session_user AND l.role = 'operator') THEN
    RAISE insufficient_privilege USING MESSAGE = 'This login is not an operator of the Mailroom in this database';
  END IF;
  IF to_last <= coalesce(from_last, 0) THEN
    RETURN false;
  END IF;
  IF from_last IS NULL THEN
    INSERT INTO mailroom.last_sequence (consumer, place, last) VALUES (of_consumer, of_place, to_last) ON CONFLICT DO NOTHING;
  ELSE
    UPDATE mailroom.last_sequence l SET last = to_last, event_id = NULL, at = clock_timestamp()
    WHERE l.consumer = of_consumer AND l.place = of_place AND l.last = from_last;
  END IF;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  INSERT INTO mailroom.operation (at, token, operator, command, subject, reason)
  VALUES (date_trunc('milliseconds', clock_timestamp()), gen_random_uuid()::text, session_user, 'postgres order',
    of_consumer || ' ' || of_place || ' ' || to_last::text, why);
  RETURN true;
END
$function$;
REVOKE ALL ON FUNCTION mailroom.raise_last FROM PUBLIC;
GRANT EXECUTE ON FUNCTION mailroom.raise_last TO mailroom_operator;
INSERT INTO mailroom.migration (version) VALUES (4);
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$;
