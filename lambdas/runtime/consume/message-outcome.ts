import type { Clock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import {
  errorCode,
  errorMessage,
  isErrorWithCode,
  isPoison,
  isRetryLater,
  MailroomError,
} from '../errors.ts';
import { eventIdTime, isEventId, type RandomBytes } from '../store/event-id.ts';
import type { Inbox } from '../store/inbox.ts';
import { type Refusal, TOO_OLD } from '../store/inbox-conditions.ts';
import { fraction } from '../store/retry.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Delivery } from './delivery.ts';
import type { FailedHints } from './failed-hints.ts';
import { poison } from './message.ts';
import { outageDelayMs, retryDelayMs, suspectDelayMs } from './retry-schedule.ts';

/** What becomes of a message in this invocation. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Failed for SQS: shown again after `afterMs`, or moved to the DLQ when its receives are spent. */
  | { readonly kind: 'again'; readonly afterMs: number; readonly error: unknown };

/** An outcome for SQS: failed, and shown again after `afterMs`. */
export function again(afterMs: number, error: unknown): Outcome & { kind: 'again' } {
  return { kind: 'again', afterMs, error };
}

/** What the outcomes of one consumer need. */
export interface OutcomeDeps {
  readonly config: ConsumerConfig;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly inbox: Inbox;
  readonly hints: FailedHints;
}

/** The outcomes of a message, each with its metric and its log line. */
export interface Outcomes {
  /** Its row says PROCESSED by us. */
  processed(delivery: Delivery): Outcome;
  /** Its row says REJECTED. It goes by SQS's own route: failed and shown at once, until its receives are spent. */
  rejected(delivery: Delivery, error: unknown): Outcome;
  /** It failed, and is shown again after `afterMs`. */
  comeAgain(delivery: Delivery, afterMs: number, error: unknown): Outcome;
  /** It failed outside any claim. @throws what the table throws when it cannot be rejected */
  failedUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome>;
  /** Mailroom could not reach its table: no attempt counts, and it is shown again once the outage may be over. */
  outage(delivery: Delivery, error: unknown): Outcome & { kind: 'again' };
  /** It must run alone and cannot now: shown again at a time that others of its kind do not share. */
  suspect(delivery: Delivery): Outcome & { kind: 'again' };
  /** The function has too little time left to begin with it. */
  tooLate(delivery: Delivery): Outcome & { kind: 'again' };
  /** It is not ours to work on. */
  refused(delivery: Delivery, refusal: Refusal): Promise<Outcome>;
  /** It is not ours any more, and what we wanted to write was refused. */
  fenceRefused(delivery: Delivery, refusal: Refusal): Promise<Outcome>;
  /**
   * The delay before a failed message is shown again: the handler's own where it asked for one. In whole seconds as SQS counts,
   * so that its row can say when that is.
   */
  retryAfterMs(attempt: number, error?: unknown): number;
  /** Milliseconds until one second after a time, for a message that waits for it. */
  untilMs(time: number): number;
  /** Says in the log what failed with this message. */
  logFailure(what: string, delivery: Delivery, error: unknown): void;
}

/** Makes the outcomes of one consumer. */
export function createOutcomes(deps: OutcomeDeps): Outcomes {
  const { config, clock, random, telemetry, inbox, hints } = deps;

  function processed({ message }: Delivery): Outcome {
    telemetry.count('MessagesProcessed');
    if (isEventId(message.eventId))
      telemetry.duration('ProcessLatency', clock.now() - eventIdTime(message.eventId));
    return { kind: 'done' };
  }

  function rejected(delivery: Delivery, error: unknown): Outcome {
    telemetry.count('MessagesRejected');
    logFailure('A message was rejected; it goes to the dead-letter queue', delivery, error);
    return again(0, error); // the row stops the handler from running again
  }

  function comeAgain(delivery: Delivery, afterMs: number, error: unknown): Outcome {
    telemetry.count('MessagesFailed');
    logFailure('A message failed; it comes again', delivery, error);
    return again(afterMs, error);
  }

  async function failedUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome> {
    if (isPoison(error)) return rejectUnclaimed(delivery, error);
    return comeAgain(delivery, retryAfterMs(delivery.receives, error), error);
  }

  function outage(delivery: Delivery, error: unknown) {
    telemetry.count('TableFailures');
    logFailure('Mailroom could not reach its table; no attempt of the message is counted', delivery, error);
    return again(wholeSeconds(outageDelayMs(delivery.receives, fraction(random))), error);
  }

  async function rejectUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome> {
    const refusal = await inbox.rejectUnclaimed(delivery.message, error);
    if (refusal.status !== 'rejected') return refused(delivery, refusal);
    // Nobody claimed it, so nobody knows whether it had failed; at its first receive it cannot have.
    if (delivery.receives > 1) await hints.remove(delivery.message.eventId, delivery.endsBy);
    return rejected(delivery, error);
  }

  function suspect({ receives }: Delivery) {
    return again(wholeSeconds(suspectDelayMs(receives, fraction(random))), madeRoom());
  }

  function tooLate({ receives }: Delivery) {
    return again(
      wholeSeconds(outageDelayMs(receives, fraction(random))),
      new MailroomError('NO_TIME_LEFT', 'The function has too little time left to begin with it'),
    );
  }

  async function refused(delivery: Delivery, refusal: Refusal): Promise<Outcome> {
    switch (refusal.status) {
      case 'processed':
        telemetry.count('MessagesDuplicate');
        return { kind: 'done' };
      case 'rejected':
        return again(0, new MailroomError(refusal.reason, 'The message was rejected'));
      case 'suspect':
        return suspect(delivery);
      case 'unreadable':
        return outage(
          delivery,
          new MailroomError(
            'UNREADABLE_ROW',
            'The inbox row has a status that this version of Mailroom does not know; it is left alone',
          ),
        );
      case 'leased': {
        telemetry.count('MessagesLeased');
        // Once for the rest of the lease; when it is held still, its worker is alive: until the worker is stopped.
        const until = delivery.receives > 1 ? refusal.endsBy : refusal.until;
        return again(untilMs(until), new MailroomError('LEASED', 'Another worker holds the message'));
      }
      case 'too-old':
        return rejectUnclaimed(delivery, poison(TOO_OLD, refusal.why));
    }
  }

  function fenceRefused(delivery: Delivery, refusal: Refusal): Promise<Outcome> {
    telemetry.count('FenceRefused');
    telemetry.log.warn(
      'A worker finished a message that is not its own any more; nothing of it was written',
      {
        eventId: delivery.message.eventId,
        status: refusal.status,
      },
    );
    return refused(delivery, refusal);
  }

  function retryAfterMs(attempt: number, error?: unknown): number {
    if (isRetryLater(error)) return wholeSeconds(error.afterMs);
    return wholeSeconds(retryDelayMs(attempt, config, fraction(random)));
  }

  function untilMs(time: number): number {
    return wholeSeconds(Math.max(0, time - clock.now())) + 1_000;
  }

  function logFailure(what: string, { message, receives }: Delivery, error: unknown): void {
    telemetry.log.error(what, {
      consumer: config.consumer,
      eventId: message.eventId,
      eventType: message.type,
      messageId: message.messageId,
      receives,
      error: error as Error,
    });
  }

  return {
    processed,
    rejected,
    comeAgain,
    failedUnclaimed,
    outage,
    suspect,
    tooLate,
    refused,
    fenceRefused,
    retryAfterMs,
    untilMs,
    logFailure,
  };
}

/** A message that makes room for one that must run alone: shown again at once, for another invocation. */
export function putBack(): Outcome & { kind: 'again' } {
  return again(0, madeRoom());
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

/** The poison of a message that has failed too often. */
export function attemptsSpent(attempts: number, error: unknown): MailroomError {
  // Whole: a redaction must see what it looks for in one piece.
  const last = isErrorWithCode(error, 'UNKNOWN')
    ? errorMessage(error, Number.POSITIVE_INFINITY)
    : `${errorCode(error)}: ${errorMessage(error, Number.POSITIVE_INFINITY)}`;
  return poison('ATTEMPTS_SPENT', `Rejected after ${attempts} attempts. ${last}`);
}
