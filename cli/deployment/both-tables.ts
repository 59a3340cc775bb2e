import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { inboxHistoryKey, SWEEP_STATE_KEY } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Key, Page, Query, Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { PostgresTable } from './postgres-table.ts';

/** The rows of one consumer: its inbox, the pointers to its messages, and the places of its aggregates. */
const OF_CONSUMER = /^(?:INBOX|REJECTED|FAILED|LAST)#([^#]+)/;

/**
 * The table of a Mailroom whose services also use PostgreSQL: a report reads the rows of both as one outbox and one inbox, and follows an
 * event from either to the other. Writes go to DynamoDB; those of rows in PostgreSQL are refused.
 */
export function bothTables(postgres: PostgresTable, dynamo: Table): Table {
  const getEach: Table['getEach'] = async (keys, options) => {
    const [ours, theirs] = await Promise.all([dynamo.getEach(keys, options), postgres.getEach(keys)]);
    return keys.map((_key, index) => theirs[index] ?? ours[index]);
  };

  const query = async (query: Query): Promise<Page> => {
    const pages = await Promise.all([dynamo.query(query), postgres.query(query)]);
    // A page that goes on says nothing about what comes after its end: the next query reads the rest of the other page again.
    const [end] = pages.flatMap(({ cursor }) => (cursor === undefined ? [] : [String(cursor.SK)])).toSorted();
    const items = pages
      .flatMap((page) => page.items)
      .filter(({ SK }) => end === undefined || String(SK) <= end)
      .toSorted((a, b) => (String(a.SK) < String(b.SK) ? -1 : 1));
    return { items, ...(end !== undefined && { cursor: { PK: query.pk, SK: end } }) };
  };

  /** A consumer without a row of the message has its inbox where its history is. */
  const refuseInPostgres = async (keys: readonly Key[]): Promise<void> => {
    const histories = keys.flatMap(({ PK }) => {
      const consumer = OF_CONSUMER.exec(PK)?.[1];
      return consumer === undefined ? [] : [inboxHistoryKey(consumer)];
    });
    const found = await postgres.getEach([...keys, ...histories]);
    if (found.some((item) => item !== undefined)) throw readOnly();
  };

  return {
    name: dynamo.name,
    get: async (key, options) => {
      const isState = key.PK === SWEEP_STATE_KEY.PK;
      return isState ? dynamo.get(key, options) : (await getEach([key], options))[0];
    },
    getEach,
    query,
    write: async (write) => {
      await refuseInPostgres([keyOf(write)]);
      return dynamo.write(write);
    },
    transact: async (actions, token) => {
      await refuseInPostgres(actions.map(keyOf));
      return dynamo.transact(actions, token);
    },
    updateEach: async (updates) => {
      await refuseInPostgres(updates.map(({ key }) => key));
      return dynamo.updateEach(updates);
    },
    createdAt: async () => Math.min(...(await Promise.all([dynamo.createdAt(), postgres.createdAt()]))),
  };
}

function keyOf({ Put, Update, Delete, ConditionCheck }: TransactAction): Key {
  return (Put?.Item ?? Update?.Key ?? Delete?.Key ?? ConditionCheck?.Key) as Item & Key;
}

function readOnly(): MailroomError {
  return new MailroomError(
    'NOT_IN_POSTGRES',
    'This row is in PostgreSQL, where this command changes none. Nothing was changed. Requeue DEAD events with `npx cdk-mailroom postgres ' +
      'requeue`. Rejected messages run again when their dead letters return to the queue: `npx cdk-mailroom dlq redrive`.',
  );
}
