import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import { pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';

/** The age of the oldest event, including those whose row cannot be read. */
export function oldestMs(
  rows: readonly StoredEventRow[],
  now: number,
  since: (row: StoredEventRow) => number | undefined,
): number {
  const times = rows.flatMap((row) => since(row) ?? []);
  return times.reduce((age, time) => Math.max(age, now - time), 0);
}

/** The time since which a row has been PENDING: a requeued event waits from then on. */
export function waitingSince(row: StoredEventRow): number | undefined {
  const since = committedSince(row);
  return since === undefined ? undefined : Math.max(since, row.requeuedAt ?? 0);
}

/** The time at which a row was written, epoch milliseconds. */
export function committedSince({ PK, SK }: StoredEventRow): number | undefined {
  return pendingSince({ PK, SK });
}
