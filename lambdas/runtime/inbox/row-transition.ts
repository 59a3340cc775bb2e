import type { AttemptEnd, InboxRow, ProcessingRow } from '../store/inbox-row.ts';
import type { Claim } from './inbox.ts';

/**
 * A change of a row that this worker holds. Each store has one writer, which makes its expression or statement from this value, under
 * the claim's fence. Times are those of the worker's clock; a store with a clock of its own adds their distance from now to it.
 */
export interface RowTransition {
  /** `undefined` leaves an attribute unchanged; without a status, the row stays PROCESSING. */
  readonly set: {
    readonly status?: 'FAILED' | 'PROCESSED';
    readonly leaseUntil?: number;
    readonly retryAt?: number;
    readonly processedAt?: number;
    readonly unfinished?: number;
    readonly outOfTime?: true;
    readonly lastError?: string | undefined;
    readonly fingerprint?: string | undefined;
    readonly pastAttempts?: readonly AttemptEnd[] | undefined;
    readonly result?: string | undefined;
  };
  readonly clear: readonly (typeof FINAL_REMOVES)[number][];
  /** The attempt of this claim is taken back. @default it counts */
  readonly isUncounted?: boolean;
  /** The row may be deleted after this number of days. @default it is kept */
  readonly keepDays?: number;
}

/** Attributes that are removed once the message is final. */
export const FINAL_REMOVES = [
  'leaseUntil',
  'endsBy',
  'retryAt',
  'reason',
  'rejectedAt',
  'unfinished',
  'outOfTime',
] as const;

/** Returns true if a row shows that this claim's transition happened, by a try whose response was lost. */
export function hasHappened(row: InboxRow | undefined, { fence }: Claim, { set }: RowTransition): boolean {
  const { status = 'PROCESSING', outOfTime } = set;
  if (row === undefined || row.fence !== fence || row.status !== status) return false;
  return outOfTime === undefined || (row as ProcessingRow).outOfTime === true;
}
