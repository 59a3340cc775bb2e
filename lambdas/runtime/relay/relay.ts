import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { batchEntries } from '../bus/entry-batches.ts';
import { markPublished } from '../outbox/outbox-transitions.ts';
import type { PendingRow } from '../outbox/pending-row.ts';
import { UPDATE_EACH_MAX } from '../store/table.ts';
import type { BusBreaker } from './bus-breaker.ts';
import { type PublishOutcome, publishBatch, withOutcome } from './publish-batch.ts';
import type { RelayContext } from './relay-context.ts';

/** The number of rows processed together: they are claimed, and published before their lease can end. */
export const GROUP_ROWS = 100;

/**
 * Publishes rows that this relay holds, and marks them.
 *
 * @param breaker - tracks the sources that the bus refuses in this pass
 * @param mayPublish - called for each row immediately before each call: true if the row may still be published under its lease
 * @returns one outcome per row
 */
export async function publishEvents<R extends PendingRow>(
  context: RelayContext,
  rows: readonly R[],
  breaker: BusBreaker,
  mayPublish: (row: R) => boolean = () => true,
): Promise<PublishOutcome<R>[]> {
  const { config, clock, publishes } = context;
  const outlastsPublish = (row: R) => row.leaseUntil - clock.now() > config.publishTimeoutMs + CLOCK_SKEW_MS;
  const ours = (row: R) => mayPublish(row) && outlastsPublish(row);
  const waiting: R[] = []; // published, and marked in batches of 25
  const unmarked = new Set<R>();
  const mark = async (some: readonly R[]) => {
    for (const row of await markPublished(context, some)) unmarked.add(row);
  };
  const outcomes = await Promise.all(
    batchEntries(rows).map(async (batch) => {
      const ofBatch = await publishes(() => publishBatch(context, batch, breaker, ours));
      waiting.push(...withOutcome(ofBatch, 'published'));
      while (waiting.length >= UPDATE_EACH_MAX) await mark(waiting.splice(0, UPDATE_EACH_MAX));
      return ofBatch;
    }),
  );
  await mark(waiting);
  return outcomes
    .flat()
    .map((outcome) => (unmarked.has(outcome.row) ? { ...outcome, is: 'unmarked' } : outcome));
}
