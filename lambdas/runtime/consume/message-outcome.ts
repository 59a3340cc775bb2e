import { errorCode, errorMessage, isMailroomError, isPoison, MailroomError } from '../errors.ts';
import { eventIdTime, isEventId } from '../store/event-id.ts';
import type { InboxRefusal } from '../store/inbox.ts';
import { TOO_OLD } from '../store/inbox-conditions.ts';
import { rejectUnclaimed } from '../store/inbox-rejection.ts';
import { fraction } from '../store/retry.ts';
import type { ConsumerContext, Received } from './consumer-context.ts';
import { removeFailedHint } from './failed-hints.ts';
import { poison } from './message.ts';
import { outageDelayMs, retryDelayMs, suspectDelayMs } from './retry-schedule.ts';

/** What becomes of a message in this invocation. */
export type MessageOutcome = { readonly kind: 'done' } | ShownAgain;

/** Failed for SQS: shown again after `afterMs`, or moved to the DLQ when its receives are spent. */
export interface ShownAgain {
  readonly kind: 'again';
  readonly afterMs: number;
  readonly error: unknown;
}

/** An outcome for SQS: failed, and shown again after `afterMs`. */
export function again(afterMs: number, error: unknown): ShownAgain {
  return { kind: 'again', afterMs, error };
}

/** Its row says PROCESSED by us. */
export function reportProcessed({ telemetry, clock, delivery }: Received): MessageOutcome {
  const { eventId } = delivery.message;
  telemetry.count('MessagesProcessed');
  if (isEventId(eventId)) telemetry.duration('ProcessLatency', clock.now() - eventIdTime(eventId));
  return { kind: 'done' };
}

/** Its row says REJECTED. It goes by SQS's own route: failed and shown at once, until its receives are spent. */
export function reportRejected(received: Received, error: unknown): ShownAgain {
  received.telemetry.count('MessagesRejected');
  logFailure(received, 'A message was rejected; it goes to the dead-letter queue', error);
  return again(0, error); // the row stops the handler from running again
}

/** It failed, and is shown again after `afterMs`. */
export function reportFailed(received: Received, afterMs: number, error: unknown): ShownAgain {
  received.telemetry.count('MessagesFailed');
  logFailure(received, 'A message failed; it comes again', error);
  return again(afterMs, error);
}

/** Mailroom could not reach its table: no attempt counts, and it is shown again once the outage may be over. */
export function reportOutage(received: Received, error: unknown): ShownAgain {
  received.telemetry.count('TableFailures');
  logFailure(received, 'Mailroom could not reach its table; no attempt of the message is counted', error);
  return again(wholeSeconds(outageDelayMs(received.delivery.receives, fraction(received.random))), error);
}

/** The function has too little time left to begin with it. */
export function tooLate({ random, delivery: { receives } }: Received): ShownAgain {
  return again(
    wholeSeconds(outageDelayMs(receives, fraction(random))),
    new MailroomError('NO_TIME_LEFT', 'The function has too little time left to begin with it'),
  );
}

/** It must run alone and cannot now: shown again at a time that others of its kind do not share. */
export function waitToRunAlone({ random, delivery: { receives } }: Received): ShownAgain {
  return again(wholeSeconds(suspectDelayMs(receives, fraction(random))), madeRoom());
}

/** It makes room for one that must run alone: shown again at once, for another invocation. */
export function putBack(): ShownAgain {
  return again(0, madeRoom());
}

/** Fails a message outside any claim. @throws what the table throws when it cannot be rejected */
export async function failUnclaimed(received: Received, error: unknown): Promise<MessageOutcome> {
  if (isPoison(error)) return rejectAsPoison(received, error);
  return reportFailed(received, retryAfterMs(received, received.delivery.receives, error), error);
}

async function rejectAsPoison(received: Received, error: unknown): Promise<MessageOutcome> {
  const { message, receives, endsBy } = received.delivery;
  const refusal = await rejectUnclaimed(received.inbox, message, error);
  if (refusal.status !== 'rejected') return refused(received, refusal);
  // Nobody claimed it, so nobody knows whether it had failed; at its first receive it cannot have.
  if (receives > 1) await removeFailedHint(received, message.eventId, endsBy);
  return reportRejected(received, error);
}

/** It is not ours to work on. */
export async function refused(received: Received, refusal: InboxRefusal): Promise<MessageOutcome> {
  switch (refusal.status) {
    case 'processed':
      received.telemetry.count('MessagesDuplicate');
      return { kind: 'done' };
    case 'rejected':
      return again(0, new MailroomError(refusal.reason, 'The message was rejected'));
    case 'suspect':
      return waitToRunAlone(received);
    case 'unreadable':
      return reportOutage(
        received,
        new MailroomError(
          'UNREADABLE_ROW',
          'The inbox row has a status that this version of Mailroom does not know; it is left alone',
        ),
      );
    case 'leased': {
      received.telemetry.count('MessagesLeased');
      // Once for the rest of the lease; when it is held still, its worker is alive: until the worker is stopped.
      const until = received.delivery.receives > 1 ? refusal.endsBy : refusal.until;
      return again(untilMs(received, until), new MailroomError('LEASED', 'Another worker holds the message'));
    }
    case 'too-old':
      return rejectAsPoison(received, poison(TOO_OLD, refusal.why));
  }
}

/** It is not ours any more, and what we wanted to write was refused. */
export function fenceRefused(received: Received, refusal: InboxRefusal): Promise<MessageOutcome> {
  received.telemetry.count('FenceRefused');
  received.telemetry.log.warn(
    'A worker finished a message that is not its own any more; nothing of it was written',
    {
      eventId: received.delivery.message.eventId,
      status: refusal.status,
    },
  );
  return refused(received, refusal);
}

/**
 * The delay before a failed message is shown again: the handler's own where it asked for one. In whole seconds as SQS counts,
 * so that its row can say when that is.
 */
export function retryAfterMs({ config, random }: ConsumerContext, attempt: number, error?: unknown): number {
  if (isMailroomError(error, 'RETRY_LATER')) return wholeSeconds(error.retryAfterMs);
  return wholeSeconds(retryDelayMs(attempt, config, fraction(random)));
}

/** Milliseconds until one second after a time, for a message that waits for it. */
export function untilMs({ clock }: ConsumerContext, time: number): number {
  return wholeSeconds(Math.max(0, time - clock.now())) + 1_000;
}

/** Says in the log what failed with this message. */
export function logFailure(
  { config, telemetry, delivery: { message, receives } }: Received,
  what: string,
  error: unknown,
): void {
  telemetry.log.error(what, {
    consumer: config.consumer,
    eventId: message.eventId,
    eventType: message.type,
    messageId: message.messageId,
    receives,
    error: error as Error,
  });
}

/** The poison of a message that has failed too often. */
export function attemptsSpent(attempts: number, error: unknown): MailroomError {
  // Whole: a redaction must see what it looks for in one piece.
  const last =
    errorCode(error) === 'UNKNOWN'
      ? errorMessage(error, Number.POSITIVE_INFINITY)
      : `${errorCode(error)}: ${errorMessage(error, Number.POSITIVE_INFINITY)}`;
  return poison('ATTEMPTS_SPENT', `Rejected after ${attempts} attempts. ${last}`);
}

function madeRoom(): MailroomError {
  return new MailroomError(
    'PUT_BACK',
    'The message makes room for others of its batch; no attempt is counted',
  );
}

function wholeSeconds(ms: number): number {
  return Math.ceil(ms / 1_000) * 1_000;
}
