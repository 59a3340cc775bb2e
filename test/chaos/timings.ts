/**
 * The timings that the functions run with here: those of the local stage would make a scenario wait for minutes.
 * They are shorter, and no looser: they pass the checks that the constructs make at synth (`timings.test.ts`).
 */
export const RELAY_TIMINGS = {
  /** Must be more than 5 s (fresh) + the publish timeout + 2 s. */
  bornLeaseMs: 10_000,
  publishTimeoutMs: 2_000,
  /** Must be more than two publish timeouts + 2 s. */
  claimLeaseMs: 7_000,
  sweepEveryMs: 2_000,
  /** A sweep stops work 10 s before this, so it loops for 15 s. */
  sweepTimeoutS: 25,
} as const;

/** The same for the four consumers: a message whose worker was killed comes again within 12 s. */
export const CONSUMER_TIMINGS = {
  timeoutS: 10,
  leaseMs: 6_000,
  visibilityTimeoutS: 12,
} as const;
