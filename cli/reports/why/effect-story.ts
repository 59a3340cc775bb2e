import { pastAttemptsOf } from '../../../lambdas/runtime/inbox/past-attempts.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import type { StoredEffect } from '../../../lambdas/runtime/store/stored-effect.ts';
import { clipped, ordinal } from '../../terminal/output.ts';
import { type OwnLine, tell } from './story-line.ts';

/** The start and the end of an effect of a message. */
export function effectStory([named, effect]: readonly [string, StoredEffect], row: InboxRow): OwnLine[] {
  const name = clipped(named);
  const before = runsBefore(named, effect, row);
  const again = before === 0 ? '' : `, for the ${ordinal(before + 1)} time under the same key`;
  const started = tell('effect-started', effect.startedAt, `effect ${name} started${again}`);
  switch (effect.status) {
    case 'COMPLETED': {
      const text = `effect ${name} completed; its result is stored`;
      return [started, tell('effect-completed', effect.completedAt, text)];
    }
    case 'RELEASED': {
      const ended = effect.nothingHappened === true ? 'and nothing happened' : 'so it may have happened';
      const error = effect.error === undefined ? '' : ` (${clipped(effect.error)})`;
      const text = `effect ${name} ended with an error${error}, ${ended}`;
      return [started, tell('effect-released', effect.endedAt, text)];
    }
    default:
      return [started];
  }
}

/** The number of earlier attempts that ran an effect. */
function runsBefore(name: string, { startedAt }: StoredEffect, { pastAttempts }: InboxRow): number {
  const ran = pastAttemptsOf(pastAttempts).filter(({ effects }) => Object.hasOwn(effects ?? {}, name));
  // The attempt that started it last is over, and is one of them.
  return ran.filter(({ at }) => at < startedAt).length;
}
