import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { portClientSettings } from './base/client-settings.ts';
import { readProducerConfig } from './base/config.ts';
import { readConsumerConfig } from './base/consumer-config.ts';
import type { ProcessingDeps } from './consume/consumer-context.ts';
import type { Handler } from './consume/handler.ts';
import type { Payloads } from './events/payloads.ts';
import type { Redact } from './observe/redaction.ts';
import type { TelemetryOptions } from './observe/telemetry.ts';
import { type ConsumerHandler, createConsumer, handlerList, handling } from './sources/sqs/consumer.ts';
import { ownSqsQueue } from './sources/sqs/sqs-queue.ts';
import { dynamoTable } from './store/dynamo/dynamo-table.ts';
import { createOutbox, type Outbox } from './store/dynamo/outbox.ts';
import type { AtOncePublisher } from './store/dynamo/publish-at-once.ts';
import type { Table } from './store/table.ts';

/** An option of `lambdaConsumer` and `lambdaOutbox`. */
export interface PayloadsOption {
  /**
   * Made by `lambdaPayloads`: keeps payloads above the threshold of the Mailroom in S3, and loads them.
   *
   * @default each event carries its payload, and an event whose payload is in S3 is rejected (`PAYLOAD_NOT_LOADED`)
   */
  readonly payloads?: (() => Payloads | undefined) | undefined;
}

/** Dependencies that `lambdaConsumer` offers to handlers. */
export interface LambdaParts {
  /** The Mailroom table, for handlers that read from it. */
  readonly table: Table;
  /** The outbox of the consumer's service: schedules and cancels events in the handler's own commit. */
  readonly outbox: Pick<Outbox, 'cancel' | 'cancellation' | 'entries'>;
}

/**
 * Creates the outbox of the Lambda function in which it is called: `createOutbox` with the settings that
 * `mailroom.addProducer` puts into the function's environment, and its own SDK client. Outside Lambda, nothing is read before
 * the first commit, so tests can import the file that calls this.
 *
 * @param options.publishAtOnce - `lambdaPublisher`, if the `mailroom.addProducer` call has `publishAtOnce` @default the relay publishes
 * every event. If only one side has it, as during a deployment, a warning is logged and the relay publishes
 * @param options.payloads - `lambdaPayloads(new S3(clientSettings))`, if the Mailroom has `payloads` @default each event carries its payload
 * @param options.redact - redacts the text of an error that `commit` throws, in its span @default the unchanged text
 * @param options.logger - like `logFields` and `metricDimensions`, as in {@link TelemetryOptions}
 * @throws `BAD_CONFIG` if a setting is missing: immediately in Lambda, otherwise from `commit` and `entries`
 *
 * @example
 * ```ts
 * const outbox = lambdaOutbox();
 *
 * export async function placeOrder(orderId: string, totalCents: number) {
 *   await outbox.commit({
 *     writes: [{ Put: { Item: { PK: `ORDER#${orderId}`, SK: 'ORDER', totalCents } } }],
 *     events: [OrderPlaced.create({ aggregateId: orderId, data: { orderId, totalCents } })],
 *   });
 * }
 * ```
 */
export function lambdaOutbox(
  options: {
    readonly publishAtOnce?: (() => AtOncePublisher | undefined) | undefined;
    readonly redact?: Redact | undefined;
  } & PayloadsOption &
    TelemetryOptions = {},
): Outbox {
  const outbox = madeInLambda(() => {
    const config = readProducerConfig(process.env);
    const { MAILROOM_AT_ONCE_TIMEOUT_MS: timeoutMs } = process.env;
    if (timeoutMs !== undefined && options.publishAtOnce === undefined) {
      console.warn(
        'lambdaOutbox: the mailroom.addProducer call has publishAtOnce, but this outbox leaves publishing to the relay. ' +
          'Create it with lambdaOutbox({ publishAtOnce: lambdaPublisher }).',
      );
    }
    const publishAtOnce = options.publishAtOnce?.();
    const payloads = options.payloads?.();
    return createOutbox({ ...options, config, table: tableNamed(config.tableName), publishAtOnce, payloads });
  });
  return onUse(outbox);
}

