import { STUCK_MS } from '../../../lambdas/runtime/base/patience.ts';
import { HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { OutboxReaderDeps } from '../../deployment/published-events.ts';
import { isNotDue, minutesOf, type PartialList, readMinutes } from '../../deployment/rows-reader.ts';
import { waitingSince } from '../events/pending-events.ts';

/** The scheduled events of a status. */
export interface ScheduledStatus {
  /** The period from now on that was read, milliseconds. */
  readonly withinMs: number;
  /** The events that are due in it. */
  readonly due: number;
  /** When the first of them is due, epoch milliseconds; `null` if none is. */
  readonly nextDueAt: number | null;
  /** The events that were due more than 5 minutes ago, or requeued since, and are not published. `pending` includes them. */
  readonly overdue: number;
}

/** The period that a status counts. */
const WITHIN_MS = HOUR_MS;

/** A status that is shown continuously reads them again after this time, milliseconds. */
export const DUE_TIMES_KEPT_MS = 10 * MINUTE_MS;

/** The rows read of each shard of a minute: 6 in a second with 8 shards. */
const ROWS_MAX = 50;

/**
 * Reads the times at which scheduled events are due, from now until an hour after the result expires. No index has them, so it reads minute by minute.
 *
 * @param keptMs - milliseconds
 */
export async function readDueTimes(
  { stored, shards }: OutboxReaderDeps,
  now: number,
  keptMs: number,
): Promise<PartialList<number>> {
  const minutes = minutesOf(now, now + WITHIN_MS + keptMs);
  const lists = await readMinutes(
    stored.outbox,
    { minutes, shards },
    { status: 'PENDING', max: ROWS_MAX },
    (row) => (isNotDue(row, now) ? (row.dueAt ?? []) : []),
  );
  return {
    items: lists.flatMap(({ items }) => items.flat()),
    more: lists.some(({ more }) => more),
  };
}

/** @param dueTimes - as read up to ten minutes ago @param pending - the PENDING events that are due */
export function scheduledStatus(
  dueTimes: readonly number[],
  pending: readonly StoredEventRow[],
  now: number,
): ScheduledStatus {
  const due = dueTimes.filter((at) => at > now && at <= now + WITHIN_MS);
  const isOverdue = (item: StoredEventRow) =>
    item.dueAt !== undefined && now - (waitingSince(item) ?? now) > STUCK_MS;
  return {
    withinMs: WITHIN_MS,
    due: due.length,
    nextDueAt: due.length === 0 ? null : due.reduce((first, at) => Math.min(first, at)),
    overdue: pending.filter(isOverdue).length,
  };
}
