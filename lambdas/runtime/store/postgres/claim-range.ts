import type { Clock } from '../../base/clock.ts';
import { MINUTE_MS } from '../../base/units.ts';

/** A transaction commits within this time of its insert, as a rule, milliseconds. Events of slower ones wait for a full reading. */
export const SETTLED_MS = 1_000;

/** The pause between two full readings, milliseconds, unless one takes more than a tenth of this. */
const FULL_EVERY_MS = 1_000;

/** Full readings take at most a tenth of a relay's time. */
const PAUSES_PER_READING = 9;

/** Before every time. */
const FROM_THE_START = '-infinity';

/** The beginning of what the claims of one relay read of the queue. */
export interface ClaimRange {
  /**
   * Makes one claim.
   *
   * @param claim - reads the events that are due from a time on; returns the time up to which it has left none that it could see
   * @param fully - true to read everything
   */
  read<R>(
    claim: (from: string) => Promise<{ readonly rows: readonly R[]; readonly upTo: string | undefined }>,
    fully?: boolean,
  ): Promise<readonly R[]>;
}

/**
 * Spares claims the dead entries at the beginning of the queue's index. Each event leaves two, and while any snapshot of the database is open,
 * neither a claim nor vacuum can remove them: a claim that begins at the first entry reads all of them again.
 *
 * Invariant: **the bound decides only when an event is claimed, never whether.** It is a hint of one relay, and every relay reads the whole
 * queue again and again: at its first claim, and then after {@link FULL_EVERY_MS}, or after nine times as long as the last full
 * reading took, but a minute at most. Only that finds events behind the bound: of a transaction that committed later than {@link SETTLED_MS} after its insert, of a claim
 * that was rolled back, or of a database whose clock was set back. Its answer replaces the bound, also by an earlier time, so that the
 * claims after it go on from there, and no claim that began before it moves the bound past what it found.
 */
export function claimRange(clock: Clock): ClaimRange {
  let bound = FROM_THE_START;
  let fullAt = Number.NEGATIVE_INFINITY;
  let endedAt = Number.NEGATIVE_INFINITY;
  return {
    read: async (claim, fully = false) => {
      const began = clock.now();
      // Earlier than the last one ended: the clock was set back.
      const isFull = fully || began >= fullAt || began < endedAt;
      const before = bound;
      // Only one of the concurrent claims reads everything, unless it hangs.
      if (isFull) fullAt = began + MINUTE_MS;
      try {
        const { rows, upTo } = await claim(isFull ? FROM_THE_START : before);
        if (upTo !== undefined && (isFull || bound === before)) bound = upTo;
        return rows;
      } finally {
        endedAt = clock.now();
        // Not the time of a reading alone: the process, the pool or the machine may have stood still meanwhile.
        const tookMs = endedAt - began;
        const pauseMs = Math.max(FULL_EVERY_MS, PAUSES_PER_READING * tookMs);
        if (isFull) fullAt = endedAt + Math.min(MINUTE_MS, pauseMs);
      }
    },
  };
}
