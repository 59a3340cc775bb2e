import { DELAY_MAX_MS } from '../base/retry-schedule.ts';

/**
 * The bucket of one key of a limit. Its stored times only move forward, and each token moves `nextAt` by the time of a token, so a worker
 * whose clock is wrong takes no more than the rate allows since the last token, besides the difference of the clocks once. No stored time
 * contains the burst, so workers with different numbers can share the row.
 *
 *     now - burst          nextAt            now            now + patience
 *     ----|------------------|----------------|------------------|---->
 *     full before it          has tokens       a token is free within the patience: its worker waits for it
 */
export interface Bucket {
  /** The time of the next token, epoch milliseconds; in the past, the bucket has tokens. Absent: it is full. */
  readonly nextAt?: number | undefined;
  /** The slot of the next message that must wait, epoch milliseconds. Absent, or in the past: none waits. */
  readonly lineUntil?: number | undefined;
}

/** The rate of a limit. */
export interface TokenRate {
  /** The time in which a token returns, milliseconds. */
  readonly everyMs: number;
  /** The time in which all tokens but one return, milliseconds. */
  readonly burstMs: number;
}

/** A message that asks for a token. */
export interface TokenAsked {
  /** It has waited for its slot, which has come: those that have not yet joined the line are not ahead of it. */
  readonly hasSlot: boolean;
  /** The longest time for which its worker waits for a token, milliseconds. */
  readonly patienceMs: number;
}

/** The longest time for which a message joins the line, milliseconds: a queue hides a message for 12 hours, with the run of its function. */
export const LINE_MAX_MS = DELAY_MAX_MS;

/** The next change of a bucket, from what was read of it. Each store writes it under its own condition, which makes it safe. */
export type BucketStep =
  | TokenStep
  /** No message waits: this one is the first. */
  | 'begin-line'
  | 'join-line'
  /** The line is too long to join. */
  | 'stay-away';

/** The way in which a token is taken. */
export type TokenStep =
  /** The bucket is full: the token is free now. */
  | 'take-from-full'
  /** It has a token, or has one within the patience. */
  | 'take';

/** Decides the next step. @param bucket - as it was read @default it is full */
export function stepAt(
  { nextAt = 0, lineUntil = 0 }: Bucket,
  pace: TokenRate,
  { hasSlot, patienceMs }: TokenAsked,
  now: number,
): BucketStep {
  const hasLine = lineUntil > now;
  const token = hasSlot || !hasLine ? tokenAt(nextAt, pace, patienceMs, now) : undefined;
  if (token !== undefined) return token;
  if (!hasLine) return 'begin-line';
  return lineUntil <= now + LINE_MAX_MS ? 'join-line' : 'stay-away';
}

/** Decides how a token is taken; `undefined` if none is free within the patience. */
export function tokenAt(
  nextAt: number,
  { burstMs }: TokenRate,
  patienceMs: number,
  now: number,
): TokenStep | undefined {
  if (nextAt < now - burstMs) return 'take-from-full';
  return nextAt <= now + patienceMs ? 'take' : undefined;
}

/** Returns true if a stored bucket can be used. */
export function isBucket({ nextAt = 0, lineUntil = 0 }: { nextAt?: unknown; lineUntil?: unknown }): boolean {
  return [nextAt, lineUntil].every((time) => typeof time === 'number' && Number.isFinite(time));
}
