import {
  REJECTED_COMMIT,
  type RejectRequest,
  type SettleAnswer,
} from '../../../lambdas/runtime/consume/settle-requests.ts';
import { type EffectsChecked, effectsDigest } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { discardMessage, type MessageDeps } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import type { Note } from '../../../lambdas/runtime/store/operation-record.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { unknownReadingText } from '../../deployment/deployed-reading.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import type { DeadLetter, DeadLetterSource } from '../../reports/dead-letters/dead-letters.ts';
import { placeOfLetter } from '../../reports/dead-letters/redrive-order.ts';
import {
  inboxId,
  isHandled,
  readStanding,
  supersededBy,
  unreadId,
  unsentReplacement,
} from '../../reports/dead-letters/standing.ts';
import { isStrict, placed, unknownPlaceText } from '../../reports/order/place-of-message.ts';
import { endingOf, type FinalRow } from '../message-ending.ts';
import { type OutboxChangesDeps, outboxChangesOf } from '../outbox-changes.ts';

/** Dependencies of {@link discardOne}. */
export interface DiscardDeps extends MessageDeps, OutboxChangesDeps {
  readonly stored: StoredRows;
  readonly queues: Pick<Queues, 'remove'>;
  /** Has the consumer's function run its `rejected` function. @default the message is discarded without it */
  readonly reject?:
    | ((consumer: ConsumerEntry, request: RejectRequest) => Promise<SettleAnswer['settled']>)
    | undefined;
}

/** The operator's note on a discard. */
export interface DiscardNote extends Note {
  /** The operator has asked the providers of all effects. @default false */
  readonly effectsChecked?: boolean | undefined;
  /** The `rejected` function was wanted: the outcome says whether it has committed. @default false */
  readonly rejects?: boolean | undefined;
}

/**
 * The result for a dead letter. `repair` and `repaired`: it cannot be read and stands for events of the outbox that its consumer has never
 * received: they are sent to the consumer before it is discarded. Of one with `discard-replacement`, the event in its place was never received, and is discarded. `reject`
 * and `rejected`: with what its handler's `rejected` function commits. A `handled` one is deleted. All others stay: `busy`, `unsent` and
 * `unreadable` ones, those with `effects-unchecked` or whose `row-deleted` by hand, `not-rejectable` ones, `untried` ones, because of
 * Ctrl-C, those that have `changed` since the plan that was confirmed, and those whose discard `failed`: of these, the row may be
 * DISCARDED.
 */
export type DiscardOutcome =
  | 'discard'
  | 'discard-replacement'
  | 'discarded'
  | 'repair'
  | 'repaired'
  | 'reject'
  | 'rejected'
  | 'handled'
  | 'busy'
  | 'unsent'
  | 'unreadable'
  | 'effects-unchecked'
  | 'row-deleted'
  | 'not-rejectable'
  | 'failed'
  | 'untried'
  | 'changed';

/** The outcome of a discard. */
export interface Discarded {
  readonly outcome: DiscardOutcome;
  /** Why it `failed` or is `not-rejectable`, or how it was `handled`; of one that is `discarded`, what that leaves open. */
  readonly message?: string | undefined;
}

/** Sets the row DISCARDED, then deletes the dead letter: a message that arrives in between is absorbed. */
export async function discardOne(
  deps: DiscardDeps,
  source: DeadLetterSource,
  deadLetter: DeadLetter,
  note: DiscardNote,
): Promise<Discarded> {
  if (source.kind === 'dead') return { outcome: await decideDead(deps, deadLetter.id, note) };
  const { received } = deadLetter;
  const decided = await decidedOf(deps, source, deadLetter, note);
  if (stays(decided.outcome)) return decided;
  await settleUnreadable(deps, source, [deadLetter], note);
  if (received !== undefined) await deps.queues.remove(source.url, received);
  return decided;
}

async function decidedOf(
  deps: DiscardDeps,
  source: Exclude<DeadLetterSource, { kind: 'dead' }>,
  deadLetter: DeadLetter,
  note: DiscardNote,
): Promise<Discarded> {
  if (source.kind === 'stream') return { outcome: 'discarded' };
  if (deps.reject === undefined) return decide(deps, source, deadLetter, note);
  const { body = '', sentAt } = deadLetter.received ?? {};
  const { by, reason } = note;
  const effectsChecked = checkedOf(deadLetter, note);
  const mailroomReject = { by, reason, effectsChecked, body, sentAt };
  const settled = await deps.reject(source.consumer, { mailroomReject });
  switch (settled.status) {
    case 'refused':
      return { outcome: 'not-rejectable', message: `${settled.code}: ${settled.message}` };
    case 'discarded':
      return { outcome: 'rejected' };
    case 'effects-unchecked':
    case 'row-deleted':
    case 'unreadable':
      return { outcome: settled.status };
    case 'leased':
      return { outcome: 'busy' };
    case 'processed':
      return { outcome: 'handled' };
    case 'out-of-order':
      return outOfOrder(settled.missing);
    default: // a newer function may have other answers: only a settled message's dead letter is deleted
      return { outcome: 'not-rejectable', message: `Its function answered "${settled.status}".` };
  }
}

