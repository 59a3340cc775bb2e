import { isMailroomError, type MailroomError } from '../base/errors.ts';
import { eventIdShard } from '../store/event-id.ts';
import { deadKey } from '../store/keys.ts';
import { backoffMs, transactWithRetry } from '../store/retry.ts';
import { type DeadPointer, SCHEMA } from '../store/rows.ts';
import { updateAction } from '../store/table-requests.ts';
import { causeOf, held, logFailure, type OutboxContext, updateRows } from './outbox-transitions.ts';
import type { PendingRow } from './pending-row.ts';

/** Backoff of a row whose own publish failed: from 5 s to 15 min. */
const RETRY_BASE_MS = 5_000;
const RETRY_CAP_MS = 900_000;

/**
 * Records the event's own failure: one more attempt and a backoff, or DEAD if the event itself was refused or its attempts are
 * exhausted. Conditional on the lease that this relay holds, so that it does not interfere with the next holder.
 */
export async function failEvent(
  context: OutboxContext,
  row: PendingRow,
  error: MailroomError,
  refused: boolean,
): Promise<void> {
  const { clock, config, random, telemetry } = context;
  const attempts = row.attempts + 1;
  const dead = refused || attempts >= config.maxAttempts;
  const now = clock.now();
  telemetry.count('EventsRefused', refused ? 1 : 0);
  logFailure(context, dead ? 'An event is DEAD' : 'An event could not be published', [row], error);
  const cause = causeOf(error);
  if (!dead) {
    const leaseUntil = now + backoffMs(attempts, RETRY_BASE_MS, RETRY_CAP_MS, random);
    await updateRows(context, [row], () => ({ set: { ...cause, attempts, leaseUntil }, when: held(row) }));
    return;
  }
  const pointer: DeadPointer = {
    ...deadKey(eventIdShard(row.eventId), row.eventId),
    schema: SCHEMA,
    deadAt: now,
    type: row.entry.detailType,
    ...cause,
  };
  try {
    await transactWithRetry(context, [
      updateAction({
        key: row.key,
        set: { ...cause, status: 'DEAD', attempts, deadAt: now },
        when: held(row),
      }),
      { Put: { Item: { ...pointer } } },
    ]);
    telemetry.count('EventsDead');
  } catch (writeError) {
    // Still PENDING under a lease that ends: the sweep reads it again.
    if (!isMailroomError(writeError, 'TRANSACTION_CANCELLED'))
      logFailure(context, 'The failure of an event could not be recorded', [row], writeError);
  }
}
