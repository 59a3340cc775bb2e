import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { type InboxState, inboxState, isFinal } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { StartedEffect } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry, SourceConsumer } from '../../../lambdas/runtime/operations/directory.ts';
import { isSourceConsumer } from '../../../lambdas/runtime/operations/source-consumers.ts';
import { isUnreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { readDeployed, unknownReadingText } from '../../deployment/deployed-reading.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { openEffects } from '../../deployment/effects.ts';
import { refuseUnreached } from '../../deployment/inbox-home.ts';
import { isNotDue } from '../../deployment/rows-reader.ts';
import { withInbox } from '../../deployment/source-consumer.ts';
import { readStanding } from '../../reports/dead-letters/standing.ts';
import {
  type FoundPlace,
  findPlace,
  placeOfMessage,
  unknownPlaceText,
} from '../../reports/order/place-of-message.ts';
import { inTime } from '../../reports/why/event-state.ts';
import { applyWords } from '../../terminal/change.ts';
import { shell } from '../../terminal/shell.ts';
import { type ManualFix, readFix, refuseOtherKeys } from './fix-file.ts';
import type { MessageDecision } from './message-decision.ts';
import { commitsNoWrites, leased, unreadable } from './resolution-refusals.ts';

/** A message to resolve, and what is known of it. */
export interface Resolution {
  readonly entry: ConsumerEntry | SourceConsumer;
  /** The rows and events to commit with it; absent without `--commit`. */
  readonly fix: ManualFix | undefined;
  readonly state: InboxState;
  readonly isRowDeleted: boolean;
  /** The side effects whose providers must be asked first. */
  readonly effects: readonly StartedEffect[];
  /** Its row cannot tell which side effects were started. */
  readonly areUnknown: boolean;
  readonly found: FoundPlace;
  /** Sentences about work that the decision leaves. */
  readonly open: string;
}

/** Reads a message. @throws if it cannot be resolved, whatever its effects */
export async function readResolution(deployment: Deployment, decision: MessageDecision): Promise<Resolution> {
  const { consumer, eventId, force = false, readCommit } = decision;
  const { stored, clock, directory } = deployment;
  // The function of a consumer commits a fix.
  const entry = readCommit === undefined ? withInbox(deployment, consumer) : deployment.consumer(consumer);
  refuseUnreached(entry, deployment.database?.engine);
  const fix = readCommit && readFix(await readCommit(), entry.service);
  if (fix !== undefined && fix.writes.length > 0 && 'inbox' in entry && entry.inbox !== undefined)
    throw commitsNoWrites(decision, entry.inbox);
  if (fix !== undefined && !isSourceConsumer(entry)) refuseOtherKeys(fix, entry, directory.mailroom.table);
  const { row, isRowDeleted = false } = await readStanding(stored, consumer, eventId);
  const state = inboxState(row, clock.now());
  const anywhere: FoundPlace = isSourceConsumer(entry)
    ? { place: placeOfMessage(entry, { eventId, row }) }
    : await findPlace(deployment, entry, { eventId, row });
  // The function that commits a fix knows only the row and the event.
  const isKnown = fix === undefined || anywhere.event !== undefined;
  const found = isKnown ? anywhere : { place: placeOfMessage(entry, { eventId, row }) };
  if (state.is === 'absent' && !isRowDeleted && !force) await requireEvent(deployment, eventId, anywhere);
  // Nothing commits with a row that cannot be read, not even by force.
  if (state.is === 'unreadable' && (!force || fix !== undefined)) throw unreadable(decision, state.problem);
  // Without AWS's time, only resolveMessage can tell: it watches the row for a whole lease.
  if (!force && state.is === 'leased' && deployment.clockIsTrusted)
    throw leased(decision, state.until, clock.now());
  const isUnknown = !isFinal(state) && (await isReadingUnknown(deployment, decision, anywhere));
  const effects = openEffects(eventId, consumer, row, clock.now());
  const areUnknown = isRowDeleted || state.is === 'unreadable';
  const texts = [unknownPlaceText(entry, found.place), isUnknown ? unknownReadingText(entry) : undefined];
  return { entry, fix, state, isRowDeleted, effects, areUnknown, found, open: texts.map(spaced).join('') };
}

/**
 * Returns true for a message without an event if it is unknown whether the deployed function can read it.
 *
 * @throws `MESSAGE_READABLE` if it can, and the event is not done: functions that have started do not look for the row of the body
 */
async function isReadingUnknown(
  { clients, clock, commandLine, stored, consumer: entryOf }: Deployment,
  decision: MessageDecision,
  { body }: FoundPlace,
): Promise<boolean> {
  if (!isUnreadableId(decision.eventId)) return false;
  if (body === undefined) return true;
  const { consumer, commit } = decision;
  const [reading = 'unknown'] = await readDeployed(clients.lambda, entryOf(consumer), [body]);
  if (reading === 'unread' || reading === 'unknown') return reading === 'unknown';
  const { eventId } = reading;
  // What is done under the event's own id never runs again: only this row is left.
  if (isFinal(inboxState(await stored.inbox.byEvent(consumer, eventId, true), clock.now()))) return false;
  const fixWords = commit === undefined ? [] : ['--commit', commit];
  const words = ['resolve', consumer, eventId, ...fixWords, ...applyWords(decision)];
  throw new MailroomError(
    'MESSAGE_READABLE',
    `The deployed function of ${consumer} reads ${decision.eventId} as event ${eventId}, and would not look for the row of the body. Nothing was changed. Resolve the ` +
      `event: \`${commandLine(shell`messages ${words}`)}\`.`,
  );
}

/** Refuses unknown ids: resolving a mistyped one would have no effect and look like a success. */
async function requireEvent(
  { stored, directory, clock }: Deployment,
  eventId: string,
  { event, body }: FoundPlace,
): Promise<void> {
  const row = await stored.outbox.byId(eventId, true);
  const now = clock.now();
  const isCancelled = readable(row)?.status === 'CANCELLED';
  if (isCancelled || (row !== undefined && isNotDue(row, now))) {
    const state = isCancelled
      ? 'is CANCELLED and is never published'
      : `is scheduled and due ${inTime(Number(row?.dueAt), now)}`;
    throw new MailroomError(
      'NOT_PUBLISHED',
      `Event ${eventId} ${state}: it has no message to resolve. Nothing was changed. To keep a consumer from processing it later, resolve it with --force.`,
    );
  }
  if (row !== undefined || event !== undefined || body !== undefined) return;
  throw new MailroomError(
    'NO_SUCH_EVENT',
    `Event ${eventId} is neither in the outbox of ${directory.mailroom.stack} nor in this consumer's inbox or dead-letter queues. Check the id. If its rows have ` +
      'expired, resolve the message with --force.',
  );
}

/** A sentence that follows another one. */
function spaced(text: string | undefined): string {
  return text === undefined ? '' : ` ${text}`;
}
