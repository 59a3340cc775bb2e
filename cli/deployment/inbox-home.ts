import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { InboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';

/**
 * Finds out whether the inbox of a consumer is in PostgreSQL: by the directory, or because only the database has its history.
 */
export function postgresHome(
  directory: Pick<Directory, 'consumers'>,
  postgres: Pick<InboxRows, 'history'>,
  dynamo: Pick<InboxRows, 'history'>,
): (consumer: string) => Promise<boolean> {
  return async (consumer) => {
    if (directory.consumers.find(({ name }) => name === consumer)?.inbox === 'postgres') return true;
    const [inPostgres, inDynamo] = await Promise.all(
      [postgres, dynamo].map(({ history }) => history(consumer)),
    );
    return inPostgres !== undefined && inDynamo === undefined;
  };
}
