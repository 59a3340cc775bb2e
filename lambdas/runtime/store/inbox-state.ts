import { CLOCK_SKEW_MS } from '../clock.ts';
import type { InboxRow } from './rows.ts';
import { isUnreadable, type UnreadableRow } from './stored-rows.ts';

/** The meaning of an inbox row to an operator: the one reading that every command and the audit share. */
export type InboxState =
  /** There is no row: nobody has claimed the message. */
  | { readonly is: 'absent' }
  | { readonly is: 'unreadable'; readonly problem: string }
  | { readonly is: 'processed'; readonly row: InboxRow }
  | { readonly is: 'discarded'; readonly row: InboxRow }
  | { readonly is: 'rejected'; readonly row: InboxRow }
  | { readonly is: 'failed'; readonly row: InboxRow }
  /** A worker may still hold it: its lease and the clock margin last until `until`, epoch milliseconds. */
  | { readonly is: 'leased'; readonly row: InboxRow; readonly until: number }
  /** Its worker's lease has passed, or there is none: the next receive takes it over. */
  | { readonly is: 'abandoned'; readonly row: InboxRow };

/**
 * Reads what an inbox row means.
 *
 * @param now - epoch milliseconds, by a clock that is not ahead of AWS's: a lease counts as passed only when it has been over
 * for the margin by which clocks may differ
 */
export function inboxState(row: InboxRow | UnreadableRow | undefined, now: number): InboxState {
  if (row === undefined) return { is: 'absent' };
  if (isUnreadable(row)) return { is: 'unreadable', problem: row.unreadable };
  switch (row.status) {
    case 'PROCESSED':
      return { is: 'processed', row };
    case 'DISCARDED':
      return { is: 'discarded', row };
    case 'REJECTED':
      return { is: 'rejected', row };
    case 'FAILED':
      return { is: 'failed', row };
    case 'PROCESSING': {
      const until = row.leaseUntil === undefined ? 0 : row.leaseUntil + CLOCK_SKEW_MS;
      return until < now ? { is: 'abandoned', row } : { is: 'leased', row, until };
    }
  }
}

/**
 * Whether a row says that its message was to be handed out again before a time, and no worker has claimed it since: it failed
 * and was to be shown again, or its worker's function was stopped.
 */
export function isOverdue(row: InboxRow, at: number): boolean {
  const { status, retryAt, leaseUntil, claimedAt = 0, endsBy = 0 } = row;
  if (status === 'FAILED') return retryAt !== undefined && retryAt < at;
  // A claim that left no lease holds nothing: the message was to come again from then on.
  return status === 'PROCESSING' && Math.max(leaseUntil ?? claimedAt, endsBy) < at;
}
