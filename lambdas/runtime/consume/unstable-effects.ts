import { MailroomError } from '../base/errors.ts';
import { effectIn } from '../inbox/inbox-effect.ts';
import type { ClaimedMessage } from './consumer-context.ts';

/** The code under which effects that changed their names are logged. */
export const UNSTABLE_EFFECTS = 'UNSTABLE_EFFECTS';

/**
 * Reports effects that happened in an earlier attempt, or may have, and that the attempt which finished the message never
 * requested. Under the same name it would have received the stored result; under a new name, the effect happens again. An effect
 * whose error said that nothing happened is not reported.
 *
 * @param claimed - a message whose handler ran to its end, and so requested every effect that it needs
 */
export function reportUnstableEffects({ telemetry, claim, effects }: ClaimedMessage): void {
  const { asked } = effects;
  const left = Object.keys(claim.effects).filter(
    (name) => effectIn(claim.effects, name)?.nothingHappened !== true && !asked.has(name),
  );
  if (left.length === 0) return;
  telemetry.count('UnstableEffects', left.length);
  telemetry.log.error('A message was processed without the effects of its earlier attempts', {
    error: new MailroomError(
      UNSTABLE_EFFECTS,
      `The attempt that finished the message requested ${quoted([...asked])} and never requested ` +
        `${quoted(left)}, which happened in an earlier attempt, or may have. ` +
        'Under a new name, an effect happens again. Build its name from the action and from event data, such as ' +
        '"ship-" + sku, never by a time, a counter, a random value or ctx.attempt.',
    ),
  });
}

function quoted(names: readonly string[]): string {
  return names.length === 0 ? 'no effect' : names.map((name) => `"${name}"`).join(', ');
}
