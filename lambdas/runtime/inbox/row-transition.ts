import type {
  DiscardedRow,
  FailedRow,
  InboxRow,
  InboxStatus,
  ProcessedRow,
  ProcessingRow,
  RejectedRow,
} from '../store/inbox-row.ts';
import type { Claim } from './inbox.ts';

/**
 * The rows that a transition may change: each clause must hold at the write. Each store has one writer, which makes its condition from
 * this value. A store's clock decides whether a lease has passed.
 */
export interface RowsBefore {
  /** Also a message without a row, which gets one. @default it needs a row */
  readonly absent?: boolean;
  /** One of these. @default none, unless `notStatus` has others */
  readonly status?: readonly InboxStatus[];
  /** Any status but these, also one that cannot be read. @default only those of `status` */
  readonly notStatus?: readonly InboxStatus[];
  /** A PROCESSING row only under a lease that has passed or is missing. @default any */
  readonly leasePassed?: true;
  /** A FAILED row only with fewer consecutive claims without a result. @default any */
  readonly unfinishedBelow?: number | undefined;
  /** The claim of this fence holds it. @default any claim */
  readonly fence?: string;
  /** Attributes that are unchanged since they were read; `undefined`: still missing. @default none */
  readonly asRead?: Partial<
    Pick<ProcessingRow, 'fence' | 'leaseUntil' | 'effects'> & Pick<RejectedRow, 'reason'>
  >;
  /** It was not rejected under this message id: another one means a redrive. @default it may have been */
  readonly notRejectedAs?: string;
}

/**
 * A change of a row, decided from what was read. Each store makes its expression or its statement from this value. Times are those of the
 * worker's clock; a store with a clock of its own adds their distance from now to it.
 */
export interface RowTransition {
  /** `undefined` leaves an attribute unchanged; without a status, the row keeps its own. */
  readonly set: { readonly status?: InboxStatus } & SetAttributes;
  readonly clear: readonly (typeof FINAL_REMOVES | readonly ['order'])[number][];
  /** The attempts: one more, one taken back, or those of the row. A new row has 1, or 0. @default as `set` says, or unchanged */
  readonly count?: 'next' | 'taken-back' | 'kept';
  /** The message id under which it is rejected. @default none is added */
  readonly rejectedAs?: string;
  /** The row may be deleted after this number of days. @default it is kept */
  readonly keepDays?: number | undefined;
}

/** The attributes of a row in any status that a transition sets as they are; each store writes the others in its own way. */
type SetAttributes = Partial<
  Omit<
    AnyStatus<ProcessingRow> &
      AnyStatus<FailedRow> &
      AnyStatus<RejectedRow> &
      AnyStatus<ProcessedRow> &
      AnyStatus<DiscardedRow>,
    'PK' | 'SK' | 'schema' | 'effects' | 'rejectedIds' | 'expiresAt'
  >
>;

type AnyStatus<Row> = Omit<Row, 'status'>;

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
