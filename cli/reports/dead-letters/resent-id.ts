import { createHash } from 'node:crypto';
import { eventIdTime, mintEventId } from '../../../lambdas/runtime/store/event-id.ts';

/** The number of shards that an event id can name. */
const SHARDS_MAX = 256;

/**
 * Computes the id of the event that replaces another one at a consumer. The same replacement always has the same id, so repeating a
 * resend sends a duplicate that the inbox absorbs. It has the time of the event that it replaces: when its inbox row may have
 * expired, the inbox refuses it as too old.
 *
 * @param data - its data, parsed; the order of members does not count
 *
 * @example
 * ```ts
 * resentEventId('payments', '01a1fe32-7358-7e75-8b69-4ee374467501', { amountCents: 100 });
 * ```
 */
export function resentEventId(consumer: string, eventId: string, data: unknown): string {
  const digest = createHash('sha256')
    .update(JSON.stringify(['resend', consumer, eventId, sorted(data)]))
    .digest();
  return mintEventId(eventIdTime(eventId), SHARDS_MAX, () => digest.subarray(0, 16));
}

/** Objects as sorted lists of their members. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).map(([name, inner]) => [name, sorted(inner)] as const);
  return { members: members.sort(([a], [b]) => (a < b ? -1 : 1)) };
}
