import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { InboxChanges } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import { postgresInboxChanges } from '../../lambdas/runtime/store/postgres/inbox-operator.ts';
import { createAwsClock } from '../terminal/aws-clock.ts';
import type { DatabaseOutboxChanges } from './database-outbox-changes.ts';
import { type OpenMysql, openMysql } from './mysql-database.ts';
import { mysqlOutboxChanges } from './mysql-outbox-changes.ts';
import { mysqlRows } from './mysql-rows.ts';
import { type OpenPostgres, openPostgres } from './postgres-database.ts';
import { postgresOutboxChanges } from './postgres-outbox-changes.ts';
import { postgresRows } from './postgres-rows.ts';
import type { StoredRows } from './stored-rows.ts';

/** A database of services that has rows of a Mailroom, as the command reaches it. */
export type OpenDatabase = OpenPostgres | OpenMysql;

/**
 * The address of the database that the options and the environment select; `undefined` without one.
 *
 * @param option - the value of `--database`
 * @param names - the variables to read, in order
 * @throws `BAD_POSTGRES`, `BAD_MYSQL` if the variable has JSON, which only functions read
 * @param scheme - the beginning of the addresses that are preferred @default none
 */
export function databaseUrl(
  option: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
  scheme?: RegExp,
): string | undefined {
  if (option !== undefined && option !== '') return option;
  const set = names.flatMap((name) => (env[name] ? { name, value: env[name] } : []));
  const { name, value } = set.find(({ value }) => scheme?.test(value)) ?? set[0] ?? {};
  if (name !== undefined && value?.startsWith('{')) throw jsonAddress(name);
  return value;
}

/** Without the value, which may contain a password. */
function jsonAddress(name: string): MailroomError {
  const isMysql = name === 'MAILROOM_MYSQL';
  const form = isMysql ? 'mysql://<user>@<host>:<port>' : 'postgresql://<user>@<host>:<port>/<database>';
  return new MailroomError(
    isMysql ? 'BAD_MYSQL' : 'BAD_POSTGRES',
    `${name} is JSON, the form with which functions log in by IAM or a secret. Commands take a URL: pass --database ${form}.`,
  );
}

/**
 * Opens the database of a URL. It connects at the first statement, whose errors say what to do.
 *
 * @param env - the environment, which may hold a password
 * @throws `BAD_POSTGRES`, `BAD_MYSQL` if it is not such a URL
 */
export async function openDatabase(
  url: string,
  { MYSQL_PWD }: Readonly<Record<string, string | undefined>>,
): Promise<OpenDatabase> {
  return /^(mysql|mariadb):/i.test(url) ? openMysql(url, MYSQL_PWD) : openPostgres(url);
}

/** The rows of a Mailroom in a database. */
export function rowsIn(open: OpenDatabase): StoredRows {
  return open.engine === 'mysql' ? mysqlRows(open.whole) : postgresRows(open.whole);
}

/** The changes of the inboxes in a database. */
export function inboxChangesIn(open: OpenDatabase, clock: Clock): InboxChanges {
  return open.engine === 'mysql'
    ? mysqlInboxChanges({ database: open.database, clock })
    : postgresInboxChanges({ ...open, clock });
}

/** The changes of the events in a database. @param clock - waits before another try @default the machine's */
export function outboxChangesIn(open: OpenDatabase, clock: Clock = createAwsClock()): DatabaseOutboxChanges {
  const { database } = open;
  return open.engine === 'mysql'
    ? mysqlOutboxChanges({ database, clock, random: systemRandomBytes })
    : postgresOutboxChanges({ database, sleep: clock.sleep });
}
