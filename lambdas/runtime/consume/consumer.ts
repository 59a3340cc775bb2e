import type { Context, SQSBatchItemFailure, SQSBatchResponse, SQSEvent } from 'aws-lambda';
import { type Clock, systemClock } from '../base/clock.ts';
import type { ConsumerConfig } from '../base/config.ts';
import { MailroomError } from '../base/errors.ts';
import type { EventRef } from '../events/event.ts';
import { isExternal } from '../events/external-event.ts';
import { HEARTBEAT } from '../events/heartbeat-event.ts';
import { createInbox } from '../inbox/inbox.ts';
import { forgottenBecause, openInbox } from '../inbox/inbox-history.ts';
import { processSpan } from '../observe/message-spans.ts';
import { type Redact, redactingTelemetry } from '../observe/redaction.ts';
import { ownTelemetry, type Telemetry, type TelemetryOptions } from '../observe/telemetry.ts';
import { safeTelemetry } from '../observe/telemetry-wrappers.ts';
import { createTracer, flushSpans, NO_TRACER } from '../observe/tracer.ts';
import { createOutbox } from '../outbox/outbox.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import type { Table } from '../store/table.ts';
import { batchTurn } from './batch-turn.ts';
import { bodiesToCheck, checkMessages } from './check-messages.ts';
import { claimAndRun } from './claimed-run.ts';
import { type ConsumerContext, envelopeOf, type Received, receivedOf } from './consumer-context.ts';
import { type Delivery, deliversHeartbeat, hasMessageId, readDelivery } from './delivery.ts';
import type { Handler } from './handler.ts';
import { acknowledgeHeartbeat } from './heartbeat.ts';
import { type Handlers, handlerOf, refText } from './message.ts';
import {
  failUnclaimed,
  type MessageOutcome,
  reportOutage,
  type ShownAgain,
  tooLate,
} from './message-outcome.ts';
import { settleForOperator } from './operator-commit.ts';
import { checkOrder, onGatedRuns, orderOfHandler } from './order-gate.ts';
import { type Queue, VISIBILITY_MAX_S } from './queue.ts';
import { isSettleRequest } from './settle-requests.ts';
import { asLeased, runUnclaimed } from './transactional-run.ts';

/** Dependencies of {@link createConsumer}. */
export interface ConsumerDeps extends TelemetryOptions {
  /** From `readConsumerConfig(process.env)`. */
  readonly config: ConsumerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** The consumer's queue. */
  readonly queue: Queue;
  /** One handler per event that the consumer subscribes to. */
  readonly handlers: readonly Handler[];
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** @default Powertools, with the options `logger`, `logFields` and `metricDimensions`, which apply only to it */
  readonly telemetry?: Telemetry | undefined;
  /**
   * Redacts the text of every error and of each of its causes before it is stored in a row or logged. @default the unchanged
   * text: the messages of errors that a handler throws are stored and logged
   */
  readonly redact?: Redact | undefined;
}

/**
 * The handler of a consumer's Lambda function: it takes an SQS batch and returns a partial batch response. The type is named
 * so that an app that emits declarations can export such a handler without its own Lambda types.
 */
export type ConsumerHandler = ((event: SQSEvent, context: Context) => Promise<SQSBatchResponse>) & {
  /**
   * The events that it handles. `InboxConsumer` compares them with its subscriptions at synth, so a function that wraps the handler
   * must copy this property.
   */
  readonly handles?: readonly EventRef[] | undefined;
};

/** A message with less time than this left for its handler is returned to the queue without an attempt, milliseconds. */
const START_MIN_MS = 2_000;

