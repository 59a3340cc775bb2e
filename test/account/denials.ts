import type { Attempts } from './attempts.ts';
import type { ProbeOutcome } from './probe.handler.ts';

/** The finding about forbidden calls: they were denied if it is empty. */
interface Denials {
  /** The calls that were not denied, and why. */
  readonly holes: readonly string[];
  /** The reason why a local engine cannot show it: it enforces nothing. */
  readonly notShown?: string;
}

/**
 * Judges what became of a role's forbidden calls.
 *
 * @param outcomes - in the order of the calls
 * @param isLocal - a local engine that lets all of them through enforces no IAM; an account that does is open
 */
export function denialsOf(
  denied: Attempts['denied'],
  outcomes: readonly ProbeOutcome[],
  isLocal: boolean,
): Denials {
  const wrong = denied.flatMap(({ what }, n) => {
    const { kind, error = '' } = outcomes[n] ?? { kind: 'unknown' };
    return kind === 'denied' ? [] : [{ kind, text: `${what}: ${kind} ${error}`.trim() }];
  });
  const enforcesNothing = wrong.length === denied.length && wrong.every(({ kind }) => kind === 'allowed');
  if (isLocal && enforcesNothing)
    return {
      holes: [],
      notShown: `the engine enforces no IAM: it let all ${denied.length} forbidden calls through`,
    };
  return { holes: wrong.map(({ text }) => text) };
}
