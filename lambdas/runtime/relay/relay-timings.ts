/**
 * A record younger than this, whose born lease still lasts, is published without a claim. A batch is never handed
 * back to the mapping while one of its records is younger, so that a record which comes again is claimed first.
 */
export const FRESH_MS = 5_000;

/** A batch is handed back after this at the soonest: the mapping brings it again at once, and counts how often. */
export const HAND_BACK_MS = 5_000;
