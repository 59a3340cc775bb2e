import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { bodiesToCheck, checkMessages } from './check-messages.ts';
import { type Clock, systemClock } from './clock.ts';
import type { ConsumerConfig } from './config.ts';
import {
  asMailroomError,
  errorCode,
  errorMessage,
  isAlreadyProcessed,
  isErrorWithCode,
  isPoison,
  MailroomError,
} from './errors.ts';
import type { Envelope } from './event.ts';
import { eventIdTime, isEventId, type RandomBytes, systemRandomBytes } from './event-id.ts';
import { createFailedHints } from './failed-hints.ts';
import type { Handler, LeasedHandler, TransactionalContext, TransactionalHandler } from './handler.ts';
import { createInbox } from './inbox.ts';
import { type Claim, type Message, type Refusal, TOO_OLD } from './inbox-conditions.ts';
import { lastLane } from './last-lane.ts';
import { RESPONSE_MARGIN_MS, runLeased } from './leased-run.ts';
import { handlerOf, poison, readEnvelope, readEvent } from './message.ts';
import { createEffects, type Effects } from './once.ts';
import { checkTransaction, createOutbox, eventCount } from './outbox.ts';
import { type Queue, VISIBILITY_MAX_S } from './queue.ts';
import { backoffMs } from './retry.ts';
import type { Table, TransactAction } from './table.ts';
import { powertoolsTelemetry, type Telemetry } from './telemetry.ts';
import { asLeased, commitOf, onFreshReads } from './transactional-run.ts';

/** What a consumer's handler is made of. */
export interface ConsumerDeps {
  /** From `readConsumerConfig(process.env)`. */
  readonly config: ConsumerConfig;
  readonly table: Table;
  readonly queue: Queue;
  /** One for each event type that the consumer's rule lets through. */
  readonly handlers: readonly Handler[];
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
  /** @default Powertools */
  readonly telemetry?: Telemetry | undefined;
}

/** A message with less time than this left for its handler is put back without being tried. */
const START_MIN_MS = 2_000;

/** Backoff of a message whose handler failed: from 2 s to 15 min. */
const RETRY_BASE_MS = 2_000;
const RETRY_CAP_MS = 900_000;

/** A message that is claimed more often than this is one that somebody should look at before its attempts are spent. */
const ATTEMPTS_UNNOTICED = 3;

/** One receive of a message. */
interface Delivery {
  readonly message: Message;
  readonly receiptHandle: string;
  /** How often SQS has handed it out, this time included. */
  readonly receives: number;
  /** When this invocation is stopped, epoch milliseconds. */
  readonly endsBy: number;
}

/** What becomes of a message in this invocation. */
type Outcome =
  | { readonly kind: 'done' }
  /** Failed for SQS: shown again after `afterMs`, or moved to the DLQ when its receives are spent. */
  | { readonly kind: 'again'; readonly afterMs: number; readonly error: unknown }
  /** Its owner's lease has passed: it is taken over last, and alone. */
  | { readonly kind: 'expired'; readonly attempts: number };

/**
 * Makes the Lambda handler of a consumer: an SQS batch in, a partial batch response out. Whatever a record holds,
 * it fails alone.
 *
 * - A return value (200), or {@link AlreadyProcessed} (409): processed.
 * - {@link PoisonMessage} (422), an unreadable message, an unknown type or version, a payload that fails its schema,
 *   attempts spent: rejected. The row says why, and the message goes to the DLQ by SQS's own route.
 * - Anything else (5xx): FAILED; the message is shown again after a backoff.
 *
 * @throws `BAD_CONSUMER` at once when two handlers take the same event type
 *
 * @example
 * ```ts
 * const config = readConsumerConfig(process.env);
 * export const handler = createConsumer({
 *   config,
 *   table: dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName }),
 *   queue: sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl }),
 *   handlers: [leased(OrderPlaced, charge)],
 * });
 * ```
 */
