import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { isNotDue } from '../../deployment/rows-reader.ts';
import { clipped, many } from '../../terminal/output.ts';
import { time } from '../../terminal/times.ts';
import { inTime, type StateText, type WhyVerdict } from './event-state.ts';
import type { TracedEvent } from './trace.ts';

/** True for an event that its producer cancelled. */
export function isCancelled({ row }: Pick<TracedEvent, 'row'>): boolean {
  return readable(row)?.status === 'CANCELLED';
}

/**
 * The verdict on a scheduled event that is cancelled, or not due; `undefined` for any other.
 *
 * @param name - its type and id
 */
export function scheduledVerdict(
  name: string,
  row: StoredEventRow & OutboxRow,
  now: number,
): StateText | undefined {
  const { dueAt, scheduledAt, cancelledAt, cancelledBy, source } = row;
  const by = `scheduled by ${clipped(source)}${scheduledAt === undefined ? '' : ` at ${time(scheduledAt)}`}`;
  if (row.status === 'CANCELLED') {
    const at = cancelledAt === undefined ? '' : ` at ${time(cancelledAt)}`;
    const due = dueAt === undefined ? '' : `, due ${time(dueAt)}`;
    const text = `${name} was cancelled by ${clipped(cancelledBy ?? source)}${at} and is never published. It was ${by}${due}.`;
    return { state: 'cancelled', text, next: null };
  }
  if (row.status !== 'PENDING' || dueAt === undefined || !isNotDue({ ...row }, now)) return undefined;
  const text = `${name} is due ${inTime(dueAt, now)}: it was ${by}. ${row.store !== undefined ? 'A relay of the database publishes it then' : 'The sweep publishes it within minutes of that time'}.`;
  return { state: 'scheduled', text, next: null };
}

/** The rest of a chain whose worst verdict is that of a scheduled event, as sentences. @param events - their number, without cancelled ones */
export function besideScheduled(events: number, others: readonly Pick<WhyVerdict, 'state'>[]): string {
  const later = others.filter(({ state }) => state === 'scheduled').length;
  if (later > 0)
    return ` ${many(later, 'more event')} of this chain ${later === 1 ? 'is' : 'are'} scheduled: --story shows all.`;
  return events > 1 ? ' Nothing else in this chain waits.' : '';
}
