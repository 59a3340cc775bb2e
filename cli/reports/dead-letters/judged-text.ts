import { deadLettersText } from './dead-letter-text.ts';
import type { DeadLetterSource } from './dead-letters.ts';
import type { JudgedDeadLetter } from './redrive-plan.ts';
import { verdictWords } from './verdict-words.ts';

/** Dead letters with their verdicts as a table. */
export function judgedText(
  source: DeadLetterSource,
  judged: readonly JudgedDeadLetter[],
  now: number,
  grouped: boolean,
): string {
  const lines = judged.map((deadLetter) => {
    const { verdict, code, message } = deadLetter;
    const { label } = verdictWords(verdict, source.name);
    const isRefused = code !== undefined || message !== undefined;
    return { deadLetter, label, refusal: isRefused ? { code, message } : undefined };
  });
  return deadLettersText(lines, now, { label: 'verdict', grouped });
}
