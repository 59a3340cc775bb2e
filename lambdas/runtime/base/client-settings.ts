import type { DynamoDBClientConfig } from '@aws-sdk/client-dynamodb';

/** Settings for every AWS SDK client; times are in milliseconds. */
export interface ClientSettings {
  /** The maximum number of attempts per request, including the first. */
  readonly maxAttempts: number;
  /** The destination of the SDK's warnings. */
  readonly logger: NonNullable<DynamoDBClientConfig['logger']>;
  /** Connection and request timeouts. */
  readonly requestHandler: {
    readonly connectionTimeout: number;
    readonly requestTimeout: number;
    readonly throwOnRequestTimeout: boolean;
  };
  /** Send SQS requests to the host of the queue's URL instead of the client's endpoint. */
  readonly useQueueUrlAsEndpoint: boolean;
}

const silent = () => {};

/**
 * A logger without `info`. For a logger that has `info`, including the SDK's own silent one, the SDK reports every call, and to
 * do so it walks every value of the request and the response to remove secrets. That takes a considerable part of the CPU time
 * of a batch of updates, for a log line that is never written. Connection-pool warnings go to the console, as without a
 * logger.
 */
const logger = {
  trace: silent,
  debug: silent,
  warn: (...what: unknown[]) => console.warn(...what),
  error: silent,
} as unknown as ClientSettings['logger'];

/**
 * Settings for the AWS SDK clients of a function: requests time out after 5 s, with three attempts in total. By default, the
 * SDK waits without a limit, which can outlast a lease.
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
  // All queues are in the function's own region. The host of a queue's URL would override a configured endpoint
  // (AWS_ENDPOINT_URL, FIPS), and the SDK would warn about that on each call.
  useQueueUrlAsEndpoint: false,
};

/**
 * Settings for the clients of Mailroom's own functions. The SDK then resolves the middleware of a command once instead of for each
 * call. Not for your clients: the document client does not accept them, and middleware added after a command's first call would
 * never run.
 */
export const portClientSettings = { ...clientSettings, cacheMiddleware: true };

/**
 * Settings for the relay's client of EventBridge: one try, because the relay decides whether to retry a publish.
 *
 * @param publishTimeoutMs - the time after which the relay stops waiting for a call, which then closes its connection
 */
export function busClientSettings(publishTimeoutMs: number) {
  return {
    ...portClientSettings,
    maxAttempts: 1,
    requestHandler: {
      ...clientSettings.requestHandler,
      requestTimeout: publishTimeoutMs, // until the headers of the answer
      socketTimeout: publishTimeoutMs, // between its parts: otherwise, answers that stall would use up the connections
    },
  };
}

/** The part of an SDK command that {@link sentOnce} uses. */
interface Sendable {
  readonly middlewareStack: {
    add(middleware: <Call>(next: Call) => Call, options: object): void;
  };
}

/**
 * Makes a command that is sent only once, whatever retries its client is configured with: in this command's middleware, a step
 * that passes the call on replaces the SDK's retry loop. The client and its other commands are not changed.
 *
 * @returns the same command
 */
export function sentOnce<C extends object>(command: C & { readonly middlewareStack: unknown }): C {
  (command as Sendable).middlewareStack.add((next) => next, {
    // The name, step and priority of the retry loop: an override must match all three.
    name: 'retryMiddleware',
    step: 'finalizeRequest',
    priority: 'high',
    override: true,
  });
  return command;
}
