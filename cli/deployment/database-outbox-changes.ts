import type { Note } from '../../lambdas/runtime/store/operation-record.ts';

/** An operator's changes of events in a database, as `OutboxChanges` has them; `undefined` or `absent` for an event that it does not have. */
export interface DatabaseOutboxChanges {
  requeue(eventId: string, note: Note): Promise<boolean | undefined>;
  discard(eventId: string, note: Note): Promise<boolean | undefined>;
  markResent(eventId: string, note: Note): Promise<boolean>;
  publishAgain(eventId: string, sentAt: number, note: Note): Promise<'queued' | 'absent'>;
}
