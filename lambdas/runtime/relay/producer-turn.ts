import { CLOCK_SKEW_MS, withDeadline } from '../base/clock.ts';
import { AT_ONCE_TIMEOUT_MAX_MS } from '../base/config.ts';
import { asMailroomError } from '../base/errors.ts';
import type { PendingRow } from '../outbox/pending-row.ts';
import type { OutboxContext } from '../store/dynamo/outbox-writes.ts';

/** The pause before the first further look at a row; each pause is twice as long as the one before it, milliseconds. */
const LOOK_AGAIN_MS = 50;

/** The time for the first reads of a batch, also of records that come after their producers' turns, milliseconds. */
const READ_MIN_MS = 1_000;

/** A record's time is truncated to the second. */
const RECORDED_WITHIN_MS = 1_000;

/** A row whose producer may be publishing it, with the time at which DynamoDB wrote it, epoch milliseconds. */
type RecordedRow = PendingRow & { readonly recordedAt: number };

/**
 * Waits until no producer publishes any of the rows: it was marked, or its producer's turn has ended by every clock. Whatever
 * `producerUntil` says, a turn ends {@link AT_ONCE_TIMEOUT_MAX_MS} after the row was written: no row may hold up the stream.
 *
 * It reads instead of claiming: a claim would succeed while the producer is about to publish, and both would. The reads are
 * eventually consistent, because PUBLISHED is final, and a row that only looks PENDING is refused to the claim that follows. A
 * read that fails, or does not end in time, counts as PENDING too.
 *
 * @returns the rows to claim: those that were not marked
 */
export async function afterProducers<R extends RecordedRow>(
  context: OutboxContext,
  rows: readonly R[],
): Promise<R[]> {
  const { clock } = context;
  const firstReadsEndAt = clock.now() + READ_MIN_MS;
  const unpublished: R[] = [];
  let waiting = rows;
  for (let pauseMs = LOOK_AGAIN_MS; waiting.length > 0; pauseMs *= 2) {
    const pending = await stillPending(context, waiting, firstReadsEndAt);
    const now = clock.now();
    unpublished.push(...pending.filter((row) => turnEndsAt(row) < now));
    waiting = pending.filter((row) => turnEndsAt(row) >= now);
    const longestMs = Math.max(...waiting.map(turnEndsAt)) + 1 - now;
    if (waiting.length > 0) await clock.sleep(Math.min(pauseMs, longestMs));
  }
  return unpublished;
}

/** Reports the rows that the relay has claimed although their producers publish at once: their turns ended without a mark. */
export function reportMissedTurns({ telemetry }: OutboxContext, claimed: readonly PendingRow[]): void {
  const missed = claimed.filter(({ producerUntil }) => producerUntil !== undefined);
  if (missed.length === 0) return;
  telemetry.count('BusFailures', missed.length);
  telemetry.log.warn('Producers that publish at once did not publish; the relay does', {
    events: missed.length,
    eventId: missed[0]?.eventId,
  });
}

/** When no producer can be publishing the row any more, by any clock, epoch milliseconds. */
function turnEndsAt({ producerUntil = 0, recordedAt }: RecordedRow): number {
  return Math.min(producerUntil, recordedAt + RECORDED_WITHIN_MS + AT_ONCE_TIMEOUT_MAX_MS) + CLOCK_SKEW_MS;
}

/** Leaves out the rows that are known not to be PENDING. A row that cannot be read, or is not there yet, counts as PENDING. */
async function stillPending<R extends RecordedRow>(
  { table, writes, clock, telemetry }: OutboxContext,
  rows: readonly R[],
  firstReadsEndAt: number,
): Promise<R[]> {
  let failure: { readonly error: unknown } | undefined;
  const read = async (row: R) => {
    const got = table.get(row.key).catch((error: unknown) => {
      failure = { error };
      return undefined;
    });
    return withDeadline(
      clock,
      Math.max(turnEndsAt(row), firstReadsEndAt) - clock.now(),
      got,
      () => undefined,
    );
  };
  const items = await Promise.all(rows.map((row) => writes(() => read(row))));
  if (failure !== undefined) {
    telemetry.log.warn(
      'Rows of producers that publish at once could not be read; they count as unpublished',
      {
        error: asMailroomError(failure.error),
      },
    );
  }
  return rows.filter((_, index) => (items[index]?.status ?? 'PENDING') === 'PENDING');
}
