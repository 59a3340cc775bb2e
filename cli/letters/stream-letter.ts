import type { SweepRange } from '../../lambdas/runtime/relay/sweep-range.ts';
import { type DeadItem, parse } from './letters.ts';

const MINUTE_MS = 60_000;

/** An event id may be this much older than its row: commit refuses an older one, and clocks differ. */
const ID_BEFORE_ROW_MS = 6 * MINUTE_MS;

/**
 * The minutes in which the events of a stream batch were minted. The letter of a mapping names the batch by the times of its
 * first and last record; the records themselves are in the outbox.
 *
 * @returns `undefined` when the letter names none
 */
export function rangeOf({ received }: Pick<DeadItem, 'received'>): SweepRange | undefined {
  const { DDBStreamBatchInfo: batch } = parse(received?.body ?? '') as {
    DDBStreamBatchInfo?: {
      approximateArrivalOfFirstRecord?: unknown;
      approximateArrivalOfLastRecord?: unknown;
    };
  };
  const first = Date.parse(String(batch?.approximateArrivalOfFirstRecord));
  const last = Date.parse(String(batch?.approximateArrivalOfLastRecord));
  if (!(first <= last)) return undefined; // also where one of them is no time
  return { since: first - ID_BEFORE_ROW_MS, until: last + MINUTE_MS };
}
