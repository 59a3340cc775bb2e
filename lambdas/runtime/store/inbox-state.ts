import { CLOCK_SKEW_MS } from '../clock.ts';
import type { InboxRow } from './rows.ts';
import { isUnreadable, type UnreadableRow } from './stored-rows.ts';

/** The meaning of an inbox row: the one reading that the consumer, every command and the audit share. */
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
 * @param now - epoch milliseconds
 * @param marginMs - how long a lease must have been over to count as passed. A consumer needs no margin: its next write is
 * conditional on the fence that it saw. An operator's clock must not be ahead of AWS's by more than this @default the margin by
 * which clocks may differ
 */
export function inboxState(
  row: InboxRow | UnreadableRow | undefined,
  now: number,
  marginMs: number = CLOCK_SKEW_MS,
): InboxState {
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
      const until = typeof row.leaseUntil === 'number' ? row.leaseUntil + marginMs : 0;
      return until < now ? { is: 'abandoned', row } : { is: 'leased', row, until };
    }
    default:
      // Written by a newer version, or by hand: code that does not know the status leaves the row alone.
      return { is: 'unreadable', problem: 'its "status" is not one that this version knows' };
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
