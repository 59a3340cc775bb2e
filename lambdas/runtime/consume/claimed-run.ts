import { receiptWarning } from '../base/bridge-receipt.ts';
import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { isMailroomError } from '../base/errors.ts';
import { isPoison } from '../base/poison.ts';
import type { HandledEvent } from '../events/external-event.ts';
import type { InboxRefusal } from '../inbox/inbox.ts';
import { ALONE_FROM } from '../inbox/inbox-conditions.ts';
import type { EffectStates } from '../inbox/past-attempts.ts';
import { OUTCOME } from '../observe/message-spans.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { backoffMs } from '../store/retry.ts';
import { type ClaimedMessage, claimedOf, type Received } from './consumer-context.ts';
import {
  reportEffectsInDoubt,
  reportEffectsOfRejected,
  reportEffectsOfSuperseded,
} from './effects-in-doubt.ts';
import { putFailedHint, removeFailedHint } from './failed-hints.ts';
import type { LeasedHandler } from './handler.ts';
import { type LeasedRun, outOfTime, RESPONSE_MARGIN_MS, runLeased } from './leased-run.ts';
import { readEvent } from './message.ts';
import {
  again,
  askedWait,
  attemptsSpent,
  fenceRefused,
  logFailure,
  type MessageOutcome,
  refused,
  reportFailed,
  reportOutage,
  reportProcessed,
  reportRejected,
  retryAfterMs,
  type SpanOutcome,
  spentBefore,
  untilMs,
} from './message-outcome.ts';
import { reportUnstableEffects } from './unstable-effects.ts';

/** After more claims than this, a message needs attention before its attempts are exhausted. */
const ATTEMPTS_UNNOTICED = 3;

/** The maximum time spent retrying the write that ends a claim, because the other messages of the batch wait for the response. */
const RECORD_MAX_MS = 20_000;

/**
 * Claims a message, runs its handler under the claim, and records the outcome in the inbox row.
 *
 * @param alone - true if no other message runs in this invocation
 * @param unclaimedRuns - the number of its runs that were, or would have been, without a claim, and are not counted @default 0
 * @throws the table's error: the row then holds the outcome of the last successful write
 */
export async function claimAndRun(
  received: Received,
  handler: LeasedHandler,
  envelope: HandledEvent,
  alone: boolean,
  unclaimedRuns = 0,
): Promise<MessageOutcome> {
  const { config, telemetry, inbox, delivery } = received;
  const { message, endsBy, receives } = delivery;
  const firstReceive = receives <= 1 + unclaimedRuns;
  const result = await inbox.claim(message, { alone, endsBy, firstReceive });
  if (result.status !== 'claimed') return refused(received, result);
  const { claim } = result;
  const claimed = claimedOf(received, claim);
  if (claim.takenOver) telemetry.count('LeasesExpired');
  if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
  if (claim.attempt > config.maxAttempts) {
    // The last attempt ended without a result, as recorded in the row.
    return reject(claimed, spentBefore(config.maxAttempts, claim.lastError));
  }
  reportEffectsInDoubt(claimed);
  const event = await readClaimed(handler, envelope);
  if ('problem' in event) return reject(claimed, event.problem);
  return recordRun(claimed, await runLeased(claimed, handler, event));
}

/**
 * Ends an ordered message that a later event has superseded: PROCESSED, without a run of its handler.
 *
 * @throws the table's error: the row then holds the outcome of the last successful write
 */
export async function supersede(received: Received, by: number): Promise<MessageOutcome> {
  const { inbox, telemetry, span, delivery } = received;
  // No handler runs, so a message that may have killed its process need not be alone.
  const options = { alone: true, endsBy: delivery.endsBy, firstReceive: false };
  const result = await inbox.claim(delivery.message, options);
  if (result.status !== 'claimed') return refused(received, result);
  const claimed = claimedOf(received, result.claim);
  if (result.claim.takenOver) telemetry.count('LeasesExpired');
  // Before the write: a function that dies after it reports nothing, and nothing looks at the message again.
  reportEffectsOfSuperseded(claimed);
  const lost = await writeEnd(claimed, () => inbox.supersede(result.claim, by));
  if (lost !== undefined) return lost;
  telemetry.count('MessagesSuperseded');
  span.set(OUTCOME, 'superseded' satisfies SpanOutcome);
  await removeHint(claimed);
  return { kind: 'done' };
}

