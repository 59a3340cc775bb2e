import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../../lambdas/runtime/base/clock.ts';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import { startedEffects } from '../../../lambdas/runtime/inbox/started-effects.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { discardMessage } from '../../../lambdas/runtime/operations/message-operations.ts';
import type { Queues } from '../../../lambdas/runtime/operations/queues.ts';
import {
  type Note,
  type OperationDeps,
  recordOperation,
} from '../../../lambdas/runtime/store/operation-record.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { effectNames } from '../../deployment/effect-text.ts';
import { readInbox } from '../../deployment/message-reader.ts';
import { RESEND, replacedBy, replacementOf, resendSubject } from '../../deployment/resent-event.ts';
import type { DeadLetter } from './dead-letters.ts';
import { type Redriven, type RedriveProgress, redriveInSteps } from './redrive-steps.ts';
import { queueRedriver } from './redrivers.ts';
import type { ResendPlan } from './resend-plan.ts';
import { cannot, effectsOf } from './resend-refusals.ts';

/** Waits for this long until the consumer has processed the event, by default. */
const WAIT_MS = 60_000;

/** The end of a new event that another operator discarded or replaced before it ran. */
export const NEVER_RAN = 'The new event was discarded or replaced before it ran';

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
export interface ReplacementDeps extends OperationDeps {
  readonly clock: Clock;
  readonly queues: Pick<Queues, 'send'>;
}

/**
 * Sends the event of a dead letter with other data, as a new event for its consumer only, and waits until it is processed.
 *
 * @throws as {@link sendInPlace}
 */
export async function resend(
  deployment: Deployment,
  { source, replaced: { eventId, row }, judged }: ResendPlan,
  note: Note,
  waitMs: number = WAIT_MS,
): Promise<Redriven> {
  const { clock, terminal } = deployment;
  const { consumer } = source;
  const redriver = queueRedriver(deployment, source);
  const send = async (): Promise<void> => {
    const newEventId = judged.eventId;
    await recordOperation(deployment, {
      ...note,
      command: RESEND,
      subject: resendSubject(source.name, eventId, newEventId),
    });
    await sendInPlace(
      deployment,
      { consumer, eventId, row, newEventId, body: judged.received?.body ?? '' },
      note,
    );
  };
  const look = async (deadLetter: DeadLetter): Promise<RedriveProgress> => {
    const progress = await redriver.look(deadLetter);
    if (progress.state !== 'done') return progress;
    const row = readable(await readInbox(deployment.table, consumer.name, judged.eventId, true));
    return row?.status === 'PROCESSED'
      ? progress
      : { state: 'back', fingerprint: NEVER_RAN, sameCause: false };
  };
  return redriveInSteps(
    { clock, signal: terminal.signal, progress: terminal.progress },
    [judged],
    { resend: send, look },
    { ratePerS: 1, waitMs },
  );
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
    reason: replacedBy(newEventId, reason),
    consumer: consumer.name,
    eventId,
    effectsChecked: true, // below
  });
  const row = await readInbox(deps.table, consumer.name, eventId, true);
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
