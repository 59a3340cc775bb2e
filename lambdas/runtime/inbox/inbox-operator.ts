import { INBOX_RETENTION_MAX_DAYS } from '../base/consumer-config.ts';
import type { InboxRow, PlaceInOrder, RejectedRow } from '../store/inbox-row.ts';
import type { LastRaise, LastSequence } from '../store/last-sequence.ts';
import type { Note } from '../store/operation-record.ts';
import { SPARE_DAYS } from '../store/row-expiry.ts';
import type { UnreadableRow } from '../store/stored-rows.ts';
import type { TransactAction } from '../store/table.ts';
import type { InboxSettings } from './inbox.ts';
import type { asSeen, NOT_FINAL } from './inbox-conditions.ts';
import { FINAL_REMOVES, type RowsBefore, type RowTransition } from './row-transition.ts';

/** An operator's decision about a message. */
export interface Decided extends Note {
  readonly eventId: string;
}

/** The final status that an operator gives a message. */
export interface FinalDecision extends Decided {
  readonly status: 'PROCESSED' | 'DISCARDED';
  /** A token of the decision: it prevents further writes by a worker that is still running. */
  readonly fence: string;
  /** Identifies what the operator commits with it. Absent: nothing. */
  readonly commitId?: string | undefined;
  /** The event that is sent in place of a DISCARDED one. @default none */
  readonly replacedBy?: string | undefined;
}

/** Writes that commit together with a decision. */
export interface DecidedTogether {
  /** Of DynamoDB. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Writes in the decision's transaction `tx` of SQL. @default nothing */
  readonly work?: ((tx: unknown) => Promise<void>) | undefined;
  /** Raises the last sequence of an ordered message. @default none */
  readonly raise?: LastRaise | undefined;
  /** A pointer of a rejected message without its row refuses the decision. @default false */
  readonly needsRow?: boolean | undefined;
}

/** The end of the write of a decision. `row-deleted`: such a pointer refused it; `changed`: the row or the last sequence has changed. */
export type DecidedEnd = 'done' | 'changed' | 'row-deleted';

/** A message as it was read for a decision, in the store that has it. */
export interface MessageToDecide {
  readonly row: InboxRow | UnreadableRow | undefined;
  /** The place of its row in an order. */
  readonly order?: PlaceInOrder | undefined;
  /** The time of the read by the clock that wrote the lease, epoch milliseconds. Absent: only the clocks of the workers have. */
  readonly now?: number | undefined;
  /**
   * Ends the message.
   *
   * @param from - the rows that may be changed: {@link asSeen}, or by force {@link NOT_FINAL}
   * @throws `TRANSACTION_CANCELLED`, with the reasons of `writes`, if one of them was refused; the error of `work`
   */
  decide(decision: FinalDecision, from: RowsBefore, together?: DecidedTogether): Promise<DecidedEnd>;
}

/** An operator's changes of the inboxes, in one of the stores. */
export interface InboxChanges {
  /** Reads a message. The read sees every earlier write. */
  read(consumer: string, eventId: string): Promise<MessageToDecide>;
  /** Allows a message to run that was rejected as too old. @returns `false` if it was not rejected for that reason */
  allow(consumer: string, allowed: Decided): Promise<boolean>;
  /** Reads the last applied sequence of an aggregate, by its key. The read sees every earlier write. */
  lastSequence(key: string): Promise<LastSequence>;
  /** Raises the last applied sequence of an aggregate. @returns `false` if it has changed since it was read */
  raise(raise: LastRaise, note: Note): Promise<boolean>;
}

/**
 * PROCESSED or DISCARDED, by an operator. Its row outlives every retention, because an operator's command does not know under which one a
 * repeat will be judged: a deployment may just change it.
 */
export function decided(
  { clock }: Pick<InboxSettings, 'clock'>,
  { status, fence, by, reason, commitId, replacedBy }: FinalDecision,
): RowTransition {
  const now = clock.now();
  const what =
    status === 'PROCESSED'
      ? { processedAt: now, resolvedBy: by, resolvedReason: reason }
      : { discardedAt: now, discardedBy: by, discardedReason: reason, replacedBy };
  return {
    set: { status, fence, commitId, ...what },
    count: 'kept',
    keepDays: INBOX_RETENTION_MAX_DAYS + SPARE_DAYS,
    clear: FINAL_REMOVES,
  };
}

/** The reason in a row that was set REJECTED by hand, without one. */
const UNKNOWN = 'UNKNOWN';

/** REJECTED without its pointer -> REJECTED, with what the pointer repeats: a row that was set REJECTED by hand may lack some of it. */
export function listedAgain(
  { clock, consumer }: Pick<InboxSettings, 'clock' | 'consumer'>,
  {
    rejectedAt = clock.now(),
    reason = UNKNOWN,
    lastError = 'its row was changed by hand',
    fingerprint,
  }: RejectedRow,
): RowTransition & { readonly set: Pick<RejectedRow, 'rejectedAt'> } {
  return {
    set: { rejectedAt, reason, lastError, fingerprint: fingerprint ?? `${consumer} ${UNKNOWN}` },
    clear: [],
  };
}

/** REJECTED as too old -> REJECTED, but its redrive runs it. */
export function allowedToRun(
  { clock }: Pick<InboxSettings, 'clock'>,
  { by, reason }: Decided,
): RowTransition {
  return {
    set: { runAnyway: true, allowedBy: by, allowedAt: clock.now(), allowedReason: reason },
    clear: [],
  };
}
