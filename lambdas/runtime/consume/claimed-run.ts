import type { ConsumerConfig } from '../config.ts';
import { isAlreadyProcessed, isPoison } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { RandomBytes } from '../event-id.ts';
import type { Table } from '../table.ts';
import type { Delivery } from './delivery.ts';
import type { EffectInProgress } from './effect-persistence.ts';
import type { FailedHints } from './failed-hints.ts';
import type { LeasedHandler } from './handler.ts';
import type { Claim } from './inbox-conditions.ts';
import { type LeasedRunDeps, runLeased } from './leased-run.ts';
import { again, attemptsSpent, type Outcome, type Outcomes, outOfTime } from './message-outcome.ts';
import { createEffects, type Effects } from './once.ts';

/** What claiming messages and running their handlers needs. */
export interface ClaimedRunDeps extends LeasedRunDeps {
  readonly config: ConsumerConfig;
  readonly table: Table;
  readonly random: RandomBytes;
  readonly hints: FailedHints;
  readonly outcomes: Outcomes;
}

/**
 * Claims a message, runs its handler under the claim, and writes what became of it on the inbox row.
 *
 * @param takeOver - whether it may be taken from a worker whose lease has passed
 * @param unclaimedRuns - how many of its runs were, or would have been, without a claim: these are not counted @default 0
 */
export type ClaimedRun = (
  handler: LeasedHandler,
  event: Envelope,
  delivery: Delivery,
  takeOver: boolean,
  unclaimedRuns?: number,
) => Promise<Outcome>;

/** A message that is claimed more often than this is one that somebody should look at before its attempts are spent. */
const ATTEMPTS_UNNOTICED = 3;

/** Makes the claimed run of one consumer. */
export function createClaimedRun(deps: ClaimedRunDeps): ClaimedRun {
  const { config, clock, telemetry, inbox, hints, outcomes } = deps;

  return async (handler, event, delivery, takeOver, unclaimedRuns = 0) => {
    const { message, endsBy, receives } = delivery;
    const firstReceive = receives <= 1 + unclaimedRuns;
    const verdict = await inbox.claim(message, { takeOver, endsBy, firstReceive });
    if (verdict.status !== 'claimed') return outcomes.refused(delivery, verdict);
    const { claim } = verdict;
    if (takeOver) telemetry.count('LeasesExpired');
    if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
    if (claim.attempt > config.maxAttempts) {
      // Its last attempt never came to an end: the process died, or lost its lease.
      return reject(
        delivery,
        claim,
        attemptsSpent(config.maxAttempts, claim.lastError ?? 'the function died'),
      );
    }
    const effects = createEffects({ ...deps, ...config }, claim);
    const run = await runLeased(deps, handler, event, claim, effects, delivery.receiptHandle);
    switch (run.kind) {
      case 'committed':
        return processed(delivery, claim, effects);
      case 'returned':
        return complete(delivery, claim, effects, run.result);
      case 'blocked':
        return release(delivery, claim, run.error);
      case 'out-of-time': {
        // The handler still runs: its lease stays, and nobody tries before the function is stopped for certain.
        const error = outOfTime();
        outcomes.logFailure('A handler ran out of time', delivery, error);
        return again(outcomes.untilMs(claim.endsBy), error);
      }
      case 'threw':
        return threw(delivery, claim, effects, run.error);
    }
  };

  async function threw(delivery: Delivery, claim: Claim, effects: Effects, error: unknown): Promise<Outcome> {
    if (isAlreadyProcessed(error)) return complete(delivery, claim, effects, undefined, false);
    if (isPoison(error)) return reject(delivery, claim, error);
    if (claim.attempt >= config.maxAttempts)
      return reject(delivery, claim, attemptsSpent(claim.attempt, error));
    const afterMs = outcomes.retryAfterMs(claim.attempt);
    const retryAt = clock.now() + afterMs;
    const refusal = await inbox.fail(claim, error, retryAt);
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    await hints.put(claim.message.eventId, retryAt, claim.endsBy);
    return outcomes.comeAgain(delivery, afterMs, error);
  }

  /** An effect may still be running elsewhere: the message waits until that must be over. */
  async function release(delivery: Delivery, claim: Claim, error: EffectInProgress): Promise<Outcome> {
    const afterMs = outcomes.untilMs(error.until);
    const refusal = await inbox.release(claim, clock.now() + afterMs);
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    telemetry.count('MessagesLeased');
    return again(afterMs, error);
  }

  async function complete(
    delivery: Delivery,
    claim: Claim,
    effects: Effects,
    result: unknown,
    wholeRun = true,
  ): Promise<Outcome> {
    const refusal = await inbox.complete(claim, result);
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    return processed(delivery, claim, effects, wholeRun);
  }

  async function reject(delivery: Delivery, claim: Claim, error: unknown): Promise<Outcome> {
    const refusal = await inbox.reject(claim, error);
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    if (failedBefore(claim)) await hints.remove(claim.message.eventId, claim.endsBy);
    return outcomes.rejected(delivery, error);
  }

  /** The work is done. Its effects' rows may expire from now on; where that cannot be written, they stay. */
  async function processed(
    delivery: Delivery,
    claim: Claim,
    effects: Effects,
    wholeRun = true,
  ): Promise<Outcome> {
    await effects
      .expire(wholeRun)
      .catch((error: unknown) =>
        outcomes.logFailure('The effects of a processed message keep their rows', delivery, error),
      );
    const outcome = outcomes.processed(delivery);
    if (failedBefore(claim)) await hints.remove(claim.message.eventId, claim.endsBy);
    return outcome;
  }
}

/** Whether there may be a hint that it failed. */
function failedBefore(claim: Claim): boolean {
  return claim.attempt > 1 || claim.lastError !== undefined;
}