/** Reads the current version of the event under the claim, so that a schema that kills the process leaves a claim without a result. */
async function readClaimed(
  handler: LeasedHandler,
  envelope: HandledEvent,
): Promise<HandledEvent | { readonly problem: unknown }> {
  try {
    return await readEvent(handler.definition, envelope);
  } catch (problem) {
    return { problem };
  }
}

function recordRun(claimed: ClaimedMessage, run: LeasedRun): Promise<MessageOutcome> {
  switch (run.kind) {
    case 'committed':
      return processed(claimed);
    case 'returned':
      return complete(claimed, run.result);
    case 'blocked':
      return release(claimed, run.error.until, run.error);
    case 'outage':
      return interrupted(claimed, run.error);
    case 'cut-off':
      return cutOff(claimed, run.error);
    case 'out-of-time':
      return leftRunning(claimed, run.lostTimeToTable);
    case 'threw':
      return threw(claimed, run.error);
  }
}

async function threw(claimed: ClaimedMessage, error: unknown): Promise<MessageOutcome> {
  const { config, inbox, claim } = claimed;
  if (isMailroomError(error, 'ALREADY_PROCESSED')) return complete(claimed, undefined, false);
  if (isPoison(error)) return reject(claimed, error);
  const isLater = isMailroomError(error, 'RETRY_LATER');
  const cause = isLater ? (error.cause ?? error) : error;
  const asked = isLater ? askedWait(claimed, error) : undefined;
  if (asked !== undefined) return waitAsAsked(claimed, cause, asked);
  if (claim.attempt >= config.maxAttempts) return reject(claimed, attemptsSpent(claim.attempt, cause));
  const afterMs = retryAfterMs(claimed, claim.attempt, error);
  const write = (retryAt: number) => inbox.fail(claim, cause, retryAt, effectsRun(claimed));
  return setFailed(claimed, afterMs, write, () => reportFailed(claimed, afterMs, cause));
}

/**
 * A provider's rate limit says nothing about the message, so a wait that the handler asks for counts no attempt. It is bounded by time, and
 * by the receives of the queue.
 */
function waitAsAsked(
  claimed: ClaimedMessage,
  cause: unknown,
  { afterMs, wait }: NonNullable<ReturnType<typeof askedWait>>,
): Promise<MessageOutcome> {
  const { inbox, claim } = claimed;
  const write = (retryAt: number) => inbox.release(claim, retryAt, effectsRun(claimed), cause, wait);
  return setFailed(claimed, afterMs, write, () => reportFailed(claimed, afterMs, cause, true));
}

/** The run ended because the time was up: retried like any failure, but counted as an attempt only if it ran alone. */
async function cutOff(claimed: ClaimedMessage, error: unknown): Promise<MessageOutcome> {
  const { config, inbox, claim } = claimed;
  if (claim.unfinished >= ALONE_FROM && claim.attempt >= config.maxAttempts)
    return reject(claimed, attemptsSpent(claim.attempt, error));
  const afterMs = unfinishedAfterMs(claimed);
  const write = (retryAt: number) => inbox.cutOff(claim, error, retryAt, effectsRun(claimed));
  return setFailed(claimed, afterMs, write, () => reportFailed(claimed, afterMs, error));
}

/** The table was unreachable while the handler ran. If this cannot be recorded either, the next claim takes over. */
async function interrupted(claimed: ClaimedMessage, error: unknown): Promise<MessageOutcome> {
  const { inbox, claim } = claimed;
  const outcome = reportOutage(claimed, error);
  const write = (retryAt: number) => inbox.release(claim, retryAt, effectsRun(claimed), error);
  return setFailed(claimed, outcome.afterMs, write, () => outcome);
}

/** Sets the message FAILED and writes its hint. */
async function setFailed(
  claimed: ClaimedMessage,
  afterMs: number,
  write: (retryAt: number) => Promise<InboxRefusal | undefined>,
  outcome: () => MessageOutcome,
): Promise<MessageOutcome> {
  const { clock, claim } = claimed;
  const retryAt = clock.now() + afterMs;
  const lost = await writeEnd(claimed, () => write(retryAt));
  if (lost !== undefined) return lost;
  await putFailedHint(claimed, claim.message.eventId, retryAt, claim.endsBy);
  return outcome();
}

