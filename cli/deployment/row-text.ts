import { limitWaitOf, pastAttemptsOf } from '../../lambdas/runtime/inbox/past-attempts.ts';
import type { InboxRow, LimitWait, ProcessingRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { clipped } from '../terminal/output.ts';

/** Describes how a claim ended without a result: `ran out of time; 2 claims in a row were left unfinished`. */
export function unfinishedText({
  unfinished = 0,
  outOfTime,
}: Pick<ProcessingRow, 'unfinished' | 'outOfTime'>): string {
  const ended = outOfTime === true ? 'ran out of time' : 'stopped without a result';
  const inARow = unfinished > 1 ? `; ${unfinished} claims in a row were left unfinished` : '';
  return `${ended}${inARow}`;
}

/**
 * Describes the attempt of a message: `attempt 2 of 5`. A message can be rejected before its first attempt; a number above the
 * maximum, which was lowered since or counts a redelivery, stands alone.
 */
export function attemptText(attempt: number, maxAttempts: number): string {
  if (attempt === 0) return 'before its first attempt';
  return attempt > maxAttempts ? `attempt ${attempt}` : `attempt ${attempt} of ${maxAttempts}`;
}

/** Describes an unreadable row. @param problem - the reason, as in {@link InboxState} */
export function unreadableText(problem: string): string {
  return `cannot be read: ${problem}`;
}

/** Returns the limit for which a message waits: its last claim ended with that wait, as the time of the entry shows. */
export function limitOfRow(row: InboxRow | undefined): LimitWait | undefined {
  if (row?.status !== 'FAILED') return undefined;
  const { at = 0 } = pastAttemptsOf(row.pastAttempts).at(-1) ?? {};
  return at >= (row.claimedAt ?? 0) ? limitWaitOf(row.pastAttempts)?.limit : undefined;
}

/** Names the limit for which a message waits: `the limit "bank" of "m-1"`; `undefined` if it waits for none. */
export function limitText(row: InboxRow | undefined): string | undefined {
  const limit = limitOfRow(row);
  return limit && `the limit "${clipped(limit.name)}" of "${clipped(limit.key)}"`;
}
