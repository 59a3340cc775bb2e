import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';

/** The settings that every SDK client takes; times are in milliseconds. */
export interface ClientSettings {
  /** How often a request is tried in all. */
  readonly maxAttempts: number;
  /** Where the SDK writes its warnings. */
  readonly logger: NonNullable<DynamoDBClientConfig['logger']>;
  /** How long a connection and a request may take. */
  readonly requestHandler: {
    readonly connectionTimeout: number;
    readonly requestTimeout: number;
    readonly throwOnRequestTimeout: boolean;
  };
  /** Whether the SQS client sends to the host of a queue's URL instead of its own endpoint. */
  readonly useQueueUrlAsEndpoint: boolean;
}

const silent = () => {};

/**
 * A logger without `info`. One that has it, the SDK's own silent one too, is told of every call, and for that the SDK walks
 * through every value of the request and the answer to leave out secret ones: a good part of the CPU of a batch of updates, for
 * a line that nobody writes. Warnings of the connection pool go where they go without a logger.
 */
const logger = {
  trace: silent,
  debug: silent,
  warn: (...what: unknown[]) => console.warn(...what),
  error: silent,
} as unknown as ClientSettings['logger'];

/**
 * Settings for the AWS SDK clients of a function: a request that hangs is given up after 5 s and tried again, three
 * times in all. The SDK's own default is to wait for ever, which a lease does not.
 *
 * @example
 * ```ts
 * const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
 * ```
 */
export const clientSettings: ClientSettings = {
  maxAttempts: 3,
  logger,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 5_000, throwOnRequestTimeout: true },
  // All queues are in the function's own region. The host of their URLs would pass over an endpoint that was chosen
  // (AWS_ENDPOINT_URL, FIPS), and the SDK would warn of that in each call.
  useQueueUrlAsEndpoint: false,
};

/** A command of the SDK, as far as {@link sentOnce} changes it. */
interface Sendable {
  readonly middlewareStack: {
    add(middleware: <Call>(next: Call) => Call, options: object): void;
  };
}

/**
 * Makes a command that is sent once, whatever retries its client is configured to make: on its way through the client's
 * middleware, the SDK's retry loop is replaced by one that passes the call on. The client and its other commands are not changed.
 *
 * @returns the command
 */
export function sentOnce<C extends object>(command: C & { readonly middlewareStack: unknown }): C {
  (command as Sendable).middlewareStack.add((next) => next, {
    // The name, the step and the priority of the retry loop: an override must have all three.
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
  return command;
}