/**
 * Creates the handler of a consumer's Lambda function: `createConsumer` with the settings that `InboxConsumer` puts into the
 * function's environment, and its own SDK clients. Outside Lambda, nothing is read before the first message, so tests can
 * import the file that calls this.
 *
 * @param handlers - one per event type, or a function that receives the table and returns them
 * @param options.payloads - `lambdaPayloads(new S3(clientSettings))`, if the Mailroom has `payloads` @default none is loaded
 * @param options.redact - redacts the text of an error before it is stored or logged @default the unchanged text
 * @param options.around - runs around each run of each handler: see `Around` @default none
 * @param options.logger - like `logFields` and `metricDimensions`, as in {@link TelemetryOptions}
 * @throws `BAD_CONFIG` if a setting is missing; `BAD_CONSUMER` if an entry is not a handler or two handlers take the same event
 * type: immediately in Lambda, otherwise on the first message
 *
 * @example
 * ```ts
 * export const handler = lambdaConsumer([chargeOrder], { redact: (text) => text.replace(/\b\d{12,19}\b/g, '#') });
 * ```
 */
export function lambdaConsumer(
  handlers:
    | readonly Handler[]
    | ((parts: LambdaParts) => readonly Handler[])
    // Only explains the compiler's error for a single handler: no handler is of this kind.
    | (Pick<Handler, 'definition' | 'handle'> & {
        readonly kind: 'lambdaConsumer takes a list: lambdaConsumer([leased(…)])';
      }),
  options: Pick<ProcessingDeps, 'redact' | 'around'> & PayloadsOption & TelemetryOptions = {},
): ConsumerHandler {
  const payloadsOf = once(() => options.payloads?.());
  const outboxOn = (table: Table) => {
    let outbox: Outbox | undefined;
    return onUse(() => {
      const config = readConsumerConfig(process.env);
      outbox ??= createOutbox({ ...options, config, table, payloads: payloadsOf() });
      return outbox;
    });
  };
  const handlersOn = (table: Table) =>
    handlerList(typeof handlers === 'function' ? handlers({ table, outbox: outboxOn(table) }) : handlers);
  const consumer = madeInLambda(() => {
    const config = readConsumerConfig(process.env);
    const table = tableNamed(config.tableName);
    const queue = ownSqsQueue(config.queueUrl);
    return createConsumer({
      ...options,
      config,
      table,
      queue,
      payloads: payloadsOf(),
      handlers: handlersOn(table),
    });
  });
  // Synth has no table; any name is enough to create the handlers.
  return handling(
    () => handlersOn(tableNamed('none')),
    async (event, context) => consumer()(event, context),
  );
}

/** Creates the outbox on first use, because synth has no configuration. */
function onUse(outbox: () => Outbox): Outbox {
  return {
    commit: async (commit) => outbox().commit(commit),
    entries: async (events, cause) => outbox().entries(events, cause),
    cancel: async (eventId) => outbox().cancel(eventId),
    cancellation: (eventId) => outbox().cancellation(eventId),
    reschedule: async (eventId, event) => outbox().reschedule(eventId, event),
  };
}

function tableNamed(tableName: string): Table {
  return dynamoTable({ client: new DynamoDBClient(portClientSettings), tableName });
}

/** Calls `make` once: immediately in Lambda, because a function starts with a full CPU, otherwise on first use. */
function madeInLambda<T>(make: () => T): () => T {
  const thing = once(make);
  if (process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined) thing();
  return thing;
}

function once<T>(make: () => T): () => T {
  let made: { readonly thing: T } | undefined;
  return () => {
    made ??= { thing: make() };
    return made.thing;
  };
}
