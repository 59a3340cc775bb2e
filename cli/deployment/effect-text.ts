import type { StartedEffect } from '../../lambdas/runtime/inbox/started-effects.ts';
import type { EffectState } from '../../lambdas/runtime/store/rows.ts';
import { time } from '../terminal/times.ts';

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
