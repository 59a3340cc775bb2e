import { repairMissing } from '../../../lambdas/runtime/operations/audit/audit-repair.ts';
import type { Directory } from '../../../lambdas/runtime/operations/directory.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { Note } from '../../../lambdas/runtime/store/operation-record.ts';
import type { DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { outboxChangesOf } from '../outbox-changes.ts';
import { type DiscardDeps, type Discarded, type DiscardNote, discardOne } from './discard-one.ts';
import type { DiscardStep } from './discard-plan.ts';

/** Dependencies of {@link discardSentFirst}. */
export interface SentFirstDeps extends DiscardDeps {
  readonly directory: Directory;
  readonly queues: Pick<Queues, 'remove' | 'depth' | 'send'>;
}

/**
 * Discards a dead letter; of an unreadable one, sends the events that it stands for to its consumer first.
 *
 * Invariant: a message that stands for an event of the outbox is discarded only once that event was sent to its consumer, or received by it.
 * If the command dies in between, the next run finds the event received, or sends a duplicate that the inbox absorbs.
 */
export async function discardSentFirst(
  deps: SentFirstDeps,
  source: DeadLetterSource,
  step: DiscardStep,
  note: DiscardNote,
): Promise<Discarded> {
  if (step.outcome !== 'repair') return discardOne(deps, source, step.deadLetter, note);
  const message = await unsentText(deps, step, note);
  if (message !== undefined) return { outcome: 'failed', message };
  const discarded = await discardOne(deps, source, step.deadLetter, note);
  return discarded.outcome === 'discarded' ? { outcome: 'repaired', message: step.message } : discarded;
}

/** Sends the events of a step to its consumer. @returns why some of them were not sent */
async function unsentText(
  deps: SentFirstDeps,
  { events = [] }: DiscardStep,
  note: Note,
): Promise<string | undefined> {
  const sending = { ...deps, outboxChanges: outboxChangesOf(deps) };
  const { unsent } = await repairMissing(sending, events, note, 'dlq discard');
  return unsent.map(({ eventId, why }) => `Event ${eventId} was not sent: ${why}.`).join(' ') || undefined;
}
