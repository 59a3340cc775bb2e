import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { SQSClient } from '@aws-sdk/client-sqs';
import { clientSettings } from './client-settings.ts';
import { readConsumerConfig, readProducerConfig } from './config.ts';
import { type ConsumerDeps, type ConsumerHandler, createConsumer } from './consume/consumer.ts';
import type { Handler } from './consume/handler.ts';
import { sqsQueue } from './consume/sqs-queue.ts';
import { dynamoTable } from './store/dynamo-table.ts';
import type { Table } from './store/table.ts';
import { createOutbox, type Outbox } from './write/outbox.ts';

/** What the handlers of a deployed consumer may be made with. */
export interface LambdaParts {
  /** The Mailroom table, for a handler that reads. */
  readonly table: Table;
}

/**
 * The outbox of the Lambda function that it is called in: `createOutbox` with the settings that
 * `mailroom.addProducer` put into the function's environment, and an SDK client of its own. Outside of a function
 * nothing is read before the first commit, so that a test may import the file that calls this.
 *
 * @throws `BAD_CONFIG` when a setting is missing: in a function at once, elsewhere from `commit` and `entries`
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
export function lambdaOutbox(): Outbox {
  const outbox = madeInLambda(() => {
    const config = readProducerConfig(process.env);
    return createOutbox({ config, table: tableNamed(config.tableName) });
  });
  return {
    commit: async (commit) => outbox().commit(commit),
    entries: async (events, cause) => outbox().entries(events, cause),
  };
}

/**
 * The handler of a consumer's Lambda function: `createConsumer` with the settings that `InboxConsumer` put into the
 * function's environment, and SDK clients of its own. Outside of a function nothing is read before the first
 * message, so that a test may import the file that calls this.
 *
 * @param handlers - one for each event type, or a function that makes them with the table that they read
 * @param options.redact - redacts the text of an error before it is stored or logged @default the text as it is
 * @throws `BAD_CONFIG` when a setting is missing, and `BAD_CONSUMER` when something is no handler, or two take the same event type: in a
 * function at once, elsewhere with the first message
 *
 * @example
 * ```ts
 * export const handler = lambdaConsumer([chargeOrder], { redact: (text) => text.replace(/\b\d{12,19}\b/g, '#') });
 * ```
 */
export function lambdaConsumer(
  handlers: readonly Handler[] | ((parts: LambdaParts) => readonly Handler[]),
  options: Pick<ConsumerDeps, 'redact'> = {},
): ConsumerHandler {
  const consumer = madeInLambda(() => {
    const config = readConsumerConfig(process.env);
    const table = tableNamed(config.tableName);
    const queue = sqsQueue({ client: new SQSClient(clientSettings), queueUrl: config.queueUrl });
    return createConsumer({
      config,
      table,
      queue,
      handlers: typeof handlers === 'function' ? handlers({ table }) : handlers,
      redact: options.redact,
    });
  });
  return async (event, context) => consumer()(event, context);
}

function tableNamed(tableName: string): Table {
  return dynamoTable({ client: new DynamoDBClient(clientSettings), tableName });
}

/** Makes a thing once: in a Lambda function at once, while its start has a whole CPU; elsewhere when it is asked for. */
function madeInLambda<T>(make: () => T): () => T {
  let made: { readonly thing: T } | undefined;
  const thing = () => {
    made ??= { thing: make() };
    return made.thing;
  };
  if (process.env.AWS_LAMBDA_FUNCTION_NAME !== undefined) thing();
  return thing;
}
