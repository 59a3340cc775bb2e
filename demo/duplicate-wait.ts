import type { StepPrinter } from '../localstack/step-printer.ts';
import type { Progress } from './receipt.ts';

/** The lease of the consumers in the local stage of the order system, milliseconds. */
export const LEASE_MS = 6_000;

/** Options of {@link duplicateWait}. */
interface DuplicateWait {
  readonly steps: Pick<StepPrinter, 'say' | 'step' | 'detail'>;
  /** @default Date.now */
  readonly now?: () => number;
}

/**
 * Creates a reporter of the wait at the end of a run. Every event is processed by then, but a duplicate that arrived while the other
 * message of its event was being handled stays hidden until that lease would have ended. Only a duplicate that has come back and
 * found its event processed counts as absorbed, so the run cannot end earlier.
 *
 * @returns a function that reports the wait and returns true if only duplicates are left
 */
export function duplicateWait({
  steps,
  now = Date.now,
}: DuplicateWait): (progress: Progress, queued: number) => boolean {
  let begunAt: number | undefined;
  return ({ finished, expected }, queued) => {
    if (!finished || queued === 0) return false;
    if (begunAt === undefined) {
      begunAt = now();
      steps.say(
        `All ${expected} messages are processed. A duplicate that arrived while its event was being handled comes back when ` +
          `that lease would have ended, within ${LEASE_MS / 1_000} s.`,
      );
      steps.step('Waiting for the last duplicates');
    }
    const leftS = Math.ceil((begunAt + LEASE_MS - now()) / 1_000);
    steps.detail(`${queued} left, ${leftS > 0 ? `at most ${leftS} s more` : 'due now'}`);
    return true;
  };
}
