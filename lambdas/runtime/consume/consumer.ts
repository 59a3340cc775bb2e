import { BatchProcessor, EventType, processPartialResponse } from '@aws-lambda-powertools/batch';
import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import { type Clock, systemClock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { asMailroomError, MailroomError } from '../errors.ts';
import { type RandomBytes, systemRandomBytes } from '../event-id.ts';
import type { Table } from '../table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { createOutbox } from '../write/outbox.ts';
import { bodiesToCheck, checkMessages } from './check-messages.ts';
import { createClaimedRun } from './claimed-run.ts';
import { hasMessageId, unreadDelivery } from './delivery.ts';
import { createFailedHints } from './failed-hints.ts';
import type { Handler } from './handler.ts';
import { createInbox } from './inbox.ts';
import { lastLane } from './last-lane.ts';
import { handlerOf, readEnvelope, readEvent } from './message.ts';
import { again, createOutcomes, type Outcome } from './message-outcome.ts';
import { type Queue, VISIBILITY_MAX_S } from './queue.ts';
import { asLeased, createUnclaimedRun } from './transactional-run.ts';

/** What a consumer's handler is made of. */
export interface ConsumerDeps {
  /** From `readConsumerConfig(process.env)`. */
  readonly config: ConsumerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** The queue that its messages come from. */
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

/**
 * The handler of a consumer's Lambda function: an SQS batch in, a partial batch response out. It has a name so that an
 * app that emits declarations can export one without types of its own for Lambda.
 */
export type ConsumerHandler = (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>;

/** A message with less time than this left for its handler is put back without being tried. */
const START_MIN_MS = 2_000;

/**
 * Makes the Lambda handler of a consumer: an SQS batch in, a partial batch response out. Whatever a record holds,
 * it fails alone.
 *
 * - A return value (200), or {@link AlreadyProcessed} (409): processed.
 * - {@link PoisonMessage} (422), an unreadable message, an unknown type or version, a payload that fails its schema,
 *   attempts spent: rejected. The row says why, and the message goes to the DLQ by SQS's own route.
 * - Anything else (5xx): FAILED; the message is shown again after a backoff.
 *
 * @throws `BAD_CONSUMER` at once when something is no handler, or two take the same event type
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
export function createConsumer(deps: ConsumerDeps): ConsumerHandler {
  const { config, table, queue, clock = systemClock, random = systemRandomBytes } = deps;
  const telemetry = deps.telemetry ?? powertoolsTelemetry(config);
  const inbox = createInbox({ ...config, table, clock, random });
  const outbox = createOutbox({ config, table, clock, random, telemetry });
  const hints = createFailedHints({ ...config, table, clock, telemetry });
  const outcomes = createOutcomes({ config, clock, random, telemetry, inbox, hints });
  const parts = { config, table, queue, clock, random, telemetry, inbox, outbox, hints, outcomes };
  const claimAndRun = createClaimedRun(parts);
  const runUnclaimed = createUnclaimedRun(parts);
  const handlers = handlersByType(deps.handlers);

  return async (event, context) => {
    const bodies = bodiesToCheck(event);
    if (bodies !== undefined) return checkMessages(handlers, config.consumer, bodies);
    const records = (Array.isArray(event?.Records) ? event.Records : []).filter(hasMessageId);
    const endsBy = clock.now() + context.getRemainingTimeInMillis();
    telemetry.count('MessagesReceived', records.length);
    const response = await processPartialResponse(
      { Records: records },
      workOf(records.length, endsBy),
      new BatchProcessor(EventType.SQS, quiet),
      { context, throwOnFullBatchFailure: false },
    );
    telemetry.flush();
    // A message that comes twice in a batch is named once.
    const failed = new Set(response.batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
  };

  /**
   * What is done with each record of one batch: it throws what Powertools reports to SQS as a failure.
   *
   * @param size - how many records the batch has
   * @param endsBy - when the function is stopped, epoch milliseconds
   */
  function workOf(size: number, endsBy: number): (record: SQSRecord) => Promise<void> {
    const lane = lastLane(size);
    return async (record) => {
      let arrived = true;
      const first = await receive(record, endsBy, false)
        .then((outcome) => {
          arrived = outcome.kind !== 'abandoned';
          return outcome;
        })
        .finally(() => {
          if (arrived) lane.arrive();
        });
      const last =
        first.kind === 'abandoned'
          ? await lane.runLast(first.attempts, () => receive(record, endsBy, true))
          : first;
      if (last.kind === 'done') return;
      const failure =
        last.kind === 'again' ? last : again(1_000, new MailroomError('LEASED', 'Somebody else was quicker'));
      await hide(record, failure.afterMs);
      throw asMailroomError(failure.error); // Powertools wants an Error, and a handler may throw anything
    };
  }

  /** Everything that happens to one record. It never throws: what fails, fails alone. */
  async function receive(record: SQSRecord, endsBy: number, takeOver: boolean): Promise<Outcome> {
    let delivery = unreadDelivery(record, endsBy);
    try {
      if (endsBy - clock.now() < START_MIN_MS) {
        // Apart from the neighbours that have used the time up.
        return again(
          outcomes.retryAfterMs(delivery.receives),
          new MailroomError('NO_TIME_LEFT', 'The function has too little time left to begin with it'),
        );
      }
      await inbox.open();
      const envelope = readEnvelope(record);
      const { eventId, type } = envelope;
      delivery = { ...delivery, message: { ...delivery.message, eventId, type } };
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
      return outcomes.failedUnclaimed(delivery, error);
    }
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
}

/** What failed is logged by the consumer itself. */
const quiet = { logger: { debug: () => {}, warn: () => {}, error: () => {} } };

function handlersByType(handlers: readonly Handler[]): ReadonlyMap<string, Handler> {
  const byType = new Map<string, Handler>();
  for (const [i, handler] of handlers.entries()) {
    const type: unknown = handler?.definition?.type; // untyped code may hand over anything
    if (typeof type !== 'string') {
      throw new MailroomError(
        'BAD_CONSUMER',
        `handlers[${i}] is of type ${typeof handler} and no handler. Make it by leased(OrderPlaced, …) or transactional(OrderPlaced, …).`,
      );
    }
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
