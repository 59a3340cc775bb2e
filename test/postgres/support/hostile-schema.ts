import type { PgQueryable } from '../../../lambdas/runtime/postgres/databases.ts';

/** The types of operands: those of our columns and parameters, and those that PostgreSQL prefers beside them. */
const TYPES = [
  'boolean',
  'smallint',
  'integer',
  'bigint',
  'numeric',
  'real',
  'double precision',
  'text',
  'varchar',
  'bpchar',
  'name',
  'uuid',
  'uuid[]',
  'text[]',
  'json',
  'jsonb',
  'xid',
  'xid8',
  'oid',
  'regclass',
  'pg_lsn',
  'bit',
  'varbit',
  'date',
  'timestamp',
  'timestamptz',
  'interval',
];

/** Types that take whatever fits nothing else. */
const ANY = ['anyelement', 'anyarray', 'anynonarray', 'anycompatible', 'anycompatiblearray'];

/** The types of which functions get two. */
const LIKELY = ['integer', 'bigint', 'double precision', 'text', 'name', 'text[]', 'xid8', 'timestamptz'];

/** The error of a hostile function: it was called. */
const HOSTILE = 'H0571';

/** A hostile overload. It has its result's type so that a statement fails when it calls it, and not before. */
const MAKE = `CREATE FUNCTION pg_temp.make(overload text, arguments text[], result text) RETURNS void LANGUAGE plpgsql AS $make$
BEGIN
  EXECUTE format('CREATE FUNCTION public.%I(%s) RETURNS %s LANGUAGE plpgsql AS $body$ BEGIN RAISE EXCEPTION ''hostile %s'' USING ERRCODE = ''${HOSTILE}''; END $body$',
    overload, array_to_string(arguments, ', '), result, overload);
EXCEPTION WHEN others THEN NULL;
END $make$`;

/** Every function of PostgreSQL whose name a text of ours contains, for any one or two arguments. */
const FUNCTIONS = `SELECT pg_temp.make(p.proname, arguments, p.result)
  FROM (SELECT DISTINCT ON (proname) proname, CASE WHEN prorettype::regtype::text IN ('anyelement', 'anyarray', 'record') THEN 'text' ELSE prorettype::regtype::text END AS result
    FROM pg_catalog.pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND prokind IN ('f', 'a') AND proname = ANY ($1::text[]) ORDER BY proname, pronargs) p,
  LATERAL (SELECT ARRAY[a] AS arguments FROM unnest($2::text[]) a
    UNION ALL SELECT ARRAY[a, b] FROM unnest($3::text[]) a, unnest($3::text[]) b
    UNION ALL SELECT ARRAY['VARIADIC ' || v] FROM unnest(ARRAY['text[]', 'anyarray', 'anycompatiblearray']) v) arguments`;

/** Every operator that a text of ours contains, for any two operands. */
const OPERATORS = `DO $do$
DECLARE operator text; left_type text; right_type text; result text; made text;
BEGIN
  FOREACH left_type IN ARRAY TYPES LOOP FOREACH right_type IN ARRAY TYPES LOOP
    FOREACH operator IN ARRAY ARRAY['=', '<>', '<', '>', '<=', '>=', '~~', '!~~', '~', '+', '-', '*', '/', '||'] LOOP
      result := CASE WHEN operator IN ('+', '-', '*', '/', '||') THEN
        coalesce((SELECT o.oprresult::regtype::text FROM pg_operator o WHERE o.oprname = operator AND o.oprleft = left_type::regtype LIMIT 1), left_type)
        ELSE 'boolean' END;
      made := 'operator ' || result;
      BEGIN
        PERFORM pg_temp.make(made, ARRAY[left_type, right_type], result);
        EXECUTE format('CREATE OPERATOR public.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = public.%I)', operator, left_type, right_type, made);
      EXCEPTION WHEN others THEN NULL;
      END;
    END LOOP;
  END LOOP; END LOOP;
END $do$`;

/**
 * Creates overloads in the schema \`public\` of every function that texts call and of every operator, as a login that owns nothing else
 * could: each fails with {@link HOSTILE} when it is called.
 *
 * @param names - the functions
 */
export async function createHostileOverloads(sql: PgQueryable, names: readonly string[]): Promise<void> {
  const types = `ARRAY[${[...TYPES, ...ANY].map((type) => `'${type}'`).join(', ')}]`;
  await sql.query(MAKE);
  await sql.query(FUNCTIONS, [names, [...TYPES, ...ANY], [...LIKELY, ...ANY]]);
  await sql.query(OPERATORS.replaceAll('TYPES', types));
}