/**
 * Creates the Lambda handler of a consumer: it takes an SQS batch and returns a partial batch response. A message that fails,
 * whatever its content, never fails the others of its batch.
 *
 * - The handler returns (200), or throws {@link AlreadyProcessed} (409): the message is processed.
 * - The handler throws {@link PoisonMessage} (422), the message is unreadable, its type or version is unknown, its source is not the
 *   definition's, its payload fails its schema, or its attempts are exhausted: the message is rejected. The row records the
 *   reason, and SQS moves the message to the DLQ.
 * - The handler throws {@link RetryLater} or any other error (5xx): the message is FAILED, and retried after the delay that it
 *   chose or by the retry schedule.
 * - A heartbeat of the Mailroom is acknowledged without a handler.
 * - Mailroom cannot reach its own table: no attempt is counted, and the message becomes visible again after 1 to 15 minutes.
 *
 * @throws `BAD_CONSUMER` immediately if an entry of `handlers` is not a handler, two handlers take the same event, or a handler has an
 * `order` that it cannot have; `BAD_CONFIG` if a strict consumer has no `maxReceives`
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
  const telemetry = redactingTelemetry(safeTelemetry(deps.telemetry ?? ownTelemetry(config, deps)), redact);
  const inbox = createInbox({ ...config, table, clock, random, redact });
  const tracer = createTracer(redact);
  const outbox = createOutbox({ config, table, clock, random, telemetry });
  const ctx = { config, table, queue, clock, random, telemetry, tracer, inbox, outbox };
  const list = handlerList(deps.handlers);
  const handlers = handlersByEvent(list, config);
  const external = list.map(({ definition }) => definition).filter(isExternal);

  return handling(
    () => list,
    async (event, context) => {
      const bodies = bodiesToCheck(event);
      if (bodies !== undefined) return checkMessages(handlers, external, config.consumer, bodies);
      telemetry.startInvocation?.(context);
      const beganAt = clock.now();
      const endsBy = beganAt + context.getRemainingTimeInMillis();
      if (isSettleRequest(event)) return settleForOperator({ ctx, handlers, external, endsBy }, event);
      const records = (Array.isArray(event?.Records) ? event.Records : []).filter(hasMessageId);
      const deliveries = records.map((record) => readDelivery(record, { beganAt, endsBy }, external));
      telemetry.count(
        'MessagesReceived',
        deliveries.filter((delivery) => !deliversHeartbeat(delivery)).length,
      );
      const { now, later } = await batchTurn(ctx, deliveries);
      // A suspect may kill the process, so the other messages are returned first, for another invocation.
      await Promise.all(later.map(({ delivery, outcome }) => hide(receivedOf(ctx, delivery), outcome)));
      const ends = await Promise.all(now.map((delivery) => work(ctx, delivery, handlers, now.length === 1)));
      telemetry.flush();
      await flushSpans(clock, endsBy);
      // SQS may deliver a message twice in one batch; name it only once.
      const failed = new Map([
        ...later.map(({ delivery, outcome }) => [delivery.message.messageId, outcome.error] as const),
        ...now.flatMap(({ message }, i) => {
          const end = ends[i];
          return end?.kind === 'again' ? [[message.messageId, end.error] as const] : [];
        }),
      ]);
      return { batchItemFailures: [...failed].map(([id, error]) => itemFailure(id, error)) };
    },
  );
}

/** The error is for tests, and not enumerable: it is not part of the answer that Lambda receives. */
function itemFailure(itemIdentifier: string, error: unknown): SQSBatchItemFailure {
  return Object.defineProperty({ itemIdentifier }, 'error', { value: error });
}

/** @throws `BAD_CONSUMER` if untyped code passes one handler instead of a list */
export function handlerList(handlers: unknown): readonly Handler[] {
  if (Array.isArray(handlers)) return handlers;
  throw new MailroomError(
    'BAD_CONSUMER',
    `handlers is of type ${typeof handlers}, not a list. Pass a list: lambdaConsumer([leased(OrderPlaced, …)]).`,
  );
}

/** Gives a function its `handles`, which is enumerable, so that `Object.assign(wrapper, handler)` copies it. */
export function handling(
  handlersOf: () => readonly Handler[],
  consume: (event: SQSEvent, context: Context) => Promise<SQSBatchResponse>,
): ConsumerHandler {
  const get = () => handlersOf().map(({ definition: { source, type } }) => ({ source, type }));
  return Object.defineProperty(consume, 'handles', { get, enumerable: true });
}

