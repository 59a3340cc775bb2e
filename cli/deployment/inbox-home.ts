import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
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
