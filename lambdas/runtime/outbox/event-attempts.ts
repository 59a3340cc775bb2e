import type { RelayConfig } from '../base/config.ts';
import type { MailroomError } from '../base/errors.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { backoffMs } from '../store/backoff.ts';
import type { RandomBytes } from '../store/event-id.ts';
import { causeOf, type EventTransition } from './outbox-transitions.ts';
import { leaseOf, type PendingRow } from './pending-row.ts';
import { logFailure } from './publish-records.ts';

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/** Dependencies of {@link failed}. */
interface FailureContext {
  readonly config: Pick<RelayConfig, 'maxAttempts'>;
  readonly now: number;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/**
 * The event's own publish failed: one more attempt and a backoff, or DEAD if the event itself was refused or its attempts are exhausted.
 * Counts and logs the failure. Only under the claim that its relay holds, so that it does not interfere with the next holder.
 */
export function failed(
  { config, now, random, telemetry }: FailureContext,
  row: Pick<PendingRow, 'eventId' | 'attempts' | 'dueAt'>,
  error: MailroomError,
  refused: boolean,
): EventTransition {
  const attempts = row.attempts + 1;
  const isDead = refused || attempts >= config.maxAttempts;
  telemetry.count('EventsRefused', refused ? 1 : 0);
  logFailure({ telemetry }, isDead ? 'An event is DEAD' : 'An event could not be published', [row], error);
  const end = isDead
    ? { status: 'DEAD' as const, deadAt: now }
    : { leaseUntil: leaseOf(row, now + backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random)) };
  return { from: ['PENDING'], only: 'held', set: { ...causeOf(error), attempts, ...end } };
}
