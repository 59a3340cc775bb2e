import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import {
  effectsToCheck,
  type StartedEffect,
  startedEffects,
} from '../../lambdas/runtime/inbox/started-effects.ts';
import type { InboxRow } from '../../lambdas/runtime/store/rows.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';

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

/** The refusal to settle a message whose effects were not checked. @param effects - each as {@link effectText} describes it */
export function effectsUnchecked(subject: string, effects: readonly string[]): MailroomError {
  return new MailroomError(
    'EFFECTS_UNCHECKED',
    `${subject} is not settled: ${effects.join('; ')}. Nothing was changed. Ask the ${effects.length === 1 ? 'provider about this key' : 'providers about these keys'}; ` +
      'then repeat the command with --effects-checked.',
  );
}
