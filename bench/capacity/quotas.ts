/**
 * AWS limits that a growing Mailroom reaches, each with the page that states it. Those of EventBridge and Lambda are per account
 * and region, for us-east-1; other regions start lower. `adjustable` ones can be raised on request.
 */

/** DynamoDB developer guide, "Best practices for designing partition keys"; also applies to a single key. */
export const PARTITION = { writeUnits: 1_000, readUnits: 3_000 } as const;

/**
 * The initial throughput of a new on-demand table (DynamoDB developer guide, "Understanding DynamoDB warm throughput in different
 * scenarios"). With more traffic it grows to twice its previous peak within 30 minutes.
 */
export const NEW_TABLE = { writeUnits: 4_000, readUnits: 12_000 } as const;

/** The quota of one on-demand table; AWS sets none for all tables together (DynamoDB developer guide, "Quotas"). Adjustable. */
export const TABLE = { writeUnits: 40_000, readUnits: 40_000 } as const;

/** The default shards of a Mailroom (lib/mailroom.ts), and the maximum: the shard is one byte of the event id. */
export const SHARDS_MIN = 8;
export const SHARDS_MAX = 256;

/**
 * PutEvents calls per second, of up to ten entries each (EventBridge user guide, "Quotas"): us-east-1, us-west-2 and eu-west-1;
 * 2,400 in us-east-2 and eu-central-1, 1,200 or fewer elsewhere. Adjustable.
 */
export const PUT_EVENTS_PER_SECOND = 10_000;

/**
 * Events delivered to targets per second (EventBridge user guide, "Quotas"): us-east-1, us-west-2 and eu-west-1; 4,500 in
 * us-east-2 and eu-central-1, 2,250 or fewer elsewhere. Excess events are delayed, not lost. Adjustable.
 */
export const DELIVERIES_PER_SECOND = 18_750;

/** Event buses per account and region; each Mailroom has one (EventBridge user guide, "Quotas"). Adjustable. */
export const EVENT_BUSES = 100;

/** Concurrent invocations of all functions (Lambda guide, "Understanding Lambda function scaling"). Adjustable. */
export const LAMBDA_CONCURRENCY = 1_000;

/**
 * Concurrent invocations of one queue's mapping, reached by 300 more per minute (Lambda guide, "Configuring scaling behavior for
 * SQS event source mappings"; older copies of that page say 1,000). A mapping with provisioned pollers can exceed it.
 */
export const QUEUE_MAPPING_CONCURRENCY = 1_250;

/** Initial invocations of a queue's mapping (same page). */
export const QUEUE_MAPPING_START = 5;
