import type { Context, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type Clock, systemClock } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { MailroomError } from '../errors.ts';
import { type Redact, redactingTelemetry } from '../redaction.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { createInbox } from '../store/inbox.ts';
import { forgottenBecause, openInbox } from '../store/inbox-history.ts';
import type { Table } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { createOutbox } from '../write/outbox.ts';
import { batchTurn } from './batch-turn.ts';
import { bodiesToCheck, checkMessages } from './check-messages.ts';
import { claimAndRun } from './claimed-run.ts';
import type { Received } from './consumer-context.ts';
import { hasMessageId, readDelivery } from './delivery.ts';
import type { Handler } from './handler.ts';
import { type Handlers, handlerOf, refText } from './message.ts';
import {
  failUnclaimed,
  type MessageOutcome,
  reportOutage,
  type ShownAgain,
  tooLate,
} from './message-outcome.ts';
import { type Queue, VISIBILITY_MAX_S } from './queue.ts';
import { asLeased, runUnclaimed } from './transactional-run.ts';

/** What a consumer's handler is made of. */
export interface ConsumerDeps {
  /** From `readConsumerConfig(process.env)`. */
  readonly config: ConsumerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** The queue that its messages come from. */
  readonly queue: Queue;
  /** One for each event that the consumer subscribes to. */
  readonly handlers: readonly Handler[];
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
  /** @default Powertools */
  readonly telemetry?: Telemetry | undefined;
  /**
   * Redacts the text of every error, each of its causes too, before it is stored on a row or logged. @default the text as it
   * is: what a handler puts into the message of an error is stored and logged
   */
  readonly redact?: Redact | undefined;
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
 * - {@link PoisonMessage} (422), an unreadable message, an unknown type or version, another source than the definition's, a payload that fails its schema,
 *   attempts spent: rejected. The row says why, and the message goes to the DLQ by SQS's own route.
 * - {@link RetryLater}, or anything else (5xx): FAILED, and tried again after its delay, or by the retry schedule.
 * - Mailroom cannot reach its own table: no attempt counts, and the message is shown again a minute to 15 minutes later.
 *
 * @throws `BAD_CONSUMER` at once when something is no handler, or two take the same event
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
  const { config, table, queue, redact, clock = systemClock, random = systemRandomBytes } = deps;
  const telemetry = redactingTelemetry(deps.telemetry ?? powertoolsTelemetry(config), redact);
  const inbox = createInbox({ ...config, table, clock, random, redact });
  const outbox = createOutbox({ config, table, clock, random, telemetry });
  const ctx = { config, table, queue, clock, random, telemetry, inbox, outbox };
  const handlers = handlersByEvent(deps.handlers);

  return async (event, context) => {
    const bodies = bodiesToCheck(event);
    if (bodies !== undefined) return checkMessages(handlers, config.consumer, bodies);
    const records = (Array.isArray(event?.Records) ? event.Records : []).filter(hasMessageId);
    const beganAt = clock.now();
    const endsBy = beganAt + context.getRemainingTimeInMillis();
    telemetry.count('MessagesReceived', records.length);
    const deliveries = records.map((record) => readDelivery(record, { beganAt, endsBy }));
    const { now, later } = await batchTurn(ctx, deliveries);
    // What runs may kill the process: the others leave first, for another invocation.
    await Promise.all(later.map(({ delivery, outcome }) => hide({ ...ctx, delivery }, outcome)));
    const ends = await Promise.all(
      now.map((delivery) => work({ ...ctx, delivery }, handlers, now.length === 1)),
    );
    telemetry.flush();
    // A message that comes twice in a batch is named once.
    const failed = new Set([
      ...later.map(({ delivery }) => delivery.message.messageId),
      ...now.filter((_, i) => ends[i]?.kind === 'again').map(({ message }) => message.messageId),
    ]);
    return { batchItemFailures: [...failed].map((itemIdentifier) => ({ itemIdentifier })) };
  };
}

async function work(received: Received, handlers: Handlers, alone: boolean): Promise<MessageOutcome> {
  const outcome = await receive(received, handlers, alone);
  if (outcome.kind === 'again') await hide(received, outcome);
  return outcome;
}

/** Everything that happens to one message. It never throws: what fails, fails alone. */
async function receive(received: Received, handlers: Handlers, alone: boolean): Promise<MessageOutcome> {
  const { clock, inbox } = received;
  const { message, receives, endsBy } = received.delivery;
  if (endsBy - clock.now() < START_MIN_MS) return tooLate(received);
  try {
    await openInbox(inbox);
    const read = readHandler(received, handlers);
    if ('problem' in read) return await failUnclaimed(received, read.problem);
    const { handler, envelope } = read;
    if (handler.kind === 'leased') return await claimAndRun(received, handler, envelope, alone);
    // A message that comes again may be one that kills its process: then its attempts must be counted.
    const claimFirst = receives > 1 || forgottenBecause(inbox, message.eventId) !== undefined;
    const outcome = claimFirst ? undefined : await runUnclaimed(received, handler, envelope);
    if (outcome !== undefined) return outcome;
    // Its first run was, or would have been, without a claim: it is not counted.
    return await claimAndRun(received, asLeased(received, handler), envelope, alone, 1);
  } catch (error) {
    return reportOutage(received, error); // handlers are caught where they are run: this was a call of our own
  }
}

function readHandler({ config, delivery: { content } }: Received, handlers: Handlers) {
  if ('problem' in content) return content;
  try {
    return { envelope: content.envelope, handler: handlerOf(handlers, config.consumer, content) };
  } catch (problem) {
    return { problem };
  }
}

/** Says when SQS shows the message again; where that fails, the queue's visibility timeout says it. */
async function hide({ queue, telemetry, delivery }: Received, { afterMs }: ShownAgain): Promise<void> {
  const { message, receiptHandle } = delivery;
  const seconds = Math.min(VISIBILITY_MAX_S, Math.max(0, Math.ceil(afterMs / 1_000)));
  try {
    await queue.changeVisibility(receiptHandle, seconds);
  } catch (error) {
    telemetry.log.warn('The visibility of a message could not be changed', {
      messageId: message.messageId,
      error: error as Error,
    });
  }
}

function handlersByEvent(handlers: readonly Handler[]): Handlers {
  const byEvent = new Map<string, Handler>();
  for (const [i, handler] of handlers.entries()) {
    const type: unknown = handler?.definition?.type; // untyped code may hand over anything
    if (typeof type !== 'string') {
      throw new MailroomError(
        'BAD_CONSUMER',
        `handlers[${i}] is of type ${typeof handler} and no handler. Make it by leased(OrderPlaced, …) or transactional(OrderPlaced, …).`,
      );
    }
    const event = refText(handler.definition);
    if (byEvent.has(event)) {
      throw new MailroomError(
        'BAD_CONSUMER',
        `Two handlers take ${type} of ${handler.definition.source}. A consumer handles an event once: put both into one handler, or make a second consumer.`,
      );
    }
    byEvent.set(event, handler);
  }
  return byEvent;
}
