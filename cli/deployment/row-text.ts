import type { ProcessingRow } from '../../lambdas/runtime/store/inbox-row.ts';

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
