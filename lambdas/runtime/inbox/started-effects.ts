import { CLOCK_SKEW_MS } from '../base/clock.ts';
import type { EffectState, InboxRow, StoredEffect } from '../store/rows.ts';
import { idempotencyKey } from './idempotency-key.ts';

/** A side effect that a handler started for a message. */
export interface StartedEffect {
  readonly effect: string;
  /** The idempotency key under which its provider knows it, and under which an attempt repeats it. */
  readonly key: string;
  readonly state: EffectState;
  /** The time of its last start, epoch milliseconds. */
  readonly startedAt: number;
  /** Epoch milliseconds; absent if it is `running` or `unknown`. */
  readonly endedAt?: number | undefined;
  /** The error with which it ended. */
  readonly error?: string | undefined;
}

/** Returns the side effects that were started for a message, by its row. @param now - epoch milliseconds */
export function startedEffects(
  consumer: string,
  eventId: string,
  row: Pick<InboxRow, 'effects'> | undefined,
  now: number,
): StartedEffect[] {
  return Object.entries(row?.effects ?? {}).map(([effect, stored]) => ({
    effect,
    key: idempotencyKey(consumer, eventId, effect),
    state: effectState(stored, now),
    startedAt: stored.startedAt,
    endedAt: stored.completedAt ?? stored.endedAt,
    error: stored.error,
  }));
}

/**
 * Returns the effects whose providers must be asked before a message is settled without its handler: each has happened, or may
 * have, or still may.
 */
export function effectsToCheck(effects: readonly StartedEffect[]): StartedEffect[] {
  return effects.filter(({ state }) => state !== 'nothing-happened');
}

/** Returns how a stored effect ended. */
export function effectState(
  { status, endsBy, nothingHappened }: Pick<StoredEffect, 'status' | 'endsBy' | 'nothingHappened'>,
  now: number,
): EffectState {
  if (status === 'COMPLETED') return 'completed';
  if (status === 'RELEASED') return nothingHappened === true ? 'nothing-happened' : 'failed';
  return endsBy + CLOCK_SKEW_MS < now ? 'unknown' : 'running';
}
