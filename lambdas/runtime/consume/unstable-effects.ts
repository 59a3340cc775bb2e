import { MailroomError } from '../errors.ts';
import type { EffectRow } from '../store/rows.ts';
import type { Telemetry } from '../telemetry.ts';

/** The code under which effects that lost their names are logged. */
export const UNSTABLE_EFFECTS = 'UNSTABLE_EFFECTS';

/** An effect of the message, as its row says. */
export type StoredEffect = Pick<EffectRow, 'status'> & { readonly name: string };

/**
 * Reports the effects that an earlier attempt completed, or was running when it died, and that the attempt which finished
 * the message never asked for. With the same name it would have been handed the stored result; under a new name, the effect
 * happens again. An effect that failed and was released did not happen, so it is not reported.
 *
 * @param asked - the names that this attempt handed to `ctx.once`
 */
export function reportUnstableEffects(
  telemetry: Telemetry,
  eventId: string,
  stored: readonly StoredEffect[],
  asked: ReadonlySet<string>,
): void {
  const left = stored.filter(({ name, status }) => status !== 'RELEASED' && !asked.has(name));
  if (left.length === 0) return;
  telemetry.count('UnstableEffects', left.length);
  telemetry.log.error('A message is processed, but not with the effects of its earlier attempts', {
    eventId,
    error: new MailroomError(
      UNSTABLE_EFFECTS,
      `The attempt that finished the message asked for ${quoted([...asked])} and never asked for ` +
        `${quoted(left.map(({ name }) => name))}, which an earlier attempt completed or was running when it died. ` +
        'Under a new name an effect happens again. Name it by what it does and by what the event says, such as ' +
        '"ship-" + sku, never by a time, a counter, a random value or ctx.attempt.',
    ),
  });
}

function quoted(names: readonly string[]): string {
  return names.length === 0 ? 'no effect' : names.map((name) => `"${name}"`).join(', ');
}
