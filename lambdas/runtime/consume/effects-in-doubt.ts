import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { effectIn } from '../inbox/inbox-effect.ts';
import type { ClaimedMessage } from './consumer-context.ts';

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
export function reportEffectsInDoubt({ config, telemetry, clock, claim }: ClaimedMessage): void {
  const { eventId } = claim.message;
  const inDoubt = Object.keys(claim.effects).filter((name) => {
    const { status, endsBy } = effectIn(claim.effects, name) ?? {};
    return status === 'IN_PROGRESS' && Number(endsBy) + CLOCK_SKEW_MS < clock.now();
  });
  if (inDoubt.length === 0) return;
  telemetry.count('EffectsInDoubt', inDoubt.length);
  const keys = inDoubt.map((name) => `${config.consumer}:${eventId}:${name}`);
  telemetry.log.error('An earlier attempt began effects and stored no result', {
    error: new MailroomError(
      EFFECTS_IN_DOUBT,
      `These effects may have happened: ask the provider about the idempotency ${keys.length === 1 ? 'key' : 'keys'} ` +
        `${keys.join(', ')}. An attempt repeats them under the same keys.`,
    ),
  });
}
