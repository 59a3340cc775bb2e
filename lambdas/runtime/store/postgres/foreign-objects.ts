import type { Sql } from './sql.ts';
import { readRows } from './sql-rows.ts';

/**
 * The objects in the schema `mailroom` that another login than its owner has made, or could make: each may run code of that login as the
 * one who migrates, publishes or consumes. Only system catalogs are read, and every operator has the exact types of its operands.
 */
export const FOREIGN_OBJECTS = `WITH ours AS (
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
  WHERE a.privilege_type = 'CREATE' AND a.grantee <> ours.nspowner`;

/** An object in the schema `mailroom` of another login. */
export interface ForeignObject {
  /** Its kind and name. */
  readonly object: string;
  /** The login, or `PUBLIC`. */
  readonly owner: string;
}

/** Returns the objects of {@link FOREIGN_OBJECTS}. @param migrating - also the schema itself, if this login does not own it */
export async function foreignObjects(sql: Sql, migrating: boolean): Promise<ForeignObject[]> {
  return readRows(
    sql,
    `SELECT f.object, coalesce(r.rolname::text, 'PUBLIC'::text) AS owner FROM (${FOREIGN_OBJECTS}
UNION ALL SELECT 'schema', nspowner FROM ours WHERE $1::boolean AND pg_catalog.pg_get_userbyid(nspowner) <> current_user
) f LEFT JOIN pg_catalog.pg_roles r ON r.oid = f.owner ORDER BY 1, 2`,
    [migrating],
    { object: 'text', owner: 'text' },
  );
}
