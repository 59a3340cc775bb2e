import type { HandledEvent } from '../events/external-event.ts';
import { OUTCOME } from '../observe/message-spans.ts';
import { Overtaken } from '../store/last-sequence.ts';
import { backoffMs } from '../store/retry.ts';
import { type ClaimedMessage, claimedOf, type Received } from './consumer-context.ts';
import { reportEffectsInDoubt, reportEffectsOfSuperseded } from './effects-in-doubt.ts';
import { putFailedHint, removeFailedHint } from './failed-hints.ts';
import type { LeasedHandler } from './handler.ts';
import { type LeasedRun, RESPONSE_MARGIN_MS, runLeased } from './leased-run.ts';
import { readEvent } from './message.ts';
import {
  fenceRefused,
  type MessageOutcome,
  refused,
  type SpanOutcome,
  spentBefore,
} from './message-outcome.ts';
import { type Ending, endingOf } from './run-ending.ts';

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
  const { telemetry, inbox, delivery } = received;
  const { message, endsBy, receives } = delivery;
  const firstReceive = receives <= 1 + unclaimedRuns;
  const result = await inbox.claim(message, { alone, endsBy, firstReceive });
  if (result.status !== 'claimed') return refused(received, result);
  const { claim } = result;
  const claimed = claimedOf(received, claim);
  if (claim.takenOver) telemetry.count('LeasesExpired');
  if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
  return record(claimed, endingOf(claimed, await runOf(claimed, handler, envelope)));
}

async function runOf(
  claimed: ClaimedMessage,
  handler: LeasedHandler,
  envelope: HandledEvent,
): Promise<LeasedRun> {
  const { config, claim } = claimed;
  // The last attempt ended without a result, as recorded in the row.
  if (claim.attempt > config.maxAttempts)
    return { kind: 'not-started', error: spentBefore(config.maxAttempts, claim.lastError) };
  reportEffectsInDoubt(claimed);
  let event: HandledEvent;
  try {
    // Under the claim, so that a schema that kills the process leaves a claim without a result.
    event = await readEvent(handler.definition, envelope);
  } catch (error) {
    return { kind: 'not-started', error };
  }
  return runLeased(claimed, handler, event);
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
  return record(claimed, {
    write: () => inbox.supersede(result.claim, by),
    report: () => {
      telemetry.count('MessagesSuperseded');
      span.set(OUTCOME, 'superseded' satisfies SpanOutcome);
      return { kind: 'done' };
    },
    failedUntil: 'never',
  });
}

/** Records the end of a claim. Hints come last: nothing depends on them. */
async function record(
  claimed: ClaimedMessage,
  { write, report, failedUntil }: Ending,
): Promise<MessageOutcome> {
  const { claim } = claimed;
  const { endsBy, message } = claim;
  try {
    const refusal = write && (await whileReachable(claimed, write));
    if (refusal !== undefined) return await fenceRefused(claimed, refusal);
  } catch (error) {
    if (!(error instanceof Overtaken)) throw error;
    return record(claimed, endingOf(claimed, { kind: 'blocked', error }));
  }
  const outcome = report();
  if (typeof failedUntil === 'number') await putFailedHint(claimed, message.eventId, failedUntil, endsBy);
  // There may be a hint only if there was a failure: each leaves its error, also one that counts no attempt.
  else if (failedUntil === 'never' && claim.lastError !== undefined)
    await removeFailedHint(claimed, message.eventId, endsBy);
  return outcome;
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
