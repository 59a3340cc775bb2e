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
