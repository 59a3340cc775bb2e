import { CLOCK_SKEW_MS } from '../clock.ts';
import type { ConsumerConfig } from '../config.ts';
import { isAlreadyProcessed, isPoison, isRetryLater } from '../errors.ts';
import type { Envelope } from '../event.ts';
import type { RandomBytes } from '../store/event-id.ts';
import { ALONE_FROM, type Claim } from '../store/inbox-conditions.ts';
import { backoffMs } from '../store/retry.ts';
import type { Table } from '../store/table.ts';
import type { Delivery } from './delivery.ts';
import type { EffectInProgress } from './effect-persistence.ts';
import type { FailedHints } from './failed-hints.ts';
import type { LeasedHandler } from './handler.ts';
import { type LeasedRunDeps, outOfTime, RESPONSE_MARGIN_MS, runLeased } from './leased-run.ts';
import { readEvent } from './message.ts';
import { again, attemptsSpent, type Outcome, type Outcomes } from './message-outcome.ts';
import { createEffects, type Effects } from './once.ts';
import { isOutage } from './outage.ts';

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
 * @param alone - whether no other message runs in this invocation
 * @param unclaimedRuns - how many of its runs were, or would have been, without a claim: these are not counted @default 0
 * @throws what the table throws: the message's row says what was written so far
 */
export type ClaimedRun = (
  handler: LeasedHandler,
  envelope: Envelope,
  delivery: Delivery,
  alone: boolean,
  unclaimedRuns?: number,
) => Promise<Outcome>;

/** A message that is claimed more often than this is one that somebody should look at before its attempts are spent. */
const ATTEMPTS_UNNOTICED = 3;

/** For how long at most the end of a claim is written again and again: the others of the batch wait for their answer. */
const SETTLE_MAX_MS = 20_000;

