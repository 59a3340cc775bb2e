import { errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { isUnreachable } from '../../lambdas/runtime/postgres/audited-rows.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { readPostgresUrl, tlsOption } from '../../lambdas/runtime/postgres/postgres-url.ts';
import { type ForeignObject, foreignObjects } from '../../lambdas/runtime/store/postgres/foreign-objects.ts';
import { SCHEMA_VERSION, schemaVersion } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { type Database, type Sql, type SqlRow, sqlState } from '../../lambdas/runtime/store/postgres/sql.ts';
import { readJsonRows } from '../../lambdas/runtime/store/postgres/sql-rows.ts';
import { wholeView } from '../../lambdas/runtime/store/postgres/whole-view.ts';
import { isLoopback } from '../../lambdas/runtime/store/sql/database-address.ts';
import { shell } from '../terminal/shell.ts';
import { type DatabaseErrors, explaining, type Reached } from './explained-database.ts';
import { portForwarding } from './port-forwarding.ts';

/** A PostgreSQL database, as the command reaches it. */
export interface OpenPostgres {
  readonly engine: 'postgres';
  readonly database: Database<unknown>;
  /** The same for reports. It fails if row-level security hides rows from the login: what is hidden would count as absent. */
  readonly whole: Sql;
  /** The rows of a query, with their values as JSON has them. */
  read(query: string, values?: readonly unknown[]): Promise<readonly SqlRow[]>;
  /** Its host, port and name; without a password. */
  readonly place: string;
  /** Finds objects in its schema `mailroom` that another login than its owner has created. */
  foreignObjects(): Promise<readonly ForeignObject[]>;
  /** Closes its connections. */
  end(): Promise<void>;
}

/** Concurrent statements of a command: it must not take the connections of the application. */
const CONNECTIONS_MAX = 4;

/** The terminal must not be silent for longer, milliseconds. */
const CONNECT_MS = 5_000;

/**
 * Opens a database. It connects at the first statement, whose errors say what to do.
 *
 * @param given - a `postgresql://` URL
 * @throws `BAD_POSTGRES` if it is not such a URL
 */
export async function openPostgres(given: string): Promise<OpenPostgres> {
  const { host, port = '5432', database: name, user, password, ...tls } = readPostgresUrl(given, badAddress);
  if (host === '') throw badAddress('it has no host');
  const { Pool } = (await import('pg')).default;
  const pool = new Pool({
    host,
    port: Number(port),
    database: name,
    user,
    password,
    ssl: tlsOption({ ssl: !isLoopback(host), ...tls }),
    max: CONNECTIONS_MAX,
    connectionTimeoutMillis: CONNECT_MS,
    allowExitOnIdle: true,
    application_name: 'cdk-mailroom',
  });
  // Without a listener, a connection that the server closes while it is idle would end the process.
  pool.on('error', () => {});
  const place = `${host}:${port}${name === undefined ? '' : `/${name}`}`;
  const login = user ?? 'its login';
  const database = explaining(nodePostgres(pool), { place, login }, ERRORS);
  const whole = wholeView(database);
  return {
    engine: 'postgres',
    database,
    whole,
    read: (query, values) => readJsonRows(whole, query, values),
    place,
    foreignObjects: () => foreignObjects(database, false),
    end: () => pool.end(),
  };
}

/** The codes of a schema, a table and a column that do not exist. */
const NOT_THERE: ReadonlySet<string> = new Set(['3F000', '42P01', '42703']);

const ERRORS: DatabaseErrors = {
  command: 'postgres',
  code: 'BAD_POSTGRES',
  isUnknownName: (error) => NOT_THERE.has(sqlState(error) ?? ''),
  isCurrent: async (sql) => (await schemaVersion(sql)) === SCHEMA_VERSION,
  explained: explainedError,
};

/** An error of the database as the command reports it; any other error as it is. */
function explainedError(error: unknown, { place, login }: Reached): unknown {
  if (error instanceof MailroomError) return error;
  const state = sqlState(error);
  const said = errorMessage(error) || String(Object(error).code);
  if (isUnreachable(error))
    return new MailroomError(
      'UNREACHABLE',
      `PostgreSQL at ${place} does not respond (${said}). Check the address. A database in a VPC needs a tunnel: \`${portForwarding(5_432)}\`. Then use its local address.`,
      { cause: error },
    );
  if (/^28/.test(state ?? ''))
    return new MailroomError(
      'BAD_CREDENTIALS',
      `PostgreSQL at ${place} refused the login ${login} (${said}). Check the user and the password in --database; PGPASSWORD also sets a password.`,
    );
  if (state === '3D000')
    return new MailroomError('BAD_POSTGRES', `${said}. Name an existing database: --database ${place}.`);
  if (NOT_THERE.has(state ?? ''))
    return new MailroomError(
      'BAD_POSTGRES',
      `The database ${place} has no tables of this version of Mailroom (${said}). Create them: \`npx cdk-mailroom postgres migrate --database <url>\`.`,
    );
  if (state === '42501')
    return new MailroomError(
      'ACCESS_DENIED',
      `The login ${login} may not do this in ${place} (${said}). An owner of the database grants the rights of an operator: \`${shell`npx cdk-mailroom postgres grant ${login} --role operator`}\`. A migration and a grant need the owner of the schema mailroom, which may create schemas and roles (CREATEROLE).`,
    );
  return error;
}

/** Without the value, which may contain a password. */
function badAddress(problem: string): MailroomError {
  return new MailroomError(
    'BAD_POSTGRES',
    `The address of the database cannot be used: ${problem}. Correct --database; expected postgresql://<user>@<host>:<port>/<database>.`,
  );
}
