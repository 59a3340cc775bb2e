import type { HandledEvent } from '../events/external-event.ts';
import { hasReference } from '../events/payloads.ts';
import type { Claim } from '../inbox/inbox.ts';
import { effectStates } from '../inbox/started-effects.ts';
import { withLogFields } from '../observe/telemetry-wrappers.ts';
import { reportEffectsAtEnd, reportEffectsInDoubt } from './claimed-effects.ts';
import type { ClaimedMessage, Received } from './consumer-context.ts';
import { isStale } from './expiry.ts';
import type { LeasedHandler, TransactionalHandler } from './handler.ts';
import { type LeasedRun, runLeased } from './leased-run.ts';
import { loadPayload } from './load-payload.ts';
import { type ClaimEnd, endingOf, record, spentBefore } from './run-ending.ts';
import { asLeased } from './transactional-run.ts';

/** After more claims than this, a message needs attention before its attempts are exhausted. */
const ATTEMPTS_UNNOTICED = 3;

/**
 * Claims a message, runs its handler under the claim, and records the outcome in the inbox row.
 *
 * @param alone - true if no other message runs in this invocation
 * @param unclaimedRuns - the number of its runs that were, or would have been, without a claim, and are not counted @default 0
 * @throws the table's error: the row then holds the outcome of the last successful write
 */
export async function claimAndRun(
  received: Received,
  handler: LeasedHandler | TransactionalHandler,
  envelope: HandledEvent,
  alone: boolean,
  unclaimedRuns = 0,
): Promise<ClaimEnd> {
  const { inbox, delivery } = received;
  const { message, endsBy, receives } = delivery;
  const firstReceive = receives <= 1 + unclaimedRuns;
  const result = await inbox.claim(message, { alone, endsBy, firstReceive });
  if (result.status !== 'claimed') return result;
  const claimed = claimedOf(received, result.claim);
  const { config, claim, telemetry } = claimed;
  if (isStale(claimed, handler)) return record(claimed, endingOf(claimed, { kind: 'stale' }));
  if (claim.attempt > ATTEMPTS_UNNOTICED) telemetry.count('AttemptsOverThree');
  // The last attempt ended without a result, as recorded in the row.
  const isSpent = claim.attempt > config.maxAttempts;
  if (!isSpent) reportEffectsInDoubt(claimed);
  const run: LeasedRun = isSpent
    ? { kind: 'not-started', error: spentBefore(config.maxAttempts, claim.lastError) }
    : await runLoaded(claimed, handler, envelope);
  const ending = endingOf(claimed, run);
  return record(claimed, ending);
}

/**
 * Runs the handler. The payload of a message that was received before, or that may have been stale, is loaded only here. S3 may be slow, and no renewal
 * has begun: the lease is renewed after it, or the message is another worker's.
 */
async function runLoaded(
  claimed: ClaimedMessage,
  handler: LeasedHandler | TransactionalHandler,
  event: HandledEvent,
): Promise<LeasedRun> {
  try {
    const loaded = await loadPayload(claimed, event);
    if ('problem' in loaded) return { kind: 'not-started', error: loaded.problem };
    if (hasReference(event)) await claimed.inbox.renew(claimed.claim);
    const { envelope } = loaded;
    const leased = handler.kind === 'leased' ? handler : asLeased(claimed, handler, envelope);
    return runLeased(claimed, leased, envelope);
  } catch (error) {
    return { kind: 'outage', error };
  }
}

/** A message whose handler has not started. */
function claimedOf(received: Received, claim: Claim): ClaimedMessage {
  if (claim.takenOver) received.telemetry.count('LeasesExpired');
  const effects = {
    before: effectStates(claim.effects, received.clock.now()),
    asked: new Set<string>(),
    succeeded: new Set<string>(),
    ended: new Map(),
    running: new Map(),
    runs: 0,
  };
  const added = { attempt: claim.attempt };
  const logFields = { ...received.logFields, ...added };
  return { ...received, logFields, telemetry: withLogFields(received.telemetry, added), claim, effects };
}

/**
 * Ends an ordered message that a later event has superseded: PROCESSED, without a run of its handler.
 *
 * @throws the table's error: the row then holds the outcome of the last successful write
 */
export async function supersede(received: Received, by: number): Promise<ClaimEnd> {
  const { inbox, delivery } = received;
  // No handler runs, so a message that may have killed its process need not be alone.
  const options = { alone: true, endsBy: delivery.endsBy, firstReceive: false };
  const result = await inbox.claim(delivery.message, options);
  if (result.status !== 'claimed') return result;
  const claimed = claimedOf(received, result.claim);
  // Before the write: a function that dies after it reports nothing, and nothing looks at the message again.
  reportEffectsAtEnd(claimed, 'superseded');
  const write = () => inbox.supersede(result.claim, by);
  return record(claimed, { write, end: { is: 'superseded' }, failedUntil: 'never' });
}
