import type { EffectInDoubt } from '../../../reports/why/effects-in-doubt.ts';
import type { eventReports } from '../../../reports/why/trace-text.ts';
import type { WhyVerdict } from '../../../reports/why/verdict.ts';

/** The document of `mailroom why --json`. */
export interface WhyDocument {
  readonly verdict: WhyVerdict;
  readonly events: ReturnType<typeof eventReports>;
  readonly more: boolean;
  readonly effectsInDoubt: readonly EffectInDoubt[];
}

/** An event of a {@link WhyDocument}. */
export type EventReport = WhyDocument['events'][number];

const OPTIONS = /(?: --(?:stage|stack|profile|region|endpoint) \S+)+$/;

/**
 * Another command of `mailroom` with the options of a reading's command that select the Mailroom.
 *
 * @example
 * ```ts
 * commandLike('npx cdk-mailroom why 42 --stage dev', 'logs 01a1fe32-7358'); // 'npx cdk-mailroom logs 01a1fe32-7358 --stage dev'
 * ```
 */
export function commandLike(command: string, words: string): string {
  return `npx cdk-mailroom ${words}${OPTIONS.exec(command)?.[0] ?? ''}`;
}
