import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { DATABASE_NAMES } from '../../lambdas/runtime/base/database-engine.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import type { InboxChanges } from '../../lambdas/runtime/inbox/inbox-operator.ts';
import type { Directory } from '../../lambdas/runtime/operations/directory.ts';
import type { InboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';
import { dynamoInboxChanges } from '../../lambdas/runtime/store/dynamo/inbox-operator.ts';
import { sequenceOf } from '../../lambdas/runtime/store/keys.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { databaseHome, refuseUnreached } from './inbox-home.ts';
import { inboxChangesIn, type OpenDatabase } from './open-database.ts';
import type { StoredRows } from './stored-rows.ts';

interface InboxStore {
  readonly name: string;
  readonly changes: InboxChanges;
  readonly inbox: Pick<InboxRows, 'byEvent' | 'history'>;
}

/** Dependencies of the changes of the inboxes. */
interface InboxParts {
  /** The database that was given, with its rows. Absent: none was. */
  readonly database?: OpenDatabase | undefined;
  readonly inDatabase?: Pick<StoredRows, 'inbox'> | undefined;
  readonly table: Table;
  readonly inTable: Pick<StoredRows, 'inbox'>;
  readonly clock: Clock;
  readonly directory: Pick<Directory, 'consumers'>;
}

/** The changes of the inboxes of a Mailroom, in its table and in the database that was given. */
export function inboxChangesOf(parts: InboxParts): InboxChanges {
  const { database, inDatabase, table, inTable, clock, directory } = parts;
  const inDynamo = dynamoInboxChanges({ table, clock });
  if (database === undefined || inDatabase === undefined) return reached(inDynamo, parts);
  const { inbox } = inDatabase;
  const changes = combinedInboxChanges(
    { name: DATABASE_NAMES[database.engine], changes: inboxChangesIn(database, clock), inbox },
    { name: 'DynamoDB', changes: inDynamo, inbox: inTable.inbox },
    databaseHome(directory, inbox, inTable.inbox),
  );
  return reached(changes, parts);
}

/** Changes that refuse those of an inbox in another database. */
function reached(changes: InboxChanges, { directory, database }: InboxParts): InboxChanges {
  const refuse = (consumer: string) => {
    const entry = directory.consumers.find(({ name }) => name === consumer);
    if (entry !== undefined) refuseUnreached(entry, database?.engine);
  };
  const at = (key: string) => refuse(sequenceOf(key).consumer);
  return {
    read: async (consumer, eventId) => {
      refuse(consumer);
      return changes.read(consumer, eventId);
    },
    allow: async (consumer, allowed) => {
      refuse(consumer);
      return changes.allow(consumer, allowed);
    },
    lastSequence: async (key) => {
      at(key);
      return changes.lastSequence(key);
    },
    raise: async (raise, note) => {
      at(raise.key);
      return changes.raise(raise, note);
    },
  };
}

/**
 * The changes of the inboxes in two stores. A message is decided where its consumer's workers look for its row: a
 * decision in the other store would let it run.
 *
 * @param isInDatabase - from {@link databaseHome}
 */
function combinedInboxChanges(
  database: InboxStore,
  dynamo: InboxStore,
  isInDatabase: (consumer: string) => Promise<boolean>,
): InboxChanges {
  /** @throws `NOT_IN_DATABASE` for a row from before the consumer moved */
  const homeOf = async (consumer: string, eventId: string): Promise<InboxChanges> => {
    const [home, other] = (await isInDatabase(consumer)) ? [database, dynamo] : [dynamo, database];
    const rows = await Promise.all([home, other].map(({ inbox }) => inbox.byEvent(consumer, eventId, true)));
    if (rows[0] === undefined && rows[1] !== undefined) throw moved(consumer, eventId, home, other);
    return home.changes;
  };
  const changesAt = async (key: string) =>
    ((await isInDatabase(sequenceOf(key).consumer)) ? database : dynamo).changes;
  return {
    read: async (consumer, eventId) => (await homeOf(consumer, eventId)).read(consumer, eventId),
    allow: async (consumer, allowed) => (await homeOf(consumer, allowed.eventId)).allow(consumer, allowed),
    lastSequence: async (key) => (await changesAt(key)).lastSequence(key),
    raise: async (raise, note) => (await changesAt(raise.key)).raise(raise, note),
  };
}

function moved(consumer: string, eventId: string, home: InboxStore, other: InboxStore): MailroomError {
  return new MailroomError(
    'NOT_IN_DATABASE',
    `The row of ${eventId} is in ${other.name}, and the inbox of ${consumer} is in ${home.name} now, where a redrive runs the message. Nothing was changed. ` +
      `If its work is done, let its handler recognize that, or delete its dead letter in AWS.`,
  );
}