/** Makes the claimed run of one consumer. */
export function createClaimedRun(deps: ClaimedRunDeps): ClaimedRun {
  const { config, clock, telemetry, inbox, hints, outcomes } = deps;

  return async (handler, envelope, delivery, alone, unclaimedRuns = 0) => {
    const { message, endsBy, receives } = delivery;
    const firstReceive = receives <= 1 + unclaimedRuns;
    const verdict = await inbox.claim(message, { alone, endsBy, firstReceive });
    if (verdict.status !== 'claimed') return outcomes.refused(delivery, verdict);
    const { claim } = verdict;
    if (claim.takenOver) telemetry.count('LeasesExpired');
    if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
    if (claim.attempt > config.maxAttempts) {
      // Its last attempt ended without a result, as its row says.
      return reject(delivery, claim, attemptsSpent(config.maxAttempts, claim.lastError));
    }
    const event = await readClaimed(handler, envelope);
    if ('problem' in event) return reject(delivery, claim, event.problem);
    const effects = createEffects({ ...deps, ...config }, claim);
    const run = await runLeased(deps, handler, event, claim, effects, delivery);
    switch (run.kind) {
      case 'committed':
        return processed(delivery, claim, effects);
      case 'returned':
        return complete(delivery, claim, effects, run.result);
      case 'blocked':
        return release(delivery, claim, run.error);
      case 'outage':
        return interrupted(delivery, claim, run.error);
      case 'cut-off':
        return cutOff(delivery, claim, run.error);
      case 'out-of-time': {
        // The handler still runs: its lease stays, and nobody tries before the function is stopped for certain.
        const error = outOfTime();
        const stoppedMs = outcomes.untilMs(claim.endsBy + CLOCK_SKEW_MS);
        if (run.robbed) return again(Math.max(stoppedMs, outcomes.outage(delivery, error).afterMs), error);
        outcomes.logFailure('A handler ran out of time', delivery, error);
        return again(Math.max(stoppedMs, unfinishedAfterMs(claim)), error);
      }
      case 'threw':
        return threw(delivery, claim, effects, run.error);
    }
  };

  async function threw(delivery: Delivery, claim: Claim, effects: Effects, error: unknown): Promise<Outcome> {
    if (isAlreadyProcessed(error)) return complete(delivery, claim, effects, undefined, false);
    if (isPoison(error)) return reject(delivery, claim, error);
    const cause = isRetryLater(error) ? (error.cause ?? error) : error;
    if (claim.attempt >= config.maxAttempts)
      return reject(delivery, claim, attemptsSpent(claim.attempt, cause));
    const afterMs = outcomes.retryAfterMs(claim.attempt, error);
    const retryAt = clock.now() + afterMs;
    const refusal = await settle(claim, () => inbox.fail(claim, cause, retryAt));
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    await hints.put(claim.message.eventId, retryAt, claim.endsBy);
    return outcomes.comeAgain(delivery, afterMs, cause);
  }

  /** It ended because the time was up: tried again like any failure, but counted only if it ran alone. */
  async function cutOff(delivery: Delivery, claim: Claim, error: unknown): Promise<Outcome> {
    if (claim.unfinished >= ALONE_FROM && claim.attempt >= config.maxAttempts)
      return reject(delivery, claim, attemptsSpent(claim.attempt, error));
    const afterMs = unfinishedAfterMs(claim);
    const retryAt = clock.now() + afterMs;
    const refusal = await settle(claim, () => inbox.cutOff(claim, error, retryAt));
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    await hints.put(claim.message.eventId, retryAt, claim.endsBy);
    return outcomes.comeAgain(delivery, afterMs, error);
  }

  /** Attempts that are not counted spread over the same schedule, or a hanging provider would spend them in minutes. */
  function unfinishedAfterMs({ attempt, unfinished }: Claim): number {
    return outcomes.retryAfterMs(attempt + Math.min(unfinished, ALONE_FROM));
  }

  /** The table could not be reached while the handler ran. Where that cannot be written either, the next claim takes over. */
  async function interrupted(delivery: Delivery, claim: Claim, error: unknown): Promise<Outcome> {
    const outcome = outcomes.outage(delivery, error);
    const retryAt = clock.now() + outcome.afterMs;
    const refusal = await settle(claim, () => inbox.release(claim, retryAt, error));
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    await hints.put(claim.message.eventId, retryAt, claim.endsBy);
    return outcome;
  }

  /** An effect may still be running elsewhere: the message waits until that must be over. */
  async function release(delivery: Delivery, claim: Claim, error: EffectInProgress): Promise<Outcome> {
    const afterMs = outcomes.untilMs(error.until);
    const refusal = await settle(claim, () => inbox.release(claim, clock.now() + afterMs));
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    telemetry.count('MessagesLeased');
    return again(afterMs, error);
  }

  /**
   * Writes how a claim ended; again and again while the table cannot be reached and there is time. What is never written looks
   * like a function that died.
   */
  async function settle<T>(claim: Claim, write: () => Promise<T>): Promise<T> {
    const lastTryAt = Math.min(clock.now() + SETTLE_MAX_MS, claim.endsBy - 2 * RESPONSE_MARGIN_MS);
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await write();
      } catch (error) {
        const pauseMs = backoffMs(attempt, 200, 2_000, deps.random);
        if (!isOutage(error) || clock.now() + pauseMs > lastTryAt) throw error;
        await clock.sleep(pauseMs);
      }
    }
  }

  async function complete(
    delivery: Delivery,
    claim: Claim,
    effects: Effects,
    result: unknown,
    wholeRun = true,
  ): Promise<Outcome> {
    const refusal = await settle(claim, () => inbox.complete(claim, result));
    if (refusal !== undefined) return outcomes.fenceRefused(delivery, refusal);
    return processed(delivery, claim, effects, wholeRun);
  }

  async function reject(delivery: Delivery, claim: Claim, error: unknown): Promise<Outcome> {
    const refusal = await settle(claim, () => inbox.reject(claim, error));
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

/** Today's version of the event, read under the claim: a schema that kills its process leaves a claim without a result. */
async function readClaimed(
  handler: LeasedHandler,
  envelope: Envelope,
): Promise<Envelope | { readonly problem: unknown }> {
  try {
    return await readEvent(handler.definition, envelope);
  } catch (problem) {
    return { problem };
  }
}

/** Whether there may be a hint that it failed. */
function failedBefore(claim: Claim): boolean {
  return claim.attempt > 1 || claim.lastError !== undefined;
}
