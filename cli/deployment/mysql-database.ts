import { errorCode, errorMessage, MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { MYSQL_ADDRESS, tlsOption } from '../../lambdas/runtime/mysql/mysql-url.ts';
import { SCHEMA_VERSION, schemaVersion } from '../../lambdas/runtime/store/mysql/migrate.ts';
import { isOfConnection, mysqlErrno } from '../../lambdas/runtime/store/mysql/mysql-error.ts';
import { primaryView } from '../../lambdas/runtime/store/mysql/primary-view.ts';
import type { Database, Sql } from '../../lambdas/runtime/store/sql/database.ts';
import { isLoopback, readDatabaseUrl } from '../../lambdas/runtime/store/sql/database-address.ts';
import { type DatabaseErrors, explaining, type Reached } from './explained-database.ts';
import { portForwarding } from './port-forwarding.ts';

/** A MySQL or MariaDB database, as the command reaches it. */
export interface OpenMysql {
  readonly engine: 'mysql';
  readonly database: Database<unknown>;
  /** The same for reports. It fails on a replica: what that has not received yet would count as absent. */
  readonly whole: Sql;
  /** Its host and port; without a password. */
  readonly place: string;
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
 * @param given - a `mysql://` URL. Mailroom's tables are in the database `mailroom`, whatever it names
 * @param password - of a URL without one @default none
 * @throws `BAD_MYSQL` if it is not such a URL, or the driver is not installed
 */
export async function openMysql(given: string, password?: string | undefined): Promise<OpenMysql> {
  const url = readDatabaseUrl(MYSQL_ADDRESS, given, badAddress);
  const { host, port = String(MYSQL_ADDRESS.port), user, ssl = !isLoopback(host), ca, verifyHost } = url;
  if (host === '') throw badAddress('it has no host');
  if (user === undefined) throw badAddress('it has no user');
  const { createPool } = await import('mysql2/promise').catch(withoutDriver);
  const pool = createPool({
    host,
    port: Number(port),
    user,
    password: url.password ?? password,
    ...tlsOption({ ssl, ca, verifyHost }),
    connectionLimit: CONNECTIONS_MAX,
    connectTimeout: CONNECT_MS,
  });
  const place = `${host}:${port}`;
  const database = explaining(mysql2(pool), { place, login: user }, ERRORS);
  return { engine: 'mysql', database, whole: primaryView(database, place), place, end: () => pool.end() };
}

function withoutDriver(cause: unknown): never {
  throw new MailroomError(
    'BAD_MYSQL',
    'The driver of MySQL cannot be loaded. Install it beside @cdk-mailroom/cli: `npm install --save-dev mysql2`.',
    { cause },
  );
}

/** Server errors that name an unknown database, column or table, in this order. */
const NOT_THERE: ReadonlySet<number> = new Set([1049, 1054, 1146]);

const ERRORS: DatabaseErrors = {
  command: 'mysql',
  code: 'BAD_MYSQL',
  isUnknownName: (error) => NOT_THERE.has(mysqlErrno(error) ?? 0),
  isCurrent: async (sql) => (await schemaVersion(sql)) === SCHEMA_VERSION,
  explained: explainedError,
};

/** The login is not known, or has another password. */
const LOGIN_REFUSED: ReadonlySet<number> = new Set([1045, 1130, 1698]);

/** The login may not use this database, table or column, or lacks a privilege. */
const NOT_ALLOWED: ReadonlySet<number> = new Set([1044, 1142, 1143, 1227]);

/** An error of the database as the command reports it; any other error as it is. */
function explainedError(error: unknown, { place, login }: Reached): unknown {
  if (error instanceof MailroomError) return error;
  const errno = mysqlErrno(error);
  const said = errorMessage(error) || errorCode(error);
  if (errno === undefined)
    return isOfConnection(error)
      ? new MailroomError(
          'UNREACHABLE',
          `MySQL at ${place} does not respond (${said}). ${ENCRYPTION[errorCode(error)] ?? `Check the address. A database in a VPC needs a tunnel: \`${portForwarding(3_306)}\`. Then use its local address.`}`,
          { cause: error },
        )
      : error;
  if (LOGIN_REFUSED.has(errno))
    return new MailroomError(
      'BAD_CREDENTIALS',
      `MySQL at ${place} refused the login ${login} (${said}). Check the user and the password in --database; MYSQL_PWD also sets a password.`,
      { cause: error },
    );
  if (NOT_THERE.has(errno))
    return new MailroomError(
      'BAD_MYSQL',
      `MySQL at ${place} has no tables of this version of Mailroom (${said}). Create them: \`npx cdk-mailroom mysql migrate --database <url>\`.`,
      { cause: error },
    );
  if (NOT_ALLOWED.has(errno))
    return new MailroomError(
      'ACCESS_DENIED',
      `The login ${login} may not do this at ${place} (${said}). As an administrator of the server, grant the rights of an operator: \`GRANT SELECT, INSERT, UPDATE, DELETE ON mailroom.* TO …\`. A migration needs ALL PRIVILEGES ON mailroom.*.`,
      { cause: error },
    );
  if (READ_ONLY.has(errno))
    return new MailroomError(
      'BAD_DATABASE',
      `MySQL at ${place} is read-only (${said}): it is a replica. Nothing was changed. Connect to the primary.`,
      { cause: error },
    );
  return error;
}

/** The server is read-only: `read_only`, a transaction of a replica, `innodb_read_only`. */
const READ_ONLY: ReadonlySet<number> = new Set([1290, 1792, 1836]);

/** Codes of `mysql2` for a connection that cannot be encrypted, with their remedies. */
const ENCRYPTION: Readonly<Record<string, string>> = {
  HANDSHAKE_NO_SSL_SUPPORT:
    'The server has no encryption. Enable it, or add `?ssl-mode=DISABLED` to the address of a server in a private network.',
  HANDSHAKE_SSL_ERROR:
    'The certificate of the server was not accepted. Add `?ssl-ca=<file>` with the certificates of its authority to the address.',
};

/** Without the value, which may contain a password. */
function badAddress(problem: string): MailroomError {
  return new MailroomError(
    'BAD_MYSQL',
    `The address of the database cannot be used: ${problem}. Correct --database; expected mysql://<user>@<host>:<port>.`,
  );
}
