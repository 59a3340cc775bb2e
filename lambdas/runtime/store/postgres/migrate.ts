import { MailroomError } from '../../base/errors.ts';
import { type Migrated, refuseNewer } from '../sql/schema-version.ts';
import { FOREIGN_OBJECTS, foreignObjects } from './foreign-objects.ts';
import { MIGRATIONS, type Migration } from './schema.ts';
import type { Database, Sql } from './sql.ts';
import { readOneRow, readRows } from './sql-rows.ts';

/** The version of the schema that this version of Mailroom reads and writes. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(({ version }) => version));

/** The number of the advisory lock that admits one migration at a time: MAIL in ASCII. */
const MIGRATION_LOCK = 0x4d41494c;

/**
 * The first statement of a transaction of Mailroom's own: every name resolves to PostgreSQL's function or operator, and to none that another
 * login has created in `public`. It ends with the transaction. Statements that run alone, or in a transaction of yours, have operands of
 * the exact types instead, for which PostgreSQL prefers its own.
 */
const OWN_NAMES = 'SET LOCAL search_path = pg_catalog, pg_temp';

const PREPARE = `IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'mailroom') THEN
  CREATE SCHEMA mailroom;
END IF;
CREATE TABLE IF NOT EXISTS mailroom.migration (
  version integer PRIMARY KEY,
  applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
);`;

const APPLIED = 'SELECT coalesce(max(version), 0)::text AS version FROM mailroom.migration';

/** Reads the version of a schema. @throws the database's error, also if it has no such table */
export async function schemaVersion(sql: Pick<Sql, 'query'>): Promise<number> {
  return (await readOneRow(sql, APPLIED, [], { version: 'number' })).version;
}

/**
 * Brings the schema `mailroom` up to date, in one transaction: tables, indexes, roles and grants. It may run at every deployment, and
 * concurrently. Run it as an owner of the database, or as a role that may create schemas and roles.
 *
 * @throws `NEWER_SCHEMA` if a newer version of Mailroom has migrated it, `FOREIGN_SCHEMA` if the schema, or an object in it, belongs to another
 * login
 *
 * @example
 * ```ts
 * const { from, to } = await migratePostgres(nodePostgres(pool));
 * ```
 */
export async function migratePostgres<Tx>(database: Database<Tx>): Promise<Migrated> {
  return database.transaction(async (tx) => {
    const sql = database.in(tx);
    await sql.query(OWN_NAMES);
    // As text, because Prisma reads no column of type void.
    await sql.query(`SELECT pg_catalog.pg_advisory_xact_lock(${MIGRATION_LOCK}::bigint)::text`);
    await refuseForeign(sql);
    await sql.query(block(PREPARE));
    const from = await schemaVersion(sql);
    refuseNewer(from, SCHEMA_VERSION);
    for (const { version, sql: step } of MIGRATIONS.filter((step) => step.version > from)) {
      await sql.query(block(step));
      await sql.query('INSERT INTO mailroom.migration (version) VALUES ($1)', [version]);
    }
    return { from, to: SCHEMA_VERSION };
  });
}

/** The timeouts of a login: a client that is gone, or waits for a lock, must not hold up others. */
const LOGIN_SETTINGS = {
  lock_timeout: '2s',
  idle_in_transaction_session_timeout: '30s',
  statement_timeout: '25s',
  client_connection_check_interval: '5s',
} as const;

/** A login and its part in Mailroom. */
export type PostgresGrant = {
  /** The name of an existing role with LOGIN. */
  readonly login: string;
} & (
  | {
      readonly role: 'mailroom_producer';
      /** The service whose events it writes. */
      readonly service: string;
    }
  | {
      readonly role: 'mailroom_consumer';
      /** The service whose events its handlers write. */
      readonly service: string;
      /** The consumers whose inbox it reads and writes. */
      readonly consumers: readonly string[];
    }
  | { readonly role: 'mailroom_relay' | 'mailroom_auditor' | 'mailroom_operator' | 'mailroom_connector' }
);

/**
 * Grants one of Mailroom's roles to a login in this database, for the rows of its service or its consumers, and sets the login's timeouts: `lock_timeout` 2 s, `idle_in_transaction_session_timeout` 30 s,
 * `statement_timeout` 25 s and `client_connection_check_interval` 5 s, except those of a connector. They apply to its new sessions. Repeat it at will;
 * a login may have several services and roles. Run it as the owner of the schema.
 *
 * @throws `BAD_ARGUMENT` if a producer has no service, or a consumer no name; also the database's error, for example if the login does not exist (42704)
 *
 * @example
 * ```ts
 * await grantPostgresRole(nodePostgres(pool), { login: 'orders', role: 'mailroom_producer', service: 'orders' });
 * ```
 */
