import { booleanText, ID, idParameter } from '../../lambdas/runtime/store/mysql/expressions.ts';
import type { OperatorDeps } from '../../lambdas/runtime/store/mysql/operation-log.ts';
import { changeEvents } from '../../lambdas/runtime/store/mysql/outbox-operator.ts';
import { readOneRow } from '../../lambdas/runtime/store/sql/sql-rows.ts';
import { type DatabaseOutboxChanges, databaseOutboxChanges } from './database-outbox-changes.ts';

const HAS = `SELECT ${booleanText(`EXISTS (SELECT 1 FROM mailroom.event e WHERE e.event_id = ${ID})
  OR EXISTS (SELECT 1 FROM mailroom.dead d WHERE d.event_id = ${ID})`)} AS has`;

/** Changes the events in a database. */
export function mysqlOutboxChanges(deps: OperatorDeps<unknown>): DatabaseOutboxChanges {
  return databaseOutboxChanges({
    change: (...change) => changeEvents(deps, ...change),
    has: async (eventId) => {
      const id = idParameter(eventId);
      return (await readOneRow(deps.database, HAS, [id, id], { has: 'boolean' })).has;
    },
  });
}
