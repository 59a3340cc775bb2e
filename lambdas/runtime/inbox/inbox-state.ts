import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { DAY_MS } from '../base/units.ts';
import type {
  DiscardedRow,
  FailedRow,
  InboxRow,
  ProcessedRow,
  ProcessingRow,
  RejectedRow,
} from '../store/inbox-row.ts';
import { isKnownSchema } from '../store/row-schema.ts';
import { inboxStatusProblem, isUnreadable, schemaProblem, type UnreadableRow } from '../store/stored-rows.ts';

/** The meaning of an inbox row, as the consumer, every command and the audit read it. */
export type InboxState =
  /** The row does not exist: the message has not been claimed. */
  | { readonly is: 'absent' }
  | { readonly is: 'unreadable'; readonly problem: string }
  | { readonly is: 'processed'; readonly row: ProcessedRow }
  | { readonly is: 'discarded'; readonly row: DiscardedRow }
  | { readonly is: 'rejected'; readonly row: RejectedRow }
  | { readonly is: 'failed'; readonly row: FailedRow }
  /** A worker may still hold it: its lease and the clock margin last until `until`, epoch milliseconds. */
  | { readonly is: 'leased'; readonly row: ProcessingRow; readonly until: number }
  /** Its lease has passed or is missing: the next receive takes it over. */
  | { readonly is: 'abandoned'; readonly row: ProcessingRow };

/**
 * Returns the meaning of an inbox row.
 *
 * @param now - epoch milliseconds
 * @param marginMs - the time after its end at which a lease counts as passed. A consumer needs no margin, because its next write
 * is conditional on the fence that it read. An operator's clock must not be ahead of AWS's by more than this @default the
 * maximum clock skew
 */
export function inboxState(
  row: InboxRow | UnreadableRow | undefined,
  now: number,
  marginMs: number = CLOCK_SKEW_MS,
): InboxState {
  if (row === undefined) return { is: 'absent' };
  if (isUnreadable(row)) return { is: 'unreadable', problem: row.unreadable };
  // A consumer judges the row as the table returned it. Even a final status may have another meaning in a newer schema.
  if (!isKnownSchema(row.schema)) return { is: 'unreadable', problem: schemaProblem(row.schema) ?? '' };
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
      // Written by a newer version or by hand: a version that does not support the status does not change the row.
      return { is: 'unreadable', problem: inboxStatusProblem((row as InboxRow).status) ?? '' };
  }
}

/** No worker stores a later retry: a queue hides a message for up to 12 hours, and the time compared may be hours ago. */
const RETRY_AHEAD_MAX_MS = DAY_MS;

/**
 * Returns the time of a failed message's next attempt, epoch milliseconds; `undefined` if its row has none, or one that no worker stores.
 *
 * @param at - epoch milliseconds
 */
export function nextAttemptAt({ retryAt }: FailedRow, at: number): number | undefined {
  return retryAt !== undefined && retryAt <= at + RETRY_AHEAD_MAX_MS ? retryAt : undefined;
}

/**
 * Returns true if a message should have been redelivered before a given time and has not been claimed since: it failed and its
 * retry is due, or its worker's function was stopped. A failed message without a next attempt was due from its claim on.
 */
export function isOverdue(row: InboxRow, at: number): boolean {
  if (row.status === 'FAILED') return (nextAttemptAt(row, at) ?? row.claimedAt ?? 0) < at;
  if (row.status !== 'PROCESSING') return false;
  const { leaseUntil, claimedAt = 0, endsBy = 0 } = row;
  // A claim without a lease holds nothing: the message was due from its claim on.
  return Math.max(leaseUntil ?? claimedAt, endsBy) < at;
}

/** Returns true for the state of a message that never runs again. */
export function isFinal(state: InboxState): state is Extract<InboxState, { is: 'processed' | 'discarded' }> {
  return state.is === 'processed' || state.is === 'discarded';
}
