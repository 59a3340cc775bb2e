import type { Clock } from '../../lambdas/runtime/base/clock.ts';
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
 */
export function databaseUrl(
  option: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  names: readonly string[],
): string | undefined {
  return [option, ...names.map((name) => env[name])].find((value) => value !== undefined && value !== '');
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
