import { FRESH_MS } from '../../lambdas/runtime/relay/stream-settings.ts';

/** A stream record that is older than this is late: its time is cut to the second. */
export const LATE_MS = FRESH_MS + 1_000;

/**
 * The timings that the functions run with here: those of the local stage would make a scenario wait for minutes.
 * They are shorter, and no looser: they pass the checks that the constructs make at synth (`timings.test.ts`). They are
 * also long enough for a busy machine, where a call takes seconds: none may pass because of that alone.
 */
export const RELAY_TIMINGS = {
  /** Must be more than 5 s (fresh) + the publish timeout + 2 s. */
  bornLeaseMs: 18_000,
  publishTimeoutMs: 10_000,
  /** Must be more than two publish timeouts + 2 s. */
  claimLeaseMs: 23_000,
  sweepEveryMs: 2_000,
  /** A sweep stops work 10 s before this, so it loops for 50 s. */
  sweepTimeoutS: 60,
} as const;

/** The same for the four consumers: a message whose worker was killed is redelivered within a minute. */
export const CONSUMER_TIMINGS = {
  timeoutS: 60,
  /** Renewed every third of it. */
  leaseMs: 20_000,
  visibilityTimeoutS: 60,
} as const;
