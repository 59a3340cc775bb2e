import type { EffectInDoubt } from '../../cli/why/effects-in-doubt.ts';
import type { eventReports } from '../../cli/why/trace-text.ts';
import type { WhyVerdict } from '../../cli/why/verdict.ts';

/** The document of `mailroom why --json`. */
export interface WhyDocument {
  readonly verdict: WhyVerdict;
  readonly events: ReturnType<typeof eventReports>;
  readonly more: boolean;
  readonly effectsInDoubt: readonly EffectInDoubt[];
}

/** An event of a {@link WhyDocument}. */
export type EventReport = WhyDocument['events'][number];
