import { MailroomError } from '../base/errors.ts';
import { idempotencyKey } from '../inbox/idempotency-key.ts';
import { effectStates } from '../inbox/started-effects.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { EffectState } from '../store/stored-effect.ts';
import type { ClaimedMessage, Effects, Received } from './consumer-context.ts';

/** The code under which effects in doubt are logged. */
export const EFFECTS_IN_DOUBT = 'EFFECTS_IN_DOUBT';

/** The code under which effects that changed their names are logged. */
export const UNSTABLE_EFFECTS = 'UNSTABLE_EFFECTS';

/**
 * Reports the effects that an earlier attempt began and whose result can no longer be stored, because the function that ran them
 * has stopped: each may have happened. The next attempt that requests one repeats it under the same key.
 *
 * The claim has read the row already, so this costs no call. A later claim that finds the effect in doubt reports it again.
 *
 * @param claimed - a message whose handler has not started
 */
export function reportEffectsInDoubt(claimed: ClaimedMessage): void {
  reportStates(claimed, claimed.effects.before, ['unknown'], {
    text: 'An earlier attempt began effects and stored no result',
    what: (keys) =>
      `These effects may have happened: ask the provider about ${keys}. An attempt repeats them under the same keys.`,
  });
}

/**
 * Reports what the end of a message makes of its effects, once it is written.
 *
 * @param claimed - a message whose claim has ended
 * @param end - `rejected` and `superseded`: no attempt follows that would finish its work; `processed`: its handler ran to its end
 */
export function reportEffectsAtEnd(
  claimed: ClaimedMessage,
  end: 'rejected' | 'superseded' | 'processed',
): void {
  if (end === 'processed') {
    reportUnstableEffects(claimed);
    return;
  }
  const { before, ended } = claimed.effects;
  const others = [...before].filter(([name]) => !ended.has(name));
  reportStates(claimed, new Map([...others, ...ended]), NOT_UNDONE, NO_ATTEMPT_FOLLOWS[end]);
}

/**
 * Reports the effects that have happened, or may have, of a message that is rejected without a claim, such as one without a handler in this
 * version.
 *
 * @param row - as it was before the rejection
 */
export function reportEffectsOfUnclaimed(received: Received, row: InboxRow | undefined): void {
  const before = effectStates(row?.effects ?? {}, received.clock.now());
  reportStates(received, before, NOT_UNDONE, NO_ATTEMPT_FOLLOWS.rejected);
}

interface EffectsFinding {
  readonly text: string;
  readonly what: (keys: string) => string;
}

const NO_ATTEMPT_FOLLOWS: Readonly<Record<'rejected' | 'superseded', EffectsFinding>> = {
  rejected: {
    text: 'A message is rejected whose effects have happened, or may have',
    what: (keys) =>
      `No attempt follows. Before the message is discarded or resolved, ask the provider about ${keys}. A redrive repeats under the same ` +
      'keys what has not completed.',
  },
  superseded: {
    text: 'A message is superseded whose effects have happened, or may have',
    what: (keys) =>
      `Another event of its aggregate was applied, or its number was passed over, and no attempt follows: ask the provider about ${keys}, and ` +
      'undo by hand what must not remain.',
  },
};

/** The states of effects that have happened, or may have. */
const NOT_UNDONE: readonly EffectState[] = ['completed', 'failed', 'running', 'unknown'];

function reportStates(
  { config, telemetry, delivery }: Received,
  known: Effects['before'],
  states: readonly EffectState[],
  { text, what }: EffectsFinding,
): void {
  const found = [...known].filter(([, state]) => state !== undefined && states.includes(state));
  if (found.length === 0) return;
  telemetry.count('EffectsInDoubt', found.length);
  const keys = found.map(([name]) => idempotencyKey(config.consumer, delivery.message.eventId, name));
  const said = `the idempotency ${keys.length === 1 ? 'key' : 'keys'} ${keys.join(', ')}`;
  telemetry.log.error(text, { error: new MailroomError(EFFECTS_IN_DOUBT, what(said)) });
}

/**
 * Reports effects that happened in an earlier attempt, or may have, and that the attempt which finished the message never
 * requested. Under the same name it would have received the stored result; under a new name, the effect happens again. An effect
 * whose error said that nothing happened is not reported.
 */
function reportUnstableEffects({ telemetry, effects: { asked, before } }: ClaimedMessage): void {
  const left = [...before].filter(([name, state]) => state !== 'nothing-happened' && !asked.has(name));
  if (left.length === 0) return;
  telemetry.count('UnstableEffects', left.length);
  telemetry.log.error('A message was processed without the effects of its earlier attempts', {
    error: new MailroomError(
      UNSTABLE_EFFECTS,
      `The attempt that finished the message requested ${quoted([...asked])} and never requested ` +
        `${quoted(left.map(([name]) => name))}, which happened in an earlier attempt, or may have. ` +
        'Under a new name, an effect happens again. Build its name from the action and from event data, such as ' +
        '"ship-" + sku, never by a time, a counter, a random value or ctx.attempt.',
    ),
  });
}

function quoted(names: readonly string[]): string {
  return names.length === 0 ? 'no effect' : names.map((name) => `"${name}"`).join(', ');
}
