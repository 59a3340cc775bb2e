import { OUTBOX_PREFIX } from '../store/outbox-partition.ts';

/**
 * A record younger than this, within its stream lease, is published without a claim. A batch is not returned to the mapping while
 * any of its records is younger, so that a redelivered record is always claimed first. Milliseconds.
 */
export const FRESH_MS = 5_000;

/** The minimum time before a batch is returned to the mapping, which redelivers it immediately and counts the retries, milliseconds. */
export const HAND_BACK_MS = 5_000;

/** The filter of the stream mapping: the stream relay receives new outbox rows only. */
export const STREAM_FILTER = {
  eventName: ['INSERT'],
  dynamodb: { Keys: { PK: { S: [{ prefix: OUTBOX_PREFIX }] } } },
};