/** An effect may still be running elsewhere, until it must have ended; or another event of the aggregate was applied. The message waits. */
async function release(claimed: ClaimedMessage, until: number, error: unknown): Promise<MessageOutcome> {
  const { inbox, clock, claim } = claimed;
  const afterMs = untilMs(claimed, until);
  const lost = await writeEnd(claimed, () =>
    inbox.release(claim, clock.now() + afterMs, effectsRun(claimed)),
  );
  if (lost !== undefined) return lost;
  claimed.telemetry.count('MessagesLeased');
  return again(afterMs, error);
}

/** The handler is still running: its lease stays, and no worker retries until the function has certainly stopped. */
async function leftRunning(claimed: ClaimedMessage, lostTimeToTable: boolean): Promise<MessageOutcome> {
  const { claim } = claimed;
  const error = outOfTime();
  const stoppedMs = untilMs(claimed, claim.endsBy + CLOCK_SKEW_MS);
  if (lostTimeToTable) return again(Math.max(stoppedMs, reportOutage(claimed, error).afterMs), error);
  logFailure(claimed, 'A handler ran out of time', error);
  return again(Math.max(stoppedMs, unfinishedAfterMs(claimed)), error);
}

/** Uncounted attempts follow the same schedule; otherwise a hanging provider would use up the receives in minutes. */
function unfinishedAfterMs(claimed: ClaimedMessage): number {
  const { attempt, unfinished } = claimed.claim;
  return retryAfterMs(claimed, attempt + Math.min(unfinished, ALONE_FROM));
}

async function complete(claimed: ClaimedMessage, result: unknown, wholeRun = true): Promise<MessageOutcome> {
  const { inbox, claim } = claimed;
  try {
    const lost = await writeEnd(claimed, () => inbox.complete(claim, result));
    const warning = receiptWarning(result);
    if (warning !== undefined) claimed.telemetry.log.warn(warning);
    return lost ?? (await processed(claimed, wholeRun));
  } catch (error) {
    if (error instanceof Overtaken) return release(claimed, error.until, error);
    throw error;
  }
}

/** @param wholeRun - true if the handler ran to its end */
async function processed(claimed: ClaimedMessage, wholeRun = true): Promise<MessageOutcome> {
  if (wholeRun) reportUnstableEffects(claimed);
  const outcome = reportProcessed(claimed);
  await removeHint(claimed);
  return outcome;
}

async function reject(claimed: ClaimedMessage, error: unknown): Promise<MessageOutcome> {
  const { inbox, claim } = claimed;
  const lost = await writeEnd(claimed, () => inbox.reject(claim, error, effectsRun(claimed)));
  if (lost !== undefined) return lost;
  reportEffectsOfRejected(claimed);
  await removeHint(claimed);
  return reportRejected(claimed, error);
}

function effectsRun({ effects }: ClaimedMessage): EffectStates {
  return Object.fromEntries(effects.ended);
}

/** Removes the FAILED hint, if there may be one: each failure leaves its error, also one that counts no attempt. */
async function removeHint(claimed: ClaimedMessage): Promise<void> {
  const { claim } = claimed;
  if (claim.lastError !== undefined) await removeFailedHint(claimed, claim.message.eventId, claim.endsBy);
}

/**
 * Records the end of a claim.
 *
 * @returns the message's outcome, if this worker has lost the message
 */
async function writeEnd(
  claimed: ClaimedMessage,
  write: () => Promise<InboxRefusal | undefined>,
): Promise<MessageOutcome | undefined> {
  const refusal = await whileReachable(claimed, write);
  return refusal && fenceRefused(claimed, refusal);
}

/** Retries a write while the table is unreachable and time remains. If the write never succeeds, the function appears to have died. */
async function whileReachable<T>(
  { clock, random, inbox, claim }: ClaimedMessage,
  write: () => Promise<T>,
): Promise<T> {
  const lastTryAt = Math.min(clock.now() + RECORD_MAX_MS, claim.endsBy - 2 * RESPONSE_MARGIN_MS);
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await write();
    } catch (error) {
      const pauseMs = backoffMs(attempt, 200, 2_000, random);
      if (!inbox.isOutage(error) || clock.now() + pauseMs > lastTryAt) throw error;
      await clock.sleep(pauseMs);
    }
  }
}