function outOfOrder(missing: number): Discarded {
  const message = `OUT_OF_ORDER: sequence ${missing} of its aggregate was not applied. End or skip that one first.`;
  return { outcome: 'not-rejectable', message };
}

async function decideDead(deps: DiscardDeps, eventId: string, note: Note): Promise<DiscardOutcome> {
  if (await outboxChangesOf(deps).discard(eventId, note)) return 'discarded';
  const row = await deps.stored.outbox.byId(eventId, true);
  if (row !== undefined && isUnreadable(row)) return 'unreadable';
  return row?.status === 'DISCARDED' ? 'discarded' : 'handled';
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
): Promise<Discarded> {
  const replacement = unsentReplacement(deadLetter);
  const eventId = replacement ?? inboxId(deadLetter);
  // An event in its place has its number.
  const place = placeOfLetter(consumer, deadLetter);
  const settled = await discardMessage(deps, {
    ...{ ...note, effectsChecked: checkedOf(deadLetter, note), consumer: consumer.name, eventId },
    unlessReceived: replacement !== undefined,
    isStrict: isStrict(consumer),
    order: placed(place),
  });
  const { status } = settled;
  if (status === 'leased') return { outcome: 'busy' };
  if (settled.status === 'out-of-order') return outOfOrder(settled.missing);
  if (status === 'unreadable' || status === 'effects-unchecked' || status === 'row-deleted')
    return { outcome: status };
  // A resend may have come first: then its event is the one that would be lost.
  const standing = await readStanding(deps.stored, consumer.name, deadLetter);
  if (unsentReplacement(standing) !== undefined) return { outcome: 'unsent' };
  const isOver = isHandled(standing) || supersededBy(standing) !== undefined;
  if (status === 'received') return { outcome: isOver ? 'handled' : 'unreadable' };
  const earlier = 'earlier' in settled ? settled.earlier : undefined;
  if (earlier !== undefined) return endedBefore(earlier, note);
  return { outcome: 'discarded', message: openText(consumer, deadLetter) };
}

/** Says what a discard leaves open: the number of a strict consumer's event that it does not pass over, and a reading that is unknown. */
export function openText(consumer: ConsumerEntry, deadLetter: DeadLetter): string | undefined {
  const unplaced = unknownPlaceText(consumer, placeOfLetter(consumer, deadLetter));
  const unread = deadLetter.isReadingUnknown ? unknownReadingText(consumer) : undefined;
  return [unplaced, unread].filter((text) => text !== undefined).join(' ') || undefined;
}

/** A check covers the effects of the plan: an effect that starts meanwhile, or runs again, is not checked. */
function checkedOf({ effects = [] }: DeadLetter, { effectsChecked = false }: DiscardNote): EffectsChecked {
  return effectsChecked && effectsDigest(effects);
}

/**
 * The outcome for a message that was final before. Its row tells whether a repeated discard was made by its first run, and whether the
 * `rejected` function committed.
 */
function endedBefore(row: FinalRow, { rejects = false }: DiscardNote): Discarded {
  const { status, text } = endingOf(row);
  if (status === 'discarded' && row.commitId === REJECTED_COMMIT) return { outcome: 'rejected' };
  if (rejects) return { outcome: 'handled', message: `It ${text}. Its rejected function committed nothing.` };
  return { outcome: status === 'discarded' ? 'discarded' : 'handled' };
}

const STAYS: ReadonlySet<DiscardOutcome> = new Set([
  'busy',
  'unsent',
  'unreadable',
  'effects-unchecked',
  'row-deleted',
  'not-rejectable',
  'failed',
]);

/** True for the result of a dead letter that stays in its source. */
export function stays(outcome: DiscardOutcome): boolean {
  return STAYS.has(outcome);
}

/**
 * Settles the rows of messages that could not be read when they were rejected, and whose event can be read today. Such a message has a
 * row and a REJECTED pointer under the id of its body. The event
 * is done under its own id, so that row would stay REJECTED permanently.
 *
 * @param done - dead letters whose events are processed or discarded
 */
export async function settleUnreadable(
  deps: Omit<DiscardDeps, 'queues'>,
  source: DeadLetterSource,
  done: readonly DeadLetter[],
  { by, reason }: Note,
): Promise<void> {
  if (source.kind !== 'consumer') return; // a rule's dead letter never reached the consumer
  const { name } = source.consumer;
  await eachOf(done, async ({ eventId, received }) => {
    const unread = unreadId(received);
    // Without a row there is nothing to settle, and a discard would create one.
    if (
      eventId === undefined ||
      readable(await deps.stored.inbox.byEvent(name, unread, true))?.status !== 'REJECTED'
    )
      return;
    await discardMessage(deps, {
      consumer: name,
      eventId: unread,
      by,
      reason: `Read as ${eventId}: ${reason}`,
    });
  });
}
