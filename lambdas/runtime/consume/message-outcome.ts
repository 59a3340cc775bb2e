import type { Clock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { errorCode, errorMessage, isErrorWithCode, isPoison, MailroomError } from '../errors.ts';
import { eventIdTime, isEventId, type RandomBytes } from '../event-id.ts';
import { backoffMs } from '../retry.ts';
import type { Telemetry } from '../telemetry.ts';
import type { Delivery } from './delivery.ts';
import type { FailedHints } from './failed-hints.ts';
import type { Inbox } from './inbox.ts';
import { type Refusal, TOO_OLD } from './inbox-conditions.ts';
import { poison } from './message.ts';

/** What becomes of a message in this invocation. */
export type Outcome =
  | { readonly kind: 'done' }
  /** Failed for SQS: shown again after `afterMs`, or moved to the DLQ when its receives are spent. */
  | { readonly kind: 'again'; readonly afterMs: number; readonly error: unknown }
  /** Its worker's lease has passed: it is taken over last, and alone. */
  | { readonly kind: 'abandoned'; readonly attempts: number };

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
  /** It failed outside any claim. */
  failedUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome>;
  /** It is not ours to work on. */
  refused(delivery: Delivery, refusal: Refusal): Promise<Outcome>;
  /** It is not ours any more, and what we wanted to write was refused. */
  fenceRefused(delivery: Delivery, refusal: Refusal): Promise<Outcome>;
  /** The backoff of a failed message, in whole seconds as SQS counts, so that its row can say when it is shown again. */
  retryAfterMs(attempt: number): number;
  /** Milliseconds until one second after a time, for a message that waits for it. */
  untilMs(time: number): number;
  /** Says in the log what failed with this message. */
  logFailure(what: string, delivery: Delivery, error: unknown): void;
}

/** Backoff of a message whose handler failed: from 2 s to 15 min. */
const RETRY_BASE_MS = 2_000;
const RETRY_CAP_MS = 900_000;

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
    if (isPoison(error)) {
      try {
        return await rejectUnclaimed(delivery, error);
      } catch (writeError) {
        return comeAgain(delivery, retryAfterMs(delivery.receives), writeError);
      }
    }
    return comeAgain(delivery, retryAfterMs(delivery.receives), error);
  }

  async function rejectUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome> {
    const refusal = await inbox.rejectUnclaimed(delivery.message, error);
    if (refusal.status !== 'rejected') return refused(delivery, refusal);
    // Nobody claimed it, so nobody knows whether it had failed; at its first receive it cannot have.
    if (delivery.receives > 1) await hints.remove(delivery.message.eventId, delivery.endsBy);
    return rejected(delivery, error);
  }

  async function refused(delivery: Delivery, refusal: Refusal): Promise<Outcome> {
    switch (refusal.status) {
      case 'processed':
        telemetry.count('MessagesDuplicate');
        return { kind: 'done' };
      case 'rejected':
        return again(0, new MailroomError(refusal.reason, 'The message was rejected'));
      case 'abandoned':
        return { kind: 'abandoned', attempts: refusal.attempts };
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

  function retryAfterMs(attempt: number): number {
    return Math.ceil(backoffMs(attempt, RETRY_BASE_MS, RETRY_CAP_MS, random) / 1_000) * 1_000;
  }

  function untilMs(time: number): number {
    return Math.ceil(Math.max(0, time - clock.now()) / 1_000) * 1_000 + 1_000;
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
    refused,
    fenceRefused,
    retryAfterMs,
    untilMs,
    logFailure,
  };
}

/** The poison of a message that has failed too often. */
export function attemptsSpent(attempts: number, error: unknown): MailroomError {
  const last = isErrorWithCode(error, 'UNKNOWN')
    ? errorMessage(error)
    : `${errorCode(error)}: ${errorMessage(error)}`;
  return poison('ATTEMPTS_SPENT', `Given up after ${attempts} attempts. ${last}`);
}

/** The error of a message whose handler was not done when the batch had to be answered. */
export function outOfTime(): MailroomError {
  return new MailroomError('OUT_OF_TIME', "The handler was still running when the function's time was up");
}
