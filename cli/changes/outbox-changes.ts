import { discardDead, markResent, requeueDead } from '../../lambdas/runtime/store/dynamo/outbox-operator.ts';
import type { Note, OperationDeps } from '../../lambdas/runtime/store/operation-record.ts';
import type { DatabaseOutboxChanges } from '../deployment/database-outbox-changes.ts';
import { type OpenDatabase, outboxChangesIn } from '../deployment/open-database.ts';

/** Dependencies of {@link outboxChangesOf}. */
export interface OutboxChangesDeps extends OperationDeps {
  /** @default all rows are in the table */
  readonly database?: OpenDatabase | undefined;
}

/** The changes of a Mailroom's events, where they are. */
export function outboxChangesOf(deps: OutboxChangesDeps): OutboxChanges {
  const { database, clock } = deps;
  const dynamo = dynamoOutboxChanges(deps);
  return database === undefined ? dynamo : combinedOutboxChanges(outboxChangesIn(database, clock), dynamo);
}

/**
 * An operator's changes of events: `dynamoOutboxChanges` in the table of a Mailroom, `DatabaseOutboxChanges` in a database, and
 * `combinedOutboxChanges` in whichever has the event. Each is decided by the row as it is then, not as a plan has read it.
 */
export interface OutboxChanges {
  /** DEAD -> PENDING. @returns `false` if the event is not DEAD, or no longer @throws `NO_SUCH_EVENT`, `COMMIT_UNKNOWN` */
  requeue(eventId: string, note: Note): Promise<boolean>;
  /** DEAD -> DISCARDED. @returns `false` if the event is not DEAD, or no longer @throws `NO_SUCH_EVENT`, `COMMIT_UNKNOWN` */
  discard(eventId: string, note: Note): Promise<boolean>;
  /**
   * Records in a published event's row that it is about to be sent again to one of its consumers: the audit allows for its delivery.
   *
   * @returns `false` if it has no such row, or no longer
   * @throws `COMMIT_UNKNOWN`
   */
  markResent(eventId: string, note: Note): Promise<boolean>;
  /**
   * Prepares a PUBLISHED event for being published once more.
   *
   * @param sentAt - when it was sent last, as the operator has read it
   * @returns `queued`: its relay publishes it; `on-request`: the sweep's function publishes it when it is called; `absent`: it has no row, or
   * no longer
   * @throws `COMMIT_UNKNOWN`
   */
  publishAgain(eventId: string, sentAt: number, note: Note): Promise<'queued' | 'on-request' | 'absent'>;
}

/** Changes the events in a table. */
function dynamoOutboxChanges(deps: OperationDeps): OutboxChanges {
  const mark = async (eventId: string) => (await markResent(deps, eventId)) !== undefined;
  return {
    requeue: (eventId, note) => requeueDead(deps, eventId, note),
    discard: (eventId, note) => discardDead(deps, eventId, note),
    markResent: mark,
    publishAgain: async (eventId) => ((await mark(eventId)) ? 'on-request' : 'absent'),
  };
}

/** Changes an event in the database, if that has it, or else in the table: where the reports have read it. */
export function combinedOutboxChanges(database: DatabaseOutboxChanges, dynamo: OutboxChanges): OutboxChanges {
  return {
    requeue: async (...event) => (await database.requeue(...event)) ?? dynamo.requeue(...event),
    discard: async (...event) => (await database.discard(...event)) ?? dynamo.discard(...event),
    markResent: async (...event) => (await database.markResent(...event)) || dynamo.markResent(...event),
    publishAgain: async (...event) => {
      const prepared = await database.publishAgain(...event);
      return prepared === 'absent' ? dynamo.publishAgain(...event) : prepared;
    },
  };
}
