import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import {
  effectsDigest,
  effectsToCheck,
  type StartedEffect,
  startedEffects,
} from '../../lambdas/runtime/inbox/started-effects.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import type { EffectState } from '../../lambdas/runtime/store/stored-effect.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import { time } from '../terminal/times.ts';

/**
 * The side effects of a message whose work is not done: each has happened, or may have. To settle the message without its
 * handler, ask their providers first.
 *
 * @param row - its inbox row; none if it does not exist or cannot be read
 */
export function openEffects(
  eventId: string,
  consumer: string,
  row: InboxRow | UnreadableRow | undefined,
  now: number,
): StartedEffect[] {
  const known = readable(row);
  if (known === undefined || known.status === 'PROCESSED' || known.status === 'DISCARDED') return [];
  return effectsToCheck(startedEffects(consumer, eventId, known, now));
}

/** The option that says that effects were checked, bound to those that are shown. */
export function checkedWord(effects: readonly StartedEffect[]): string {
  return effects.length === 0 ? '--effects-checked' : `--effects-checked=${effectsDigest(effects)}`;
}

/** The refusal to settle a message whose effects were not checked. @param effects - each as {@link effectText} describes it */
export function effectsUnchecked(subject: string, effects: readonly string[]): MailroomError {
  return new MailroomError(
    'EFFECTS_UNCHECKED',
    `${subject} is not settled: ${effects.join('; ')}. Nothing was changed. Ask the ${effects.length === 1 ? 'provider about this key' : 'providers about these keys'}; ` +
      'then repeat the command with --effects-checked, as its plan prints it.',
  );
}

/** Describes an effect with its key: `effect charge completed at …; its idempotency key is payments:…:charge`. */
export function effectText({ effect, key, state, startedAt, endedAt, error }: StartedEffect): string {
  const said = {
    completed: `completed at ${time(endedAt ?? startedAt)}`,
    failed: `ended at ${time(endedAt ?? startedAt)} with an error${error ? ` (${error})` : ''}, so it may have happened`,
    running: `started at ${time(startedAt)} and may still run`,
    unknown: `started at ${time(startedAt)} and stored no result, so it may have happened`,
    'nothing-happened': `ended at ${time(endedAt ?? startedAt)}, and nothing happened${error ? ` (${error})` : ''}`,
  }[state];
  return `effect ${effect} ${said}; its idempotency key is ${key}`;
}

/** The state of an effect in words. */
export const STATE_WORDS: Readonly<Record<EffectState, string>> = {
  completed: 'completed',
  failed: 'failed',
  running: 'may still run',
  unknown: 'no result is stored',
  'nothing-happened': 'nothing happened',
};

/** Names effects with their states: `charge (completed), refund (failed)`. */
export function effectNames(effects: readonly StartedEffect[]): string {
  return effects.map(({ effect, state }) => `${effect} (${STATE_WORDS[state]})`).join(', ');
}
