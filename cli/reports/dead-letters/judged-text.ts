import { deadLettersText } from './dead-letter-text.ts';
import type { JudgedDeadLetter, RedriveVerdict } from './redrive-plan.ts';

/** The verdicts that a table shows in other words. */
const LABELS: Partial<Record<RedriveVerdict, string>> = {
  runs: 'would run',
  fails: 'would fail',
  'out-of-order': 'out of order',
};

/** Dead letters with their verdicts as a table. */
export function judgedText(judged: readonly JudgedDeadLetter[], now: number, grouped: boolean): string {
  const lines = judged.map((deadLetter) => {
    const { verdict, code, message } = deadLetter;
    const label = LABELS[verdict] ?? verdict;
    const isRefused = code !== undefined || message !== undefined;
    return { deadLetter, label, refusal: isRefused ? { code, message } : undefined };
  });
  return deadLettersText(lines, now, { label: 'verdict', grouped });
}
