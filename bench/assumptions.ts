/**
 * Every price and every latency that the benchmarks compute with, and does not come out of a measurement. Prices are those
 * of us-east-1 in US dollars, without free tiers and discounts.
 */

/** US dollars. */
export const PRICES = {
  /** A million write request units, on demand (DynamoDB pricing, on-demand capacity). */
  writeUnitsPerMillion: 0.625,
  /** A million read request units, on demand (DynamoDB pricing, on-demand capacity). */
  readUnitsPerMillion: 0.125,
  /** A GB of table storage for a month (DynamoDB pricing). */
  storagePerGbMonth: 0.25,
  /** A GB of table under point-in-time recovery for a month (DynamoDB pricing, backup and restore). */
  recoveryPerGbMonth: 0.2,
  /** A million custom events of up to 64 KB each (EventBridge pricing, event buses). */
  busEventsPerMillion: 1,
  /** A million requests of a standard queue, 64 KB each (SQS pricing). */
  queueRequestsPerMillion: 0.4,
  /** A million invocations (Lambda pricing). */
  invocationsPerMillion: 0.2,
  /** A GB of memory for a second, arm64 (Lambda pricing). */
  lambdaGbSecond: 0.000_013_333_4,
  /** A GB of ingested logs (CloudWatch pricing, standard log class). */
  logsPerGb: 0.5,
} as const;

/** How long a call takes within a region, milliseconds: what a stub of the service waits before it answers. */
export const CALL_MS = 5;

/** Minutes of a month, for standing costs: 30 days. */
export const MINUTES_PER_MONTH = 43_200;

/** Memory that a function has when nobody says otherwise, MB (lib/service-function.ts). */
export const LAMBDA_MB = 512;

/** Memory with which a function has one whole core, MB (Lambda guide, "Configure Lambda function memory"). */
export const LAMBDA_MB_PER_CORE = 1_769;

/** How long a consumer's invocation takes with a full batch, milliseconds: what its handler does is the user's own. */
export const CONSUMER_BATCH_MS = 100;

/** CPU that a function takes for an event it is handed, on a whole core, milliseconds: parsing, checking, logging. */
export const EVENT_CPU_MS = 0.25;

/** CPU of one call by an SDK client, on a whole core, milliseconds: serialising, signing, parsing. */
export const CALL_CPU_MS = 0.5;

/** How many calls an invocation has under way at once (CONCURRENCY of lambdas/runtime/relay.ts). */
export const CALLS_AT_ONCE = 8;

/** What an invocation logs, bytes: Lambda's own two lines and one of metrics. */
export const LOG_BYTES_PER_INVOCATION = 2_000;
