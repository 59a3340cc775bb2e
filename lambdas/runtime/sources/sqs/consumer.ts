import type { Context, SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import type { ConsumerConfig, QueueConfig } from '../../base/consumer-config.ts';
import { MailroomError } from '../../base/errors.ts';
import { requireGiven } from '../../base/given-names.ts';
import { textOf } from '../../base/json.ts';
import { workOnAll } from '../../consume/batches.ts';
import {
  type ConsumerContext,
  consumerContext,
  type ProcessingDeps,
  receivedOf,
} from '../../consume/consumer-context.ts';
import {
  type Delivery,
  deliversHeartbeat,
  readDelivery,
  type SourceDelivery,
} from '../../consume/delivery.ts';
import type { Handler } from '../../consume/handler.ts';
import { acknowledgeHeartbeat } from '../../consume/heartbeat.ts';
import type { ShownAgain } from '../../consume/message-outcome.ts';
import { settleForOperator } from '../../consume/operator-commit.ts';
import { handlersByEvent } from '../../consume/receive.ts';
import { isSettleRequest } from '../../consume/settle-requests.ts';
import { dynamoSettling, type SettlingStore } from '../../consume/settling-store.ts';
import type { EventRef } from '../../events/event.ts';
import { isExternal } from '../../events/external-event.ts';
import { flushSpans } from '../../observe/tracer.ts';
import type { Table } from '../../store/table.ts';
import { batchResponse, hasMessageId } from './batch-response.ts';
import { batchTurn } from './batch-turn.ts';
import { bodiesToCheck, checkMessages } from './check-messages.ts';
import { type Queue, VISIBILITY_MAX_S } from './queue.ts';

/** Dependencies of `createConsumer`. */
export interface ConsumerDeps extends ProcessingDeps {
  /** From `readConsumerConfig(process.env)`. */
  readonly config: ConsumerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** The consumer's queue. */
  readonly queue: Queue;
  /** One handler per event that the consumer subscribes to. */
  readonly handlers: readonly Handler[];
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
  requireGiven('createConsumer', deps, 'config', 'table', 'queue', 'handlers');
  const ctx = consumerContext(deps);
  return consumerIn(ctx, deps, dynamoSettling(ctx));
}

/** As {@link createConsumer}, with any storage. @param store - where messages are settled for an operator */
export function consumerIn(
  storage: ConsumerContext,
  given: { readonly config: QueueConfig; readonly queue: Queue; readonly handlers: unknown },
  store: SettlingStore,
): ConsumerHandler {
  const { config, clock, telemetry } = storage;
  const { queueUrl, existingQueue } = given.config;
  const ctx = { ...storage, queueName: queueUrl.slice(queueUrl.lastIndexOf('/') + 1) };
  const list = handlerList(given.handlers);
  // No rule sends heartbeats to an existing queue, but others may: they would be recorded as processed.
  const heartbeats = existingQueue ? [] : [acknowledgeHeartbeat];
  const handlers = handlersByEvent([...list, ...heartbeats], config, {
    canLimit: storage.inbox.limits !== undefined,
    canBatch: storage.inbox.commitBatch !== undefined,
    around: storage.around,
  });
  const external = list.map(({ definition }) => definition).filter(isExternal);

  return handling(
    () => list,
    async (event, context) => {
      const bodies = bodiesToCheck(event);
      const beganAt = clock.now();
      const endsBy = beganAt + context.getRemainingTimeInMillis();
      if (bodies !== undefined) return checkMessages(handlers, external, storage, bodies, endsBy);
      telemetry.startInvocation?.(context);
      if (isSettleRequest(event)) return settleForOperator({ ctx, store, handlers, external, endsBy }, event);
      const records = (Array.isArray(event?.Records) ? event.Records : []).filter(hasMessageId);
      const deliveries = records.map((record) =>
        readDelivery(deliveryOf(record, given), { beganAt, endsBy }, external),
      );
      telemetry.count(
        'MessagesReceived',
        deliveries.filter((delivery) => !deliversHeartbeat(delivery)).length,
      );
      const { now, later } = await batchTurn(ctx, deliveries);
      // A suspect may kill the process, so the other messages are returned first, for another invocation.
      await Promise.all(later.map(({ delivery, outcome }) => hide(ctx, delivery, outcome)));
      const ends = await Promise.all(
        workOnAll(ctx, now, handlers).map(async (working, i) => {
          const outcome = await working;
          const delivery = now[i];
          if (outcome.kind === 'again' && delivery !== undefined) await hide(ctx, delivery, outcome);
          return outcome;
        }),
      );
      telemetry.flush();
      await flushSpans(clock, endsBy);
      return batchResponse(later, now, ends);
    },
  );
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

function deliveryOf(
  { messageId, receiptHandle, body, attributes }: SQSRecord,
  { config, queue }: { readonly config: QueueConfig; readonly queue: Queue },
): SourceDelivery {
  return {
    messageId,
    body,
    receives: numberIn(attributes?.ApproximateReceiveCount),
    sentAt: numberIn(attributes?.SentTimestamp),
    visibility: {
      timeoutMs: config.visibilityTimeoutMs,
      hide: (ms) =>
        queue.changeVisibility(receiptHandle, Math.min(VISIBILITY_MAX_S, Math.max(0, Math.ceil(ms / 1_000)))),
    },
  };
}

function numberIn(attribute: unknown): number {
  return Number.parseInt(textOf(attribute) ?? '', 10);
}

/** Sets when SQS redelivers the message; if that fails, the queue's visibility timeout applies. */
async function hide(ctx: ConsumerContext, delivery: Delivery, { afterMs }: ShownAgain): Promise<void> {
  try {
    await delivery.visibility?.hide(afterMs);
  } catch (error) {
    const { log } = receivedOf(ctx, delivery).telemetry;
    log.warn('The visibility timeout of a message could not be changed', { error: error as Error });
  }
}
