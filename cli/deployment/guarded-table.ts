import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { INBOX_PREFIX } from '../../lambdas/runtime/store/keys.ts';
import type { Item, Key, Table, TransactAction } from '../../lambdas/runtime/store/table.ts';
import type { StoredRows } from './stored-rows.ts';

/** The rows of one consumer: its inbox, the pointers to its messages, and the places of its aggregates. */
const OF_CONSUMER = /^(?:INBOX|REJECTED|FAILED|LAST)#([^#]+)/;

/** The table of a Mailroom whose services also use their own database. It refuses to change an inbox row that is in the database. */
export function guardedTable(dynamo: Table, database: StoredRows): Table {
  const refuseRows = async (keys: readonly Key[]): Promise<void> => {
    const found = await database.inbox.byEvents(keys.flatMap(messageOf), (_message, row) => row);
    if (found.some((row) => row !== undefined)) throw readOnly();
  };

  const refuseInDatabase = async (keys: readonly Key[]): Promise<void> => {
    await refuseRows(keys);
    // A consumer without a row of the message has its inbox where its history is.
    for (const consumer of new Set(keys.flatMap(({ PK }) => OF_CONSUMER.exec(PK)?.[1] ?? [])))
      if ((await database.inbox.history(consumer)) !== undefined) throw readOnly();
  };

  return {
    ...dynamo,
    get: async (key, options) => {
      const item = await dynamo.get(key, options);
      // A change decides by the row that it reads.
      if (item === undefined) await refuseRows([key]);
      return item;
    },
    write: async (write) => {
      await refuseInDatabase([keyOf(write)]);
      return dynamo.write(write);
    },
    transact: async (actions, token) => {
      await refuseInDatabase(actions.map(keyOf));
      return dynamo.transact(actions, token);
    },
    updateEach: async (updates) => {
      await refuseInDatabase(updates.map(({ key }) => key));
      return dynamo.updateEach(updates);
    },
  };
}

function messageOf({ PK, SK }: Key) {
  if (!PK.startsWith(INBOX_PREFIX) || SK !== 'MESSAGE') return [];
  const [consumer = '', ...eventId] = PK.slice(INBOX_PREFIX.length).split('#');
  return [{ consumer, eventId: eventId.join('#') }];
}

function keyOf({ Put, Update, Delete, ConditionCheck }: TransactAction): Key {
  return (Put?.Item ?? Update?.Key ?? Delete?.Key ?? ConditionCheck?.Key) as Item & Key;
}

function readOnly(): MailroomError {
  return new MailroomError(
    'NOT_IN_DATABASE',
    'This inbox row is in the database, where this command changes none. Nothing was changed. End a message with `npx cdk-mailroom messages ' +
      'resolve` or `dlq discard`.',
  );
}
