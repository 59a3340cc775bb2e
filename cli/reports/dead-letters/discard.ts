import { discardMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { discardDead } from '../../../lambdas/runtime/outbox/outbox-operator.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { Note, OperationDeps } from '../../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import { readInbox } from '../../deployment/message-reader.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { type DeadLetter, type DeadLetterSource, inboxId } from './dead-letters.ts';
import { isHandled, readStanding, unsentReplacement } from './standing.ts';

/** Dependencies of {@link discard}. */
export interface DiscardDeps extends OperationDeps {
  readonly queues: Pick<Queues, 'remove'>;
}

/** The operator's note on a discard. */
export interface DiscardNote extends Note {
  /** The operator has asked the providers of all effects. @default false */
  readonly effectsChecked?: boolean | undefined;
}

/**
 * The result for a dead letter. Of one with `discard-replacement`, the event in its place was never received, and is discarded. A
 * `handled` one is deleted; `busy`, `unsent` and `unreadable` ones stay, as do those with `effects-unchecked`, as do `untried` ones, because of Ctrl-C, and those that have
 * `changed` since the plan that was confirmed.
 */
export type DiscardOutcome =
  | 'discard'
  | 'discard-replacement'
  | 'discarded'
  | 'handled'
  | 'busy'
  | 'unsent'
  | 'unreadable'
  | 'effects-unchecked'
  | 'untried'
  | 'changed';

/** Sets the row DISCARDED, then deletes the dead letter: a message that arrives in between is absorbed. */
export async function discard(
  deps: DiscardDeps,
  source: DeadLetterSource,
  deadLetter: DeadLetter,
  note: DiscardNote,
): Promise<DiscardOutcome> {
  if (source.kind === 'dead') return decideDead(deps, deadLetter.id, note);
  const { received } = deadLetter;
  const decided = source.kind === 'stream' ? 'discarded' : await decide(deps, source, deadLetter, note);
  if (stays(decided)) return decided;
  await settleUnreadable(deps, source, [deadLetter], note);
  if (received !== undefined) await deps.queues.remove(source.url, received);
  return decided;
}

async function decideDead(deps: DiscardDeps, eventId: string, note: Note): Promise<DiscardOutcome> {
  if (await discardDead(deps, eventId, note)) return 'discarded';
  const row = readOutboxRow(await deps.table.get(outboxKeyOf(eventId), { consistent: true }));
  return row !== undefined && isUnreadable(row) ? 'unreadable' : 'handled';
}

/**
 * Sets the inbox row DISCARDED: of the event in its place, if that was never received, or else of its own event. If a resend has sent
 * the event in its place since the plan, that event goes on: the dead letter is handled.
 */
async function decide(
  deps: DiscardDeps,
  { consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
  deadLetter: DeadLetter,
  note: DiscardNote,
): Promise<DiscardOutcome> {
  const replacement = unsentReplacement(deadLetter);
  const { status } = await discardMessage(deps, {
    ...note,
    consumer: consumer.name,
    eventId: replacement ?? inboxId(deadLetter),
    unlessReceived: replacement !== undefined,
  });
  if (status === 'leased') return 'busy';
  if (status === 'unreadable' || status === 'effects-unchecked') return status;
  // A resend may have come first: then its event is the one that would be lost.
  const standing = await readStanding(deps.table, consumer.name, inboxId(deadLetter));
  if (unsentReplacement(standing) !== undefined) return 'unsent';
  if (status === 'received') return isHandled(standing) ? 'handled' : 'unreadable';
  return status === 'processed' ? 'handled' : 'discarded';
}

/** True for the result of a dead letter that stays in its source. */
export function stays(outcome: DiscardOutcome): boolean {
  return ['busy', 'unsent', 'unreadable', 'effects-unchecked'].includes(outcome);
}

/**
 * Settles the rows of messages that could not be read when they were rejected, and whose event can be read today. Such a message has a
 * row and a REJECTED pointer under its SQS message id, which SQS keeps when it moves the message to the dead-letter queue. The event
 * is done under its own id, so that row would stay REJECTED permanently.
 *
 * @param done - dead letters whose events are processed or discarded
 */
export async function settleUnreadable(
  deps: OperationDeps,
  source: DeadLetterSource,
  done: readonly DeadLetter[],
  { by, reason }: Note,
): Promise<void> {
  if (source.kind !== 'consumer') return; // a rule's dead letter never reached the consumer
  const { name } = source.consumer;
  await eachOf(done, async ({ id, eventId }) => {
    const unreadId = inboxId({ id, eventId: undefined });
    // Without a row there is nothing to settle, and a discard would create one.
    if (
      eventId === undefined ||
      readable(await readInbox(deps.table, name, unreadId, true))?.status !== 'REJECTED'
    )
      return;
    await discardMessage(deps, {
      consumer: name,
      eventId: unreadId,
      by,
      reason: `Read as ${eventId}: ${reason}`,
    });
  });
}
