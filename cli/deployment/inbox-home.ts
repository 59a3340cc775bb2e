import { DATABASE_NAMES, type DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { ConsumerEntry, Directory, SourceConsumer } from '../../lambdas/runtime/operations/directory.ts';
import type { InboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';

/**
 * Finds out whether the inbox of a consumer is in the database: by the directory, or because only the database has its history.
 */
export function databaseHome(
  directory: Pick<Directory, 'consumers'>,
  database: Pick<InboxRows, 'history'>,
  dynamo: Pick<InboxRows, 'history'>,
): (consumer: string) => Promise<boolean> {
  return async (consumer) => {
    if (directory.consumers.find(({ name }) => name === consumer)?.inbox !== undefined) return true;
    const [inDatabase, inDynamo] = await Promise.all(
      [database, dynamo].map(({ history }) => history(consumer)),
    );
    return inDatabase !== undefined && inDynamo === undefined;
  };
}

/** The URL of a database in errors, and the variable that also holds it. */
const ADDRESSES: Readonly<Record<DatabaseEngine, string>> = {
  postgres: '--database postgresql://<user>@<host>:<port>/<database>, or set MAILROOM_POSTGRES',
  mysql: '--database mysql://<user>@<host>:<port>, or set MAILROOM_MYSQL',
};

/**
 * Refuses a decision about a message of a consumer whose inbox is in a database that was not given: in any other storage, it would not reach the row that
 * its workers read.
 *
 * @param given - the engine of the database that was given; `undefined` without one
 * @throws `NOT_IN_DATABASE`, which names the option
 */
export function refuseUnreached(
  entry: ConsumerEntry | SourceConsumer,
  given: DatabaseEngine | undefined,
): void {
  const inbox = 'inbox' in entry ? entry.inbox : undefined;
  if (inbox === undefined || inbox === given) return;
  const other =
    given === undefined ? 'no database was given' : `the given database is ${DATABASE_NAMES[given]}`;
  throw new MailroomError(
    'NOT_IN_DATABASE',
    `The inbox of ${entry.name} is in ${DATABASE_NAMES[inbox]}, and ${other}. Nothing was changed. Repeat the command with ${ADDRESSES[inbox]}.`,
  );
}
