import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { errorCode, MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { startedEffects } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerDeadLetters } from '../../../lambdas/runtime/operations/dead-letters.ts';
import { deliveredEvent } from '../../../lambdas/runtime/operations/delivered-event.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { discardMessage, type MessageDeps } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { type Note, recordOperation } from '../../../lambdas/runtime/store/operation-record.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { effectNames } from '../../deployment/effects.ts';
import { typedId } from '../../deployment/event-prefix.ts';
import { findResend, RESEND, replacementOf } from '../../deployment/resent-event.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { findOne } from '../../reports/dead-letters/choice.ts';
import type { DeadLetter } from '../../reports/dead-letters/dead-letters.ts';
import {
  REPLACEMENTS_MAX,
  readStanding,
  settled,
  unsentReplacement,
} from '../../reports/dead-letters/standing.ts';
import type { RedriveProgress } from '../redrive/redrive-run.ts';
import { type Redriven, redriveInSteps } from '../redrive/redrive-steps.ts';
import { queueRedriver } from '../redrive/redrivers.ts';
import type { ResendPlan } from './resend-plan.ts';
import { cannot, effectsOf } from './resend-refusals.ts';

/** Waits for this long until the consumer has processed the event, by default. */
const WAIT_MS = 60_000;

/** The end of a new event that another operator discarded, replaced or passed over before it ran. */
export const NEVER_RAN = 'The new event was discarded, replaced or superseded before it ran';

/** An event that is sent in place of another one. */
export interface Replacement {
  readonly consumer: Pick<ConsumerEntry, 'name' | 'queue'>;
  /** The event of the dead letter, or a replacement of it that was never received. */
  readonly eventId: string;
  /** The inbox row of that event, as the plan has seen it. */
  readonly row: DeadLetter['row'];
  /** The event in its place: its id follows from its data. */
  readonly newEventId: string;
  /** The message of the event in its place. */
  readonly body: string;
}

/** Dependencies of {@link sendInPlace}. */
export interface ReplacementDeps extends MessageDeps {
  readonly stored: StoredRows;
  readonly clock: Clock;
  readonly queues: Pick<Queues, 'send'>;
}

/**
 * Sends the event of a dead letter with other data, as a new event for its consumer only, and waits until it is processed.
 *
 * @throws as {@link sendInPlace}
 */
export async function sendAndWait(
  deployment: Deployment,
  { source, replaced: { eventId, row }, judged }: ResendPlan,
  note: Note,
  waitMs: number = WAIT_MS,
): Promise<Redriven> {
  const { clock, terminal } = deployment;
  const { consumer } = source;
  const redriver = queueRedriver(deployment, source, note);
  const send = async (): Promise<void> => {
    const newEventId = judged.eventId;
    await recordOperation(deployment, {
      ...note,
      command: RESEND,
      subject: `${source.name}: ${eventId} as ${newEventId}`,
      ...{ source: source.name, consumer: consumer.name, eventId, newEventId },
    });
    await sendInPlace(
      deployment,
      { consumer, eventId, row, newEventId, body: judged.received?.body ?? '' },
      note,
    );
  };
  const look = async (deadLetter: DeadLetter): Promise<RedriveProgress> => {
    const progress = await redriver.look(deadLetter);
    if (progress.state === 'done' || progress.state === 'handled') {
      const row = readable(await deployment.stored.inbox.byEvent(consumer.name, judged.eventId, true));
      if (row?.status === 'PROCESSED') return { state: 'done' };
    } else if (progress.state !== 'superseded') return progress;
    return { state: 'back', fingerprint: NEVER_RAN, sameCause: false, neverRan: true };
  };
  return redriveInSteps({ ...terminal, clock }, [judged], { resend: send, look }, { ratePerS: 1, waitMs });
}

/**
 * Sends an event in place of another one. The invariant: of the event of the dead letter and all events that may replace it, at most
 * one runs at the consumer.
 *
 *     discard, if unclaimed ── read ── send
 *       │                       └ names this event, and no effect was started: only then
 *       └ the row of the old event is DISCARDED, and names the event that replaces it
 *
 * 1. The discard is conditional, so the row names one replacement, whichever of two resends comes first, and the event that it
 *    replaces never runs again. A replacement that was never received is replaced in the same way: the discard creates its row.
 * 2. Only the replacement that the row names is sent. Its id follows from its data, so the inbox absorbs a repeated send.
 * 3. It is sent only if the old event has the effects that the plan has seen. From the discard on, no worker can start another one.
 *
 * @throws `CANNOT_RESEND` if a worker has taken the event since the plan, or has started an effect of it; `ALREADY_RESENT` if another
 * resend came first
 */
