import { CLOCK_SKEW_MS, withDeadline } from '../base/clock.ts';
import type { TokenAsked } from '../inbox/limit-bucket.ts';
import { holderOf } from '../inbox/limit-places.ts';
import type { PlaceAnswer } from '../store/dynamo/limit-place.ts';
import type { ClaimedMessage } from './consumer-context.ts';
import type { InboxLimits } from './inbox-port.ts';
import type { MessageBucket } from './limits.ts';

/** The place of one run in the bucket of its limit; without a concurrency, it takes tokens only. */
export interface RunPlace {
  /**
   * Asks for a token, and for a place unless the run has one.
   *
   * @param since - the time since which the message waits for this limit, epoch milliseconds @default it has not waited
   * @throws as {@link InboxLimits}
   */
  ask(asked: TokenAsked, since: number | undefined): Promise<PlaceAnswer>;
  /**
   * Frees the place, if the run has one or may have one. Never throws. Absent: the limit has no concurrency.
   *
   * @param ranMs - how long the run took, milliseconds @default it did not run
   */
  readonly leave?: ((ranMs?: number) => Promise<void>) | undefined;
}

/** The longest wait for the write that frees a place, milliseconds: the batch response must be sent. */
const LEAVE_MAX_MS = 1_000;

/** Creates the place of a run, which it does not have yet. */
export function runPlace(
  { claim, config, clock, telemetry, delivery }: ClaimedMessage,
  limits: InboxLimits,
  { row: key, pace, limit: { concurrency } }: MessageBucket,
): RunPlace {
  // The run's function is stopped at `endsBy`; until then it may act, whatever its lease.
  const holder = holderOf(claim.endsBy + CLOCK_SKEW_MS, claim.fence);
  const ticket = `${config.consumer}#${claim.message.eventId}`;
  const receivesLeft = config.maxReceives === undefined ? undefined : config.maxReceives - delivery.receives;
  /** Also true if an answer was lost. */
  let isHeld = false;
  let estimateMs: number | undefined;

  async function ask(asked: TokenAsked, since: number | undefined): Promise<PlaceAnswer> {
    if (pace !== undefined && (concurrency === undefined || isHeld))
      return limits.takeToken({ key, pace, concurrency }, asked);
    if (concurrency === undefined) throw new Error('A limit without numbers'); // refused when the consumer is created
    isHeld = true;
    const answer = await limits.takePlace(
      { key, pace, place: { concurrency, holder, ticket, since, receivesLeft } },
      asked,
    );
    isHeld = answer.is === 'token' || answer.is === 'place';
    estimateMs = answer.runMs;
    return answer;
  }

  async function leave(ranMs?: number): Promise<void> {
    if (!isHeld) return;
    const ran = ranMs === undefined ? undefined : { ms: ranMs, estimateMs };
    const text =
      'A place of a limit could not be freed; it is free when the function would have been stopped';
    const freed = limits
      .freePlace({ key, holder, ran })
      .catch((error: unknown) => telemetry.log.warn(text, { error: error as Error }));
    await withDeadline(clock, Math.min(LEAVE_MAX_MS, (claim.endsBy - clock.now()) / 4), freed, () => {});
  }

  return { ask, leave: concurrency === undefined ? undefined : leave };
}
