import { MailroomError } from '../base/errors.ts';
import { idempotencyKey } from '../inbox/idempotency-key.ts';
import { effectIn } from '../inbox/inbox-effect.ts';
import { effectState } from '../inbox/started-effects.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { EffectState, StoredEffect } from '../store/stored-effect.ts';
import type { ClaimedMessage, Received } from './consumer-context.ts';

/** The code under which effects in doubt are logged. */
export const EFFECTS_IN_DOUBT = 'EFFECTS_IN_DOUBT';

/**
 * Reports the effects that an earlier attempt began and whose result can no longer be stored, because the function that ran them
 * has stopped: each may have happened. The next attempt that requests one repeats it under the same key.
 *
 * The claim has read the row already, so this costs no call. A later claim that finds the effect in doubt reports it again.
 *
 * @param claimed - a message whose handler has not started
 */
export function reportEffectsInDoubt(claimed: ClaimedMessage): void {
  report(claimed, claimed.claim.effects, claimed.effects.ended, ['unknown'], {
    text: 'An earlier attempt began effects and stored no result',
    what: (keys) =>
      `These effects may have happened: ask the provider about ${keys}. An attempt repeats them under the same keys.`,
  });
}

/**
 * Reports the effects that have happened, or may have, of a message that is rejected: no attempt follows that would finish its work.
 *
 * @param claimed - a message that was rejected under this claim
 */
export function reportEffectsOfRejected(claimed: ClaimedMessage): void {
  report(claimed, claimed.claim.effects, claimed.effects.ended, NOT_UNDONE, OF_REJECTED);
}

/**
 * As {@link reportEffectsOfRejected}, of a message that is rejected without a claim, such as one without a handler in this version.
 *
 * @param row - as it was before the rejection
 */
export function reportEffectsOfUnclaimed(received: Received, row: InboxRow | undefined): void {
  report(received, row?.effects, new Map(), NOT_UNDONE, OF_REJECTED);
}

const OF_REJECTED: EffectsFinding = {
  text: 'A message is rejected whose effects have happened, or may have',
  what: (keys) =>
    `No attempt follows. Before the message is discarded or resolved, ask the provider about ${keys}. A redrive repeats under the same ` +
    'keys what has not completed.',
};

/**
 * Reports the effects that have happened, or may have, of a message whose event is superseded: its handler does not run again.
 *
 * @param claimed - a message that was superseded under this claim
 */
export function reportEffectsOfSuperseded(claimed: ClaimedMessage): void {
  report(claimed, claimed.claim.effects, claimed.effects.ended, NOT_UNDONE, {
    text: 'A message is superseded whose effects have happened, or may have',
    what: (keys) =>
      `Another event of its aggregate was applied, or its number was passed over, and no attempt follows: ask the provider about ${keys}, and ` +
      'undo by hand what must not remain.',
  });
}

/** The states of effects that have happened, or may have. */
const NOT_UNDONE: readonly EffectState[] = ['completed', 'failed', 'running', 'unknown'];

interface EffectsFinding {
  readonly text: string;
  readonly what: (keys: string) => string;
}

/**
 * @param stored - the row's attribute
 * @param ended - the states of the effects that this claim has run, instead of those in the row
 */
function report(
  { config, telemetry, delivery, clock }: Received,
  stored: unknown,
  ended: ReadonlyMap<string, EffectState>,
  states: readonly EffectState[],
  { text, what }: EffectsFinding,
): void {
  const now = clock.now();
  const others = Object.keys(stored ?? {}).filter((name) => {
    const effect = ended.has(name) ? undefined : effectIn(stored, name);
    return effect && states.includes(effectState(effect as StoredEffect, now));
  });
  const own = [...ended].filter(([, state]) => states.includes(state)).map(([name]) => name);
  const names = [...others, ...own];
  if (names.length === 0) return;
  telemetry.count('EffectsInDoubt', names.length);
  const keys = names.map((name) => idempotencyKey(config.consumer, delivery.message.eventId, name));
  const said = `the idempotency ${keys.length === 1 ? 'key' : 'keys'} ${keys.join(', ')}`;
  telemetry.log.error(text, { error: new MailroomError(EFFECTS_IN_DOUBT, what(said)) });
}
