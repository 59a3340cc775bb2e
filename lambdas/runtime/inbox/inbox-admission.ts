import { FenceLost } from '../base/errors.ts';
import type { InboxRow, ProcessingRow, RejectedRow } from '../store/inbox-row.ts';
import { isSuperseded } from '../store/last-sequence.ts';
import { asRow } from '../store/row-schema.ts';
import type { Item } from '../store/table.ts';
import type { Claim, InboxRefusal, InboxRules, Message } from './inbox.ts';
import { ALONE_FROM, TOO_OLD } from './inbox-conditions.ts';
import { mayHaveRunBecause } from './inbox-history.ts';
import { inboxState } from './inbox-state.ts';

/**
 * The meaning of a row for a received message: the message is refused, or it can be claimed, taken over from a worker whose lease
 * has passed, or readmitted after a rejection.
 */
export type Admission =
  | InboxRefusal
  | { readonly status: 'open' }
  | { readonly status: 'abandoned'; readonly row: ProcessingRow }
  | { readonly status: 'readmit'; readonly row: RejectedRow };

/**
 * Judges a row for a message that this worker does not hold. The order matters: no other rule applies to a row that cannot be read, and
 * final states come next.
 */
export function admissionOf(inbox: InboxRules, message: Message, row: InboxRow | undefined): Admission {
  const state = inboxState(row, inbox.clock.now(), 0);
  if (state.is === 'absent') {
    const why = mayHaveRunBecause(inbox, message);
    return why === undefined ? { status: 'open' } : { status: 'too-old', why };
  }
  if (state.is === 'unreadable') return { status: 'unreadable', problem: state.problem };
  if (state.is === 'processed') return { status: 'processed', result: state.row.result };
  if (state.is === 'discarded') return { status: 'processed', result: undefined };
  const { reason = 'UNKNOWN', lastError: why } = state.is === 'rejected' ? state.row : {};
  if (state.row.rejectedIds?.has(message.messageId)) return { status: 'rejected', reason, why };
  switch (state.is) {
    case 'rejected':
      // A superseded message is absorbed: its handler does not run again, even if it has run before.
      return reason !== TOO_OLD || state.row.runAnyway || (message.place && isSuperseded(message.place))
        ? { status: 'readmit', row: state.row }
        : { status: 'rejected', reason, why };
    case 'failed':
      return { status: 'open' };
    case 'abandoned':
      return { status: 'abandoned', row: state.row };
    case 'leased':
      return { status: 'leased', until: state.until, endsBy: state.row.endsBy ?? state.until };
  }
}

/**
 * Returns the reason why a transition was refused. If the row is not held, either the message must run alone, or another worker
 * was faster: then it counts as leased until now.
 *
 * @param item - the row as returned with the refusal
 */
export function refusalOf(inbox: InboxRules, message: Message, item: Item | undefined): InboxRefusal {
  return refusalBy(inbox, message, rowOf(item));
}

/** As {@link refusalOf}, by the row. */
export function refusalBy(inbox: InboxRules, message: Message, row: InboxRow | undefined): InboxRefusal {
  const admission = admissionOf(inbox, message, row);
  if (isRefusal(admission)) return admission;
  if (row !== undefined && mustRunAlone(row)) return { status: 'suspect' };
  const now = inbox.clock.now();
  return { status: 'leased', until: now, endsBy: now };
}

function isRefusal(admission: Admission): admission is InboxRefusal {
  return admission.status !== 'open' && admission.status !== 'abandoned' && admission.status !== 'readmit';
}

/** Returns true if the next claim of an unheld message must run alone. A takeover adds one more claim without a result. */
export function mustRunAlone(row: InboxRow): boolean {
  const { unfinished = 0 } = 'unfinished' in row ? row : {};
  return unfinished + (row.status === 'PROCESSING' ? 1 : 0) >= ALONE_FROM;
}

/** Views an item from the table as an inbox row, if there was one. */
export function rowOf(item: Item | undefined): InboxRow | undefined {
  return item === undefined ? undefined : asRow<InboxRow>(item);
}

/** Returns true if the claim with this fence holds the row. */
export function isOurs(row: InboxRow | undefined, fence: string): boolean {
  return row?.status === 'PROCESSING' && row.fence === fence;
}

/** The error of a worker that writes under a claim that it has lost. */
export function fenceLost(claim: Claim, refusal: InboxRefusal): FenceLost {
  return new FenceLost(
    `This worker no longer holds message ${claim.message.eventId} (it is ${refusal.status}); writes under the old claim are refused.`,
  );
}
