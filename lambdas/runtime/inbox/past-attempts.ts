import { CLOCK_SKEW_MS, isTime } from '../base/clock.ts';
import type { AskedWait, AttemptEnd, LimitWait } from '../store/inbox-row.ts';
import type { EffectState, StoredEffect } from '../store/stored-effect.ts';
import { effectState } from './started-effects.ts';

/** The most attempts that a row keeps, and the most bytes of JSON that they take: each later write of the row pays for them. */
const ATTEMPTS_MAX = 10;
const BYTES_MAX = 2_048;

/** The side effects that one claim has run, and how each ended. */
export type EffectStates = Readonly<Record<string, EffectState>>;

/** Longer errors of an attempt are cut. */
const ERROR_MAX_CHARS = 120;

/**
 * Adds the end of an attempt to those of its message; the oldest are forgotten where they become too large. Only the holder of the
 * message writes them, under its fence, so none is lost between a read and a write.
 *
 * @param past - the row's attribute, as it was read
 */
export function withAttempt(past: unknown, { error, effects = {}, ...end }: AttemptEnd): AttemptEnd[] {
  const attempts = pastAttemptsOf(past);
  // Waits of days must not push the attempts out whose effects matter.
  const { wait } = attempts.at(-1) ?? {};
  const isSameKind = (wait?.limit === undefined) === (end.wait?.limit === undefined);
  const continues = end.wait !== undefined && isSameKind && wait?.times === end.wait.times - 1;
  const before = continues ? attempts.pop() : undefined;
  const ran = { ...before?.effects, ...effects };
  attempts.push({
    ...end,
    ...(error !== undefined && { error: error.slice(0, ERROR_MAX_CHARS) }),
    ...(Object.keys(ran).length > 0 && { effects: ran }),
  });
  while (attempts.length > ATTEMPTS_MAX || (attempts.length > 1 && bytesOf(attempts) > BYTES_MAX))
    attempts.shift();
  const [last] = attempts;
  if (last === undefined || bytesOf(attempts) <= BYTES_MAX) return attempts;
  const { effects: _tooMany, ...kept } = last;
  return [kept];
}

/** Returns the past attempts of a row that can be read. @param past - the row's attribute, as it was read */
export function pastAttemptsOf(past: unknown): AttemptEnd[] {
  return Array.isArray(past) ? past.filter(isAttempt) : [];
}

/**
 * Returns the waits that a message's handler has asked for, including one that begins now.
 *
 * @param past - the ends of its earlier attempts
 * @param sentAt - when its message was sent, if that is known: a redrive sends it again, and its waits start over
 */
export function waitsWith(past: readonly AttemptEnd[] = [], now: number, sentAt?: number): AskedWait {
  const arrivedAt = sentAt !== undefined && sentAt <= now ? sentAt - CLOCK_SKEW_MS : 0;
  const earlier = past
    .slice(past.findLastIndex(({ ended }) => ended === 'rejected') + 1)
    .flatMap(({ wait }) =>
      isWait(wait) && wait.limit === undefined && wait.since >= arrivedAt ? [wait] : [],
    );
  const [first] = earlier;
  return { since: first?.since ?? now, times: (earlier.at(-1)?.times ?? 0) + 1 };
}

/** Returns the consecutive waits of a message for its limit, including one that begins now. @param past - the ends of its earlier attempts */
export function limitWaitsWith(past: readonly AttemptEnd[] = [], limit: LimitWait, now: number): AskedWait {
  const wait = limitWaitOf(past);
  return { since: wait?.since ?? now, times: (wait?.times ?? 0) + 1, limit };
}

/** Returns the wait for a limit with which the last attempt of a message ended. @param past - the row's attribute, as it was read */
export function limitWaitOf(past: unknown): (AskedWait & { readonly limit: LimitWait }) | undefined {
  const { wait } = pastAttemptsOf(past).at(-1) ?? {};
  return isWait(wait) && isLimitWait(wait.limit) ? { ...wait, limit: wait.limit } : undefined;
}

function isLimitWait(value: unknown): value is LimitWait {
  const { name, key, slotAt } = Object(value) as Partial<LimitWait>;
  return typeof name === 'string' && typeof key === 'string' && (slotAt === undefined || isTime(slotAt));
}

function isWait(value: unknown): value is AskedWait {
  const { since, times } = Object(value) as Partial<AskedWait>;
  return Number.isSafeInteger(since) && Number.isSafeInteger(times);
}

/** Returns the ends of the effects that one claim has started, by the row that it left. */
export function effectsOfClaim(
  effects: Readonly<Record<string, StoredEffect>> | undefined,
  fence: string,
): EffectStates {
  const own = Object.entries(effects ?? {}).filter(([, effect]) => effect?.fence === fence);
  // Its function has stopped, so an effect without a result is not running.
  return Object.fromEntries(
    own.map(([name, effect]) => [name, effectState(effect, Number.POSITIVE_INFINITY)]),
  );
}

function isAttempt(value: unknown): value is AttemptEnd {
  const { at, attempt, ended } = Object(value) as Partial<AttemptEnd>;
  return Number.isSafeInteger(at) && Number.isSafeInteger(attempt) && typeof ended === 'string';
}

function bytesOf(attempts: readonly AttemptEnd[]): number {
  return Buffer.byteLength(JSON.stringify(attempts));
}
