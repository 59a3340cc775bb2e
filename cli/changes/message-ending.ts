import { STALE } from '../../lambdas/runtime/inbox/inbox-conditions.ts';
import type { DiscardedRow, ProcessedRow } from '../../lambdas/runtime/store/inbox-row.ts';

/** The row of a message that is final. */
export type FinalRow = ProcessedRow | DiscardedRow;

/** The ending of a message, by its row alone: the same command, repeated after a lost answer, must not say the same of every ending. */
export interface MessageEnding {
  /** `resolved` by an operator; `discarded` by one, or by its consumer as stale; `processed`: by its handler, or superseded. */
  readonly status: 'resolved' | 'discarded' | 'processed';
  /** Continues the name of the message. */
  readonly text: string;
}

/** Reads how a message ended. */
export function endingOf(row: FinalRow): MessageEnding {
  if (row.status === 'DISCARDED') {
    const { discardedBy, discardedReason, reason } = row;
    if (reason === STALE) return { status: 'discarded', text: 'was discarded as stale by its consumer' };
    return {
      status: 'discarded',
      text: `was discarded before by ${operatorText(discardedBy, discardedReason)}`,
    };
  }
  const { resolvedBy, resolvedReason, supersededBy } = row;
  if (resolvedBy !== undefined)
    return { status: 'resolved', text: `was resolved before by ${operatorText(resolvedBy, resolvedReason)}` };
  if (supersededBy !== undefined)
    return {
      status: 'processed',
      text: `was superseded by number ${supersededBy} of its aggregate, so its handler did not run`,
    };
  return { status: 'processed', text: 'was processed by its handler' };
}

function operatorText(by = 'an operator', reason = 'no reason'): string {
  return `${by} (${reason})`;
}
