import type { EventRow, Transitions } from './publish-events.ts';

/** An event of a database that this relay holds. */
export interface ClaimedEvent extends EventRow {
  /** Identifies the claim. */
  readonly fence: string;
  /** Its envelope was not read: it is too large for the bus, or did not fit into the bytes that one claim reads. */
  readonly unread?: 'too-large' | 'later' | undefined;
}

/** Every transition of a database's queue that a relay makes. */
export interface DatabaseTransitions extends Transitions<ClaimedEvent> {
  /**
   * Claims the events that have been due the longest. It waits for no lock.
   *
   * @param fully - true to find also events that were committed late, at once
   * @throws the database's error
   */
  claim(limit: number, fully?: boolean): Promise<ClaimedEvent[]>;
  /**
   * Releases events that were not published, without counting an attempt. It never throws.
   *
   * @param afterMs - they are due again after half of this to all of it, so that those of one failed call do not meet again
   * @param error - stored as their last error @default they keep it
   */
  release(rows: readonly ClaimedEvent[], afterMs: number, error?: unknown): Promise<void>;
  /** Begins the lease of an event again, if no other relay has claimed it. It never throws. @returns `undefined` if it is not held */
  renew(row: ClaimedEvent): Promise<ClaimedEvent | undefined>;
}