async function work(
  ctx: ConsumerContext,
  delivery: Delivery,
  handlers: Handlers,
  alone: boolean,
): Promise<MessageOutcome> {
  // Heartbeats are not counted either: their durations are not those of the consumer's work.
  const { config } = ctx;
  const tracer = deliversHeartbeat(delivery) ? NO_TRACER : ctx.tracer;
  const options = processSpan(config, delivery.message, envelopeOf(delivery), tracer.current());
  const span = tracer.start(options);
  try {
    const received = receivedOf(ctx, delivery, span);
    const outcome = await receive(received, handlers, alone);
    if (outcome.kind === 'again') await hide(received, outcome);
    return outcome;
  } finally {
    span.end();
  }
}

/** Processes one message. It never throws: a failure affects only this message. */
async function receive(received: Received, handlers: Handlers, alone: boolean): Promise<MessageOutcome> {
  const { clock, inbox } = received;
  const { message, receives, endsBy } = received.delivery;
  if (endsBy - clock.now() < START_MIN_MS) return tooLate(received);
  try {
    await openInbox(inbox);
    const read = readHandler(received, handlers);
    if ('problem' in read) return await failUnclaimed(received, read.problem);
    const { handler, envelope } = read;
    return await onGatedRuns(received, handler, envelope, async (passed) => {
      if (handler.kind === 'leased') return claimAndRun(passed, handler, envelope, alone);
      // A redelivered message may have killed its process, so its attempts must be counted.
      const claimFirst = receives > 1 || forgottenBecause(inbox, message.eventId) !== undefined;
      const outcome = claimFirst ? undefined : await runUnclaimed(passed, handler, envelope);
      if (outcome !== undefined) return outcome;
      // Its first run was, or would have been, unclaimed and is not counted.
      return claimAndRun(passed, asLeased(passed, handler), envelope, alone, 1);
    });
  } catch (error) {
    return reportOutage(received, error); // handler errors are caught where handlers run, so this was Mailroom's own call
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

/** Sets when SQS redelivers the message; if that fails, the queue's visibility timeout applies. */
async function hide({ queue, telemetry, delivery }: Received, { afterMs }: ShownAgain): Promise<void> {
  const { receiptHandle } = delivery;
  const seconds = Math.min(VISIBILITY_MAX_S, Math.max(0, Math.ceil(afterMs / 1_000)));
  try {
    await queue.changeVisibility(receiptHandle, seconds);
  } catch (error) {
    telemetry.log.warn('The visibility timeout of a message could not be changed', { error: error as Error });
  }
}

function handlersByEvent(handlers: readonly Handler[], config: ConsumerConfig): Handlers {
  const { existingQueue } = config;
  checkOrder(config);
  // No rule sends heartbeats to an existing queue, but others may: they would be recorded as processed.
  const byEvent = new Map<string, Handler>(existingQueue ? [] : [[refText(HEARTBEAT), acknowledgeHeartbeat]]);
  for (const [i, handler] of handlers.entries()) {
    const type: unknown = handler?.definition?.type; // untyped code may pass anything
    if (typeof type !== 'string') {
      throw new MailroomError(
        'BAD_CONSUMER',
        `handlers[${i}] is of type ${typeof handler}, not a handler. Create it with leased(OrderPlaced, …) or transactional(OrderPlaced, …).`,
      );
    }
    const event = refText(handler.definition);
    if (byEvent.has(event)) {
      throw new MailroomError(
        'BAD_CONSUMER',
        `Two handlers take ${type} from ${handler.definition.source}. A consumer handles each event once: combine them into one handler, or create a second consumer.`,
      );
    }
    orderOfHandler(handler, config); // refuses an order that it cannot have
    byEvent.set(event, handler);
  }
  return byEvent;
}
