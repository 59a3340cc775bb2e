/**
 * The limits of AWS that a Mailroom meets as it grows, each with the page that states it. Those of EventBridge and Lambda are
 * for an account and a region, and of us-east-1; other regions begin lower. `adjustable` ones can be raised on request.
 */

/** DynamoDB developer guide, "Best practices for designing partition keys"; it holds for a single key as well. */
export const PARTITION = { writeUnits: 1_000, readUnits: 3_000 } as const;

/**
 * What a new on-demand table carries at once (DynamoDB developer guide, "Understanding DynamoDB warm throughput in
 * different scenarios"). With more traffic it grows to twice its former peak within 30 minutes.
 */
export const NEW_TABLE = { writeUnits: 4_000, readUnits: 12_000 } as const;

/** One table on demand; there is no quota over all of them (DynamoDB developer guide, "Quotas"). Adjustable. */
export const TABLE = { writeUnits: 40_000, readUnits: 40_000 } as const;

/** The shards of a Mailroom unless told otherwise (lib/mailroom.ts), and their most: the shard is one byte of the event id. */
export const SHARDS_MIN = 8;
export const SHARDS_MAX = 256;

/** How often Lambda asks each stream shard for records (Lambda guide, "Polling and batching streams"). */
export const STREAM_POLLS_PER_SECOND = 4;

/**
 * Calls of PutEvents a second, of up to ten entries each (EventBridge user guide, "Quotas"): us-east-1, us-west-2 and
 * eu-west-1; 2,400 in us-east-2 and eu-central-1, 1,200 or fewer elsewhere. Adjustable.
 */
export const PUT_EVENTS_PER_SECOND = 10_000;

/**
 * Events handed to targets a second (EventBridge user guide, "Quotas"): us-east-1, us-west-2 and eu-west-1; 4,500 in
 * us-east-2 and eu-central-1, 2,250 or fewer elsewhere. What is above it is delayed, not lost. Adjustable.
 */
export const DELIVERIES_PER_SECOND = 18_750;

/** Event buses of an account in a region; each Mailroom has one (EventBridge user guide, "Quotas"). Adjustable. */
export const EVENT_BUSES = 100;

/** Invocations of all functions at a time (Lambda guide, "Understanding Lambda function scaling"). Adjustable. */
export const LAMBDA_CONCURRENCY = 1_000;

/**
 * Invocations of one queue's mapping at a time, reached by 300 more a minute (Lambda guide, "Configuring scaling behavior
 * for SQS event source mappings"; older copies of that page say 1,000). A mapping with provisioned pollers goes beyond.
 */
export const QUEUE_MAPPING_CONCURRENCY = 1_250;

/** Invocations that a queue's mapping begins with (same page). */
export const QUEUE_MAPPING_START = 5;
