import { MINUTE_MS } from './units.ts';

/** The default time for which a new outbox row is reserved for the stream relay, milliseconds. */
export const BORN_LEASE_MS = 30_000;

/**
 * The time during which a published event may still be in delivery, milliseconds: an event that no consumer has received by then is
 * missing. SQS's message counts also lag by about a minute.
 */
export const DELIVERY_GRACE_MS = 5 * MINUTE_MS;

/** SQS's counts lag by about this long, milliseconds: until then, a queue that looks empty may hold a message. */
export const COUNTS_LAG_MS = MINUTE_MS;

/** A consumer whose oldest message waits for longer than this is behind, milliseconds: the default threshold of its alarm. */
export const BEHIND_MS = 15 * MINUTE_MS;

/** An event that is due and unpublished, or a sweep that is silent, for longer than this is stuck, milliseconds: the default threshold of its alarm. */
export const STUCK_MS = 5 * MINUTE_MS;
