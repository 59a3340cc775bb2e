import { createHash } from 'node:crypto';
import { CLOCK_SKEW_MS } from '../base/clock.ts';
import type { InboxRow } from '../store/inbox-row.ts';
import type { EffectState, StoredEffect } from '../store/stored-effect.ts';
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

/** The operator has checked effects: those of a digest, or whatever they are. */
export type EffectsChecked = boolean | string;

/** Identifies effects by their keys, starts and ends: a check of some covers no others, and none of their later runs. */
export function effectsDigest(
  effects: readonly Pick<StartedEffect, 'key' | 'startedAt' | 'endedAt'>[],
): string {
  const shown = effects.map(({ key, startedAt, endedAt }) =>
    JSON.stringify([key, startedAt, endedAt ?? null]),
  );
  return createHash('sha256').update(shown.sort().join()).digest('hex').slice(0, 12);
}

/** Returns true if an operator's check covers effects. */
export function areChecked(checked: EffectsChecked, effects: readonly StartedEffect[]): boolean {
  return typeof checked === 'string' ? checked === effectsDigest(effects) : checked;
}

/** Returns how the stored effects of a message ended, by their names; `undefined` for an entry that was set to null by hand. */
export function effectStates(
  effects: Readonly<Record<string, StoredEffect>>,
  now: number,
): Map<string, EffectState | undefined> {
  return new Map(
    Object.entries(effects).map(([name, stored]: [string, StoredEffect | null]) => [
      name,
      stored === null ? undefined : effectState(stored, now),
    ]),
  );
}

/** Returns true for a message of which no effect has happened, nor may have. @param states - as {@link effectStates} returns them */
export function hasNoEffect(states: ReadonlyMap<string, EffectState | undefined>): boolean {
  return [...states.values()].every((state) => state === 'nothing-happened');
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
