import type { InboxRow } from '../../lambdas/runtime/store/rows.ts';

/** How a claim that is over left its message, for people: `ran out of time; 2 claims in a row were left unfinished`. */
export function unfinishedText({
  unfinished = 0,
  outOfTime,
}: Pick<InboxRow, 'unfinished' | 'outOfTime'>): string {
  const ended = outOfTime === true ? 'ran out of time' : 'stopped without an answer';
  const inARow = unfinished > 1 ? `; ${unfinished} claims in a row were left unfinished` : '';
  return `${ended}${inARow}`;
}

/** A row that exists and cannot be read, for people. @param problem - the reason, as {@link InboxState} has it */
export function unreadableText(problem: string): string {
  return `cannot be read: ${problem}`;
}
