import { CLOCK_SKEW_MS } from '../clock.ts';
import { AT_ONCE_TIMEOUT_MAX_MS } from '../config.ts';
import type { OutboxContext } from '../store/outbox-transitions.ts';
import type { PendingRow } from '../store/pending-row.ts';

/** The pause before the first further look at a row; each pause is twice as long as the one before it, milliseconds. */
const LOOK_AGAIN_MS = 50;

/**
 * Waits until no producer publishes any of the rows: it was marked, or its producer's turn has ended by every clock. A row without
 * `producerUntil` is not waited for.
 *
 * It reads instead of claiming: a claim would succeed while the producer is about to publish, and both would. The reads are
 * eventually consistent, because PUBLISHED is final, and a row that only looks PENDING is refused to the claim that follows.
 *
 * @returns the rows to claim: those that were not marked
 */
export async function afterProducers<R extends PendingRow>(
  context: OutboxContext,
  rows: readonly R[],
): Promise<R[]> {
  const { clock } = context;
  const arrivedAt = clock.now();
  // A producer whose clock is far ahead must not hold up the stream: no turn is longer than the longest one.
  const turnEndsAt = ({ producerUntil = 0 }: R) =>
    Math.min(producerUntil, arrivedAt + AT_ONCE_TIMEOUT_MAX_MS) + CLOCK_SKEW_MS;
  const unpublished = rows.filter(({ producerUntil }) => producerUntil === undefined);
  let waiting = rows.filter(({ producerUntil }) => producerUntil !== undefined);
  for (let pauseMs = LOOK_AGAIN_MS; waiting.length > 0; pauseMs *= 2) {
    const pending = await stillPending(context, waiting);
    const now = clock.now();
    unpublished.push(...pending.filter((row) => turnEndsAt(row) < now));
    waiting = pending.filter((row) => turnEndsAt(row) >= now);
    const longestMs = Math.max(...waiting.map(turnEndsAt)) + 1 - now;
    if (waiting.length > 0) await clock.sleep(Math.min(pauseMs, longestMs));
  }
  return unpublished;
}

/** Leaves out the rows that are known not to be PENDING. A row that cannot be read, or is not there yet, counts as PENDING. */
async function stillPending<R extends PendingRow>(
  { table, writes }: OutboxContext,
  rows: readonly R[],
): Promise<R[]> {
  const items = await Promise.all(rows.map(({ key }) => writes(() => table.get(key).catch(() => undefined))));
  return rows.filter((_, index) => (items[index]?.status ?? 'PENDING') === 'PENDING');
}
