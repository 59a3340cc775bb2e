/**
 * All prices, latencies and sizes in the benchmarks that are not measured. Prices are those of us-east-1 in US dollars, without
 * free tiers and discounts. Values without a source are chosen, and equal for every system.
 *
 * Billing rules are in `aws/billing.ts`, quotas in `capacity/quotas.ts`.
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
  /** A million PUT requests, S3 Standard (S3 pricing, requests and data retrievals). */
  objectWritesPerMillion: 5,
  /** A million GET requests, S3 Standard (S3 pricing, requests and data retrievals). */
  objectReadsPerMillion: 0.4,
  /** A GB in S3 Standard for a month, the first 50 TB (S3 pricing, storage). */
  objectStoragePerGbMonth: 0.023,
  /** A million invocations (Lambda pricing). */
  invocationsPerMillion: 0.2,
  /** A GB of memory for a second, arm64 (Lambda pricing). */
  lambdaGbSecond: 0.000_013_333_4,
  /** A GB of ingested logs (CloudWatch pricing, standard log class). */
  logsPerGb: 0.5,
} as const;

/** Bytes per billed GB. AWS counts 7 % more (2^30), so the cost of storage and logs is never underestimated. */
export const GB_BYTES = 1e9;

/** The storage overhead per item in bytes (DynamoDB pricing, data storage). */
export const STORED_ITEM_BYTES = 100;

/** The days until the object of a large payload expires: the default of `payloads.lifetime` (lib/mailroom/payload-bucket.ts). */
export const OBJECT_DAYS = 65;

/** The duration of a call within a region in milliseconds, chosen; a stub of the service waits this long before it answers. */
export const CALL_MS = 5;

/** Minutes per month, for standing costs: 30 days. */
export const MINUTES_PER_MONTH = 43_200;

/** The default memory of a function in MB (lib/service-function.ts). */
export const LAMBDA_MB = 512;

/** Memory of a function with one whole core, in MB (Lambda guide, "Configure Lambda function memory"). */
export const LAMBDA_MB_PER_CORE = 1_769;

/** The duration of a consumer's invocation with a full batch in milliseconds, chosen; the real one depends on the handler. */
export const CONSUMER_BATCH_MS = 100;

/**
 * CPU time per event that a function receives, without its calls, in milliseconds of a whole core: parsing, checking, logging.
 * Chosen so that the relay's event with its 0.14 calls takes 0.22, close to what `npm run bench -- relay` measures.
 */
export const EVENT_CPU_MS = 0.15;

/** CPU time of one call by an SDK client in milliseconds of a whole core, chosen: serializing, signing, parsing. */
export const CALL_CPU_MS = 0.5;

/** Log bytes per invocation, chosen: Lambda's own two lines and one of metrics. */
export const LOG_BYTES_PER_INVOCATION = 2_000;

/** The size of an inbox row in bytes, chosen: with a result and longer names than those of the cost benchmark. */
export const INBOX_ROW_BYTES = 350;

/** The number of times per second that Lambda polls a shard of a DynamoDB stream (Lambda developer guide, "Using AWS Lambda with Amazon DynamoDB"). */
export const STREAM_POLLS_PER_SECOND = 4;

/**
 * The time from PutEvents to the target of a rule in milliseconds, 90th percentile at 2,000 events a second (AWS Architecture Blog,
 * 2026-02-04, "Mastering millisecond latency and millions of events"). AWS documents no figure for a median, and guarantees none.
 */
export const BUS_DELIVERY_MS = 80;

/**
 * The time that a message waits for Lambda's poller in milliseconds: none, because Lambda polls an idle queue by long polling, which
 * returns as soon as a message is there (Lambda developer guide, "Configuring scaling behavior for SQS event source mappings"; SQS
 * developer guide, "Using the appropriate polling mode").
 */
export const QUEUE_POLL_MS = 0;