export function createConsumer(
  deps: ConsumerDeps,
): (event: SQSEvent, context: Context) => Promise<SQSBatchResponse> {
  const { config, table, queue, clock = systemClock, random = systemRandomBytes } = deps;
  const telemetry = deps.telemetry ?? powertoolsTelemetry(config);
  const inbox = createInbox({ ...config, table, clock, random });
  const outbox = createOutbox({ config, table, clock, random, telemetry });
  const hints = createFailedHints({ ...config, table, clock, telemetry });
  const parts = { config, table, queue, clock, random, telemetry, inbox, outbox };
  const handlers = handlersByType(deps.handlers);

  return async (event, context) => {
    const bodies = bodiesToCheck(event);
    if (bodies !== undefined) return checkMessages(handlers, config.consumer, bodies);
    const records = (Array.isArray(event?.Records) ? event.Records : []).filter(hasMessageId);
    const endsBy = clock.now() + context.getRemainingTimeInMillis();
    const lane = lastLane(records.length);
    telemetry.count('MessagesReceived', records.length);

    const work = async (record: SQSRecord): Promise<void> => {
      let arrived = true;
      const first = await receive(record, endsBy, false)
        .then((outcome) => {
          arrived = outcome.kind !== 'expired';
          return outcome;
        })
        .finally(() => {
          if (arrived) lane.arrive();
        });
      const last =
        first.kind === 'expired'
          ? await lane.runLast(first.attempts, () => receive(record, endsBy, true))
          : first;
      if (last.kind === 'done') return;
      const failure =
        last.kind === 'again' ? last : again(1_000, new MailroomError('LEASED', 'Somebody else was quicker'));
      await hide(record, failure.afterMs);
      throw asMailroomError(failure.error); // Powertools wants an Error, and a handler may throw anything
    };
    const response = await processPartialResponse(
      { Records: records },
      work,
      new BatchProcessor(EventType.SQS, quiet),
      {
        context,
        throwOnFullBatchFailure: false,
      },
    );
    telemetry.flush();
    // A message that comes twice in a batch is named once.
    const failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
  };

  /** Everything that happens to one record. It never throws: what fails, fails alone. */
  async function receive(record: SQSRecord, endsBy: number, takeOver: boolean): Promise<Outcome> {
    const { messageId } = record;
    const unread: Message = { eventId: `unreadable-${messageId}`, messageId, sentAt: sentAtOf(record) };
    let delivery: Delivery = {
      message: unread,
      receiptHandle: record.receiptHandle,
      receives: receivesOf(record),
      endsBy,
    };
    try {
      if (endsBy - clock.now() < START_MIN_MS) {
        // Apart from the neighbours that have used the time up.
        return again(
          retryAfterMs(delivery.receives),
          new MailroomError('NO_TIME_LEFT', 'The function has too little time left to begin with it'),
        );
      }
      const envelope = readEnvelope(record);
      const { eventId, type } = envelope;
      delivery = { ...delivery, message: { ...unread, eventId, type } };
      const handler = handlerOf(handlers, config.consumer, type);
      const event = await readEvent(handler.definition, envelope);
      if (handler.kind === 'leased') return await claimAndRun(handler, event, delivery, takeOver);
      // A message that comes again may be one that kills its process: then its attempts must be counted.
      const claimFirst = delivery.receives > 1 || inbox.tooOld(delivery.message);
      const outcome = claimFirst ? undefined : await runUnclaimed(handler, event, delivery);
      if (outcome !== undefined) return outcome;
      // Its first run was, or would have been, without a claim: it is not counted.
      return await claimAndRun(asLeased(handler, { clock, random }), event, delivery, takeOver, 1);
    } catch (error) {
      return failed(delivery, error);
    }
  }

  /** A failure outside any claim. */
  async function failed(delivery: Delivery, error: unknown): Promise<Outcome> {
    if (isPoison(error)) {
      try {
        return await rejectUnclaimed(delivery, error);
      } catch (writeError) {
        return comeAgain(delivery, retryAfterMs(delivery.receives), writeError);
      }
    }
    return comeAgain(delivery, retryAfterMs(delivery.receives), error);
  }

  function comeAgain(delivery: Delivery, afterMs: number, error: unknown): Outcome {
    telemetry.count('MessagesFailed');
    logFailure('A message failed; it comes again', delivery, error);
    return again(afterMs, error);
  }

  /** The backoff of a failed message, in whole seconds as SQS counts, so that its row can say when it is shown again. */
  function retryAfterMs(attempt: number): number {
    return Math.ceil(backoffMs(attempt, RETRY_BASE_MS, RETRY_CAP_MS, random) / 1_000) * 1_000;
  }

  async function claimAndRun(
    handler: LeasedHandler,
    event: Envelope,
    delivery: Delivery,
    takeOver: boolean,
    unclaimedRuns = 0,
  ): Promise<Outcome> {
    const { message, endsBy, receives } = delivery;
    const firstReceive = receives <= 1 + unclaimedRuns;
    const verdict = await inbox.claim(message, { takeOver, endsBy, firstReceive });
    if (verdict.status !== 'claimed') return refused(delivery, verdict);
    const { claim } = verdict;
    if (takeOver) telemetry.count('LeasesExpired');
    if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
    if (claim.attempt > config.maxAttempts) {
      // Its last attempt never came to an end: the process died, or lost its lease.
      return reject(
        delivery,
        claim,
        attemptsSpent(config.maxAttempts, claim.lastError ?? 'the function died'),
      );
    }
    const effects = createEffects({ ...parts, ...config }, claim);
    const run = await runLeased(parts, handler, event, claim, effects, delivery.receiptHandle);
    if (run.kind === 'committed') return processed(delivery, claim, effects);
    if (run.kind === 'returned') return complete(delivery, claim, effects, run.result);
    if (run.kind === 'blocked') {
      const afterMs = untilMs(run.error.until);
      const refusal = await inbox.giveBack(claim, clock.now() + afterMs);
      if (refusal !== undefined) return fenceRefused(delivery, refusal);
      telemetry.count('MessagesLeased');
      return again(afterMs, run.error);
    }
    if (run.kind === 'out-of-time') {
      // The handler still runs: its lease stays, and nobody tries before the function is stopped for certain.
      const error = outOfTime();
      logFailure('A handler ran out of time', delivery, error);
      return again(untilMs(claim.endsBy), error);
    }
    return threw(delivery, claim, effects, run.error);
  }

  async function threw(delivery: Delivery, claim: Claim, effects: Effects, error: unknown): Promise<Outcome> {
    if (isAlreadyProcessed(error)) return complete(delivery, claim, effects, undefined);
    if (isPoison(error)) return reject(delivery, claim, error);
    if (claim.attempt >= config.maxAttempts)
      return reject(delivery, claim, attemptsSpent(claim.attempt, error));
    const afterMs = retryAfterMs(claim.attempt);
    const retryAt = clock.now() + afterMs;
    const refusal = await inbox.release(claim, error, retryAt);
    if (refusal !== undefined) return fenceRefused(delivery, refusal);
    await hints.put(claim.message.eventId, retryAt, claim.endsBy);
    return comeAgain(delivery, afterMs, error);
  }

  async function complete(
    delivery: Delivery,
    claim: Claim,
    effects: Effects,
    result: unknown,
  ): Promise<Outcome> {
    const refusal = await inbox.complete(claim, result);
    return refusal === undefined ? processed(delivery, claim, effects) : fenceRefused(delivery, refusal);
  }

  async function reject(delivery: Delivery, claim: Claim, error: unknown): Promise<Outcome> {
    const refusal = await inbox.reject(claim, error);
    if (refusal !== undefined) return fenceRefused(delivery, refusal);
    if (failedBefore(claim)) await hints.remove(claim.message.eventId, claim.endsBy);
    return rejected(delivery, error);
  }

  async function rejectUnclaimed(delivery: Delivery, error: unknown): Promise<Outcome> {
    const refusal = await inbox.rejectUnclaimed(delivery.message, error);
    if (refusal.status !== 'rejected') return refused(delivery, refusal);
    // Nobody claimed it, so nobody knows whether it had failed; at its first receive it cannot have.
    if (delivery.receives > 1) await hints.remove(delivery.message.eventId, delivery.endsBy);
    return rejected(delivery, error);
  }

  /**
   * Only reads and returns; its writes and the inbox row are one transaction, on condition that there is no row.
   *
   * @returns `undefined` when there is one, and the message has to be claimed
   */
  async function runUnclaimed(
    handler: TransactionalHandler,
    event: Envelope,
    delivery: Delivery,
  ): Promise<Outcome | undefined> {
    const { message, receives, endsBy } = delivery;
    const commit = async (actions: readonly TransactAction[]) => {
      const refusal = await inbox.commitUnclaimed(message, actions, receives);
      if (refusal === undefined) {
        telemetry.count('EventsCommitted', eventCount(actions));
        return processed(delivery);
      }
      return refusal.status === 'open' ? undefined : refused(delivery, refusal);
    };
    const remainingMs = () => Math.max(0, endsBy - clock.now());
    try {
      return await onFreshReads({ clock, random, remainingMs }, async () =>
        commit(await actionsOf(handler, event, { attempt: receives, remainingMs })),
      );
    } catch (error) {
      if (isAlreadyProcessed(error)) return commit([]);
      if (isPoison(error) || receives < config.maxAttempts) throw error;
      throw attemptsSpent(receives, error);
    }
  }

  async function actionsOf(
    handler: TransactionalHandler,
    event: Envelope,
    ctx: TransactionalContext,
  ): Promise<TransactAction[]> {
    const { writes = [], events = [] } = await inTime(ctx.remainingMs(), commitOf(handler, event, ctx));
    const actions = [...writes, ...(await outbox.entries(events, event))];
    // The inbox row, and the pointer of a rejected message that is let in again.
    checkTransaction(actions, clock.now(), 2);
    return actions;
  }

  /** Gives up waiting when the function's time is nearly up: the batch must be answered. */
  async function inTime<T>(remainingMs: number, work: Promise<T>): Promise<T> {
    const over = new AbortController();
    const timeIsUp = clock.sleep(remainingMs - RESPONSE_MARGIN_MS, over.signal).then((): never => {
      throw outOfTime();
    });
    timeIsUp.catch(() => {}); // also when the work has won
    try {
      return await Promise.race([work, timeIsUp]);
    } finally {
      over.abort();
    }
  }

  /** What to do with a message that is not ours to work on. */
  async function refused(delivery: Delivery, refusal: Refusal): Promise<Outcome> {
    switch (refusal.status) {
      case 'processed':
        telemetry.count('MessagesDuplicate');
        return { kind: 'done' };
      case 'rejected':
        return again(0, new MailroomError(refusal.reason, 'The message was rejected'));
      case 'expired':
        return { kind: 'expired', attempts: refusal.attempts };
      case 'leased': {
        telemetry.count('MessagesLeased');
        // Once for the rest of the lease; when it is held still, its owner is alive: until the owner is stopped.
        const until = delivery.receives > 1 ? refusal.endsBy : refusal.until;
        return again(untilMs(until), new MailroomError('LEASED', 'Another worker holds the message'));
      }
      case 'too-old':
        return rejectUnclaimed(
          delivery,
          poison(
            TOO_OLD,
            `The event is older than the inbox retention of ${config.inboxRetentionDays} days and has no row: it may have been ` +
              'processed before. Only an operator can let it run.',
          ),
        );
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

  /** The work is done. Its effects' rows may expire from now on; where that cannot be written, they stay. */
  async function processed(delivery: Delivery, claim?: Claim, effects?: Effects): Promise<Outcome> {
    const { message } = delivery;
    await effects
      ?.expire()
      .catch((error: unknown) =>
        logFailure('The effects of a processed message keep their rows', delivery, error),
      );
    telemetry.count('MessagesProcessed');
    if (isEventId(message.eventId))
      telemetry.duration('ProcessLatency', clock.now() - eventIdTime(message.eventId));
    if (claim !== undefined && failedBefore(claim)) await hints.remove(message.eventId, claim.endsBy);
    return { kind: 'done' };
  }

  /** By SQS's own route: failed and shown at once, until its receives are spent. The row stops the handler from running again. */
  function rejected(delivery: Delivery, error: unknown): Outcome {
    telemetry.count('MessagesRejected');
    logFailure('A message was rejected; it goes to the dead-letter queue', delivery, error);
    return again(0, error);
  }

  /** Says when SQS shows the message again; where that fails, the queue's visibility timeout says it. */
  async function hide(record: SQSRecord, afterMs: number): Promise<void> {
    const seconds = Math.min(VISIBILITY_MAX_S, Math.max(0, Math.ceil(afterMs / 1_000)));
    try {
      await queue.changeVisibility(record.receiptHandle, seconds);
    } catch (error) {
      telemetry.log.warn('The visibility of a message could not be changed', {
        messageId: record.messageId,
        error: error as Error,
      });
    }
  }

  /** Milliseconds until one second after a time, for a message that waits for it. */
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
}

/** What failed is logged by the consumer itself. */
const quiet = { logger: { debug: () => {}, warn: () => {}, error: () => {} } };

function again(afterMs: number, error: unknown): Outcome & { kind: 'again' } {
  return { kind: 'again', afterMs, error };
}

function handlersByType(handlers: readonly Handler[]): ReadonlyMap<string, Handler> {
  const byType = new Map<string, Handler>();
  for (const handler of handlers) {
    const { type } = handler.definition;
    if (byType.has(type)) {
      throw new MailroomError(
        'BAD_CONSUMER',
        `Two handlers take ${type}. A consumer handles an event once: put both into one handler, or make a second consumer.`,
      );
    }
    byType.set(type, handler);
  }
  return byType;
}

function outOfTime(): MailroomError {
  return new MailroomError('OUT_OF_TIME', "The handler was still running when the function's time was up");
}

function attemptsSpent(attempts: number, error: unknown): MailroomError {
  const last = isErrorWithCode(error, 'UNKNOWN')
    ? errorMessage(error)
    : `${errorCode(error)}: ${errorMessage(error)}`;
  return poison('ATTEMPTS_SPENT', `Given up after ${attempts} attempts. ${last}`);
}

/** Whether there may be a hint that it failed. */
function failedBefore(claim: Claim): boolean {
  return claim.attempt > 1 || claim.lastError !== undefined;
}

function hasMessageId(record: SQSRecord): boolean {
  return typeof record?.messageId === 'string' && record.messageId !== '';
}

/** How often SQS has handed it out. Where it does not say, it may be a repeat: then attempts are counted on. */
function receivesOf(record: SQSRecord): number {
  const receives = Number.parseInt(textOf(record.attributes?.ApproximateReceiveCount), 10);
  return Number.isSafeInteger(receives) && receives >= 1 ? receives : 2;
}

/** When SQS took it, epoch milliseconds; `undefined` when it does not say. */
function sentAtOf(record: SQSRecord): number | undefined {
  const sentAt = Number.parseInt(textOf(record.attributes?.SentTimestamp), 10);
  return Number.isSafeInteger(sentAt) && sentAt > 0 ? sentAt : undefined;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
