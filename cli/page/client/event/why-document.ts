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
