import { isEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { OutboxChange } from '../../lambdas/runtime/store/mysql/outbox-operator.ts';
import type { Note } from '../../lambdas/runtime/store/operation-record.ts';

/** An operator's changes of events in a database, as `OutboxChanges` has them; `undefined` or `absent` for an event that it does not have. */
export interface DatabaseOutboxChanges {
  requeue(eventId: string, note: Note): Promise<boolean | undefined>;
  discard(eventId: string, note: Note): Promise<boolean | undefined>;
  markResent(eventId: string, note: Note): Promise<boolean>;
  publishAgain(eventId: string, sentAt: number, note: Note): Promise<'queued' | 'absent'>;
}

/** The changes and the reads of one kind of database. */
interface ChangedDatabase {
  /** @returns the ids of the events that were changed */
  change(
    name: OutboxChange,
    eventIds: readonly string[],
    reason: string,
    sentUntil?: number,
  ): Promise<readonly string[]>;
  /** True if it has the event. */
  has(eventId: string): Promise<boolean>;
}

/** Times of the plan are rounded to milliseconds. */
const ROUNDED_MS = 1;

/** Changes the events in a database. */
export function databaseOutboxChanges(database: ChangedDatabase): DatabaseOutboxChanges {
  const change = async (name: OutboxChange, eventId: string, { reason }: Note, sentUntil?: number) =>
    isEventId(eventId) && (await database.change(name, [eventId], reason, sentUntil)).length > 0;
  const has = async (eventId: string) => isEventId(eventId) && (await database.has(eventId));
  return {
    requeue: async (eventId, note) =>
      (await change('requeue', eventId, note)) || ((await has(eventId)) ? false : undefined),
    discard: async (eventId, note) =>
      (await change('discard', eventId, note)) || ((await has(eventId)) ? false : undefined),
    markResent: (eventId, note) => change('mark_resent', eventId, note),
    // Sent by another operator since: it is on its way.
    publishAgain: async (eventId, sentAt, note) =>
      (await change('republish', eventId, note, sentAt + ROUNDED_MS)) || (await has(eventId))
        ? 'queued'
        : 'absent',
  };
}
