/**
 * Prices of the calls that read a Mailroom, in US dollars: us-east-1, without free tiers and discounts. The reads of EventBridge,
 * Lambda and Systems Manager are free. `bench/assumptions.ts` has the others.
 */
export const READ_PRICES = {
  /** A million read request units, on demand (DynamoDB pricing, on-demand capacity). */
  readUnitsPerMillion: 0.125,
  /** A million requests of a standard queue, 64 KB each (SQS pricing). */
  queueRequestsPerMillion: 0.4,
  /** A thousand requests, or metrics of GetMetricData (CloudWatch pricing, APIs). */
  metricsPerThousand: 0.01,
} as const;