export async function grantPostgresRole<Tx>(database: Database<Tx>, grant: PostgresGrant): Promise<void> {
  const { login, role } = grant;
  const scopes = scopesOf(grant);
  await database.transaction(async (tx) => {
    const sql = database.in(tx);
    const { query } = sql;
    await query(OWN_NAMES);
    await query(`GRANT ${role} TO ${quoted(login)}`);
    for (const [part, scope] of scopes) await query(REGISTER, [login, part, scope]);
    // A connector's snapshot is one long transaction.
    if (role === 'mailroom_connector') return;
    for (const [name, value] of Object.entries(LOGIN_SETTINGS))
      if (await hasSetting(sql, name)) await query(`ALTER ROLE ${quoted(login)} SET ${name} = '${value}'`);
  });
}

const REGISTER = `INSERT INTO mailroom.login (login, role, scope) VALUES ($1::text::name, $2::text, $3::text) ON CONFLICT DO NOTHING`;

/** The rows of `mailroom.login` that a grant needs. @throws `BAD_ARGUMENT` */
function scopesOf(grant: PostgresGrant): (readonly [role: string, scope: string])[] {
  if (!('service' in grant)) return [[grant.role.slice('mailroom_'.length), '']];
  const consumers = 'consumers' in grant ? grant.consumers : [];
  if ('consumers' in grant && consumers.length === 0)
    throw badGrant(grant, 'consumers is empty; name those whose inbox it has, e.g. ["payments"]');
  if ([grant.service, ...consumers].some((name) => typeof name !== 'string' || name === ''))
    throw badGrant(
      grant,
      'a service or consumer has no name; name the service whose events it writes, e.g. "orders"',
    );
  return [['producer', grant.service], ...consumers.map((name) => ['consumer', name] as const)];
}

function badGrant({ login, role }: PostgresGrant, problem: string): MailroomError {
  return new MailroomError('BAD_ARGUMENT', `${role} cannot be granted to ${login}: ${problem}.`);
}

/** `client_connection_check_interval` is new in PostgreSQL 14. */
async function hasSetting(sql: Sql, name: string): Promise<boolean> {
  const text = 'SELECT 1 FROM pg_catalog.pg_settings WHERE name = $1::text';
  return (await readRows(sql, text, [name], {})).length > 0;
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** @throws `FOREIGN_SCHEMA` */
async function refuseForeign(sql: Sql): Promise<void> {
  const [first, ...more] = await foreignObjects(sql, true);
  if (first === undefined) return;
  const others = more.length === 0 ? '' : `, and ${more.length} more`;
  throw new MailroomError(
    'FOREIGN_SCHEMA',
    `The schema mailroom has an object that does not belong to the role that migrates it: ${first.object}, of ${first.owner}${others}. Its code could run as this role, so nothing was changed. ` +
      `If ${first.owner} is the owner of this Mailroom, migrate as ${first.owner}; otherwise remove what it created.`,
  );
}

/** The migration to one version as a file for another tool: it creates what is missing and records the version. */
export function migrationFile({ version, sql }: Migration): string {
  const record = `INSERT INTO mailroom.migration (version) VALUES (${version});`;
  return `${block([version === 1 ? PREPARE : '', sql, record].filter((part) => part !== '').join('\n'))};\n`;
}

/**
 * Statements as one, which is atomic also for a tool that runs a file without a transaction. It refuses what belongs to another login, and
 * sets the search path for itself only: the tool may go on in the same transaction.
 */
function block(statements: string): string {
  return `DO $mailroom$
DECLARE
  path_before text := pg_catalog.current_setting('search_path'::text);
  foreign_object text;
BEGIN
PERFORM pg_catalog.set_config('search_path'::text, 'pg_catalog, pg_temp'::text, true);
SELECT object INTO foreign_object FROM (${FOREIGN_OBJECTS}
UNION ALL SELECT 'schema', nspowner FROM ours WHERE pg_get_userbyid(nspowner) <> current_user) objects LIMIT 1;
IF foreign_object IS NOT NULL THEN
  RAISE EXCEPTION 'The schema mailroom has an object that does not belong to the role that migrates it: %', foreign_object
    USING HINT = 'Its code could run as this role. Migrate as its owner, or remove it.';
END IF;
${statements}
PERFORM pg_catalog.set_config('search_path'::text, path_before, true);
END
$mailroom$`;
}
