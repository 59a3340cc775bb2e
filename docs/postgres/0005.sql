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
CREATE SEQUENCE mailroom.event_ordinal;
ALTER TABLE mailroom.event ADD COLUMN ordinal bigint;
ALTER TABLE mailroom.event ALTER COLUMN ordinal SET DEFAULT nextval('mailroom.event_ordinal'::regclass);
ALTER TABLE mailroom.pending ADD COLUMN waits_for uuid;
CREATE INDEX event_in_aggregate ON mailroom.event ((pg_catalog.hashtextextended(source, pg_catalog.hashtextextended(aggregate_type, pg_catalog.hashtextextended(aggregate_id, 0::bigint)))), ordinal) WHERE ordinal IS NOT NULL;
GRANT USAGE ON SEQUENCE mailroom.event_ordinal TO mailroom_producer, mailroom_consumer;
INSERT INTO mailroom.migration (version) VALUES (5);
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$;