export async function sendInPlace(
  deps: ReplacementDeps,
  replacement: Replacement,
  note: Note,
): Promise<void> {
  await takeOver(deps, replacement, note);
  await deps.queues.send(replacement.consumer.queue, replacement.body);
}

/** Discards the old event at its consumer in favor of the new one. */
async function takeOver(
  deps: ReplacementDeps,
  { consumer, eventId, row: planned, newEventId }: Replacement,
  { by, reason }: Note,
): Promise<void> {
  const { status } = await discardMessage(deps, {
    by,
    reason,
    consumer: consumer.name,
    eventId,
    effectsChecked: true, // below
    replacedBy: newEventId,
  });
  const row = await deps.stored.inbox.byEvent(consumer.name, eventId, true);
  const named = replacementOf(row);
  if (named === undefined)
    throw cannot(`Event ${eventId} is ${status} at ${consumer.name} since the plan. Nothing was sent.`);
  if (named !== newEventId)
    throw new MailroomError(
      'ALREADY_RESENT',
      `Another resend of event ${eventId} came first, as ${named}. Nothing was sent.`,
    );
  if (isDeepStrictEqual(effectsOf(row), effectsOf(planned))) return;
  const effects = startedEffects(consumer.name, eventId, readable(row), deps.clock.now());
  throw cannot(
    `A worker has started side effects of event ${eventId} since the plan: ${effectNames(effects)}. Nothing was sent. ` +
      'If their providers confirm that nothing happened, repeat the command with --repeat-effects, and with the event id if the dead letter ' +
      'is gone.',
  );
}

/**
 * Finds the dead letter that is resent.
 *
 * A resend may stop after it has discarded the old event, and the dead letter may be gone by then: a redrive in the AWS console sends
 * the old event to the inbox, which absorbs it, and SQS deletes the message. The resend can still be completed from the outbox row of
 * the old event. Each event of the chain finds it: the old one by its row, a replacement by the record of its resend.
 *
 * @param given - the id of a dead letter or of its event, or a part of it; of a resend to be completed, the whole id of either event
 * @throws `NO_SUCH_DEAD_LETTER`, `AMBIGUOUS_ID`; `CANNOT_RESEND` if nothing is left from which a resend could be completed
 */
export async function findToResend(
  deployment: Deployment,
  source: ConsumerDeadLetters,
  given: string,
  stepsMax: number = REPLACEMENTS_MAX,
): Promise<DeadLetter> {
  try {
    return await findOne(deployment, source, given);
  } catch (error) {
    const eventId = typedId(given);
    if (errorCode(error) !== 'NO_SUCH_DEAD_LETTER' || !isEventId(eventId) || stepsMax === 0) throw error;
    const resent = await findResend(deployment.stored, eventId, deployment.clock.now());
    if (resent?.consumer === source.consumer.name)
      return findToResend(deployment, source, resent.causationId, stepsMax - 1);
    const stored = await interrupted(deployment, source, eventId);
    if (stored !== undefined) return stored;
    throw error;
  }
}

/** The event of a resend to be completed, as if its dead letter had been received; `undefined` if no resend of it was interrupted. */
async function interrupted(
  { stored, clock }: Pick<Deployment, 'stored' | 'clock'>,
  { consumer }: ConsumerDeadLetters,
  eventId: string,
): Promise<DeadLetter | undefined> {
  const standing = await readStanding(stored, consumer.name, eventId);
  if (settled(standing, clock.now()) !== 'unsent') return undefined;
  const event = readable(await stored.outbox.byId(eventId, true));
  if (event === undefined)
    throw cannot(
      `Event ${eventId} was replaced by ${unsentReplacement(standing)}, which ${consumer.name} has not received, and neither its dead letter nor its ` +
        'outbox row exists any more. Have its producer write a correct event.',
    );
  const body = deliveredEvent(event, { region: '', account: '', time: clock.now() });
  return {
    id: eventId,
    eventId,
    type: event.type,
    sentAt: undefined,
    expiresAt: undefined,
    fingerprint: undefined,
    lastError: undefined,
    received: { messageId: eventId, receiptHandle: '', body, sentAt: clock.now(), attributes: {} },
    isGone: true,
    ...standing,
  };
}
