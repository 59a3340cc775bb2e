import { BANK_LIMIT } from '../lambdas/example/payments/charge-order.ts';
import { limitWaitOf } from '../lambdas/runtime/inbox/past-attempts.ts';
import type { InboxRow } from '../lambdas/runtime/store/inbox-row.ts';
import type { Readings } from './readings.ts';

/** The charges of a run beside the limit of the bank, and its messages in batches. */
export interface WorkCounts {
  /** The limit of the charges. */
  readonly bankLimit: {
    readonly perSecond: number;
    readonly burst: number;
    /** The most charges that may start in one second. */
    readonly allowedInASecond: number;
    /** The most charges that started in one second, by the rows of their messages. */
    readonly mostInASecond: number;
    /** Messages that returned to the queue until their slot. */
    readonly waited: number;
  };
  /** The reservations of stock, whose handler takes the events of an SQS batch. */
  readonly batches: {
    /** Messages processed in a transaction with others. */
    readonly messages: number;
    /** These transactions. */
    readonly transactions: number;
    /** The most messages of one. */
    readonly largest: number;
  };
}

/** Reads these counts from the inbox rows of the placed orders. */
export function workCounts({ events, inbox }: Readings): WorkCounts {
  const placed = events.flatMap(({ envelope: { type, eventId } }) =>
    type === 'OrderPlaced' ? [eventId] : [],
  );
  const rows = (of: ReadonlyMap<string, InboxRow>) => placed.flatMap((eventId) => of.get(eventId) ?? []);
  const charges = rows(inbox.payments);
  const starts = charges.flatMap(({ effects }) => effects?.charge?.startedAt ?? []);
  const { perSecond, burst } = BANK_LIMIT;
  // The rows of a batch have one fence, that of its transaction.
  const messages = new Map<string, number>();
  for (const { status, fence } of rows(inbox.inventory))
    if (status === 'PROCESSED') messages.set(fence, (messages.get(fence) ?? 0) + 1);
  const sizes = [...messages.values()].filter((size) => size > 1);
  return {
    bankLimit: {
      perSecond,
      burst,
      allowedInASecond: burst + perSecond,
      mostInASecond: mostWithin(1_000, starts),
      waited: charges.filter(hasWaited).length,
    },
    batches: {
      messages: sizes.reduce((sum, size) => sum + size, 0),
      transactions: sizes.length,
      largest: Math.max(0, ...sizes),
    },
  };
}

function hasWaited({ pastAttempts = [] }: InboxRow): boolean {
  return pastAttempts.some((end) => limitWaitOf([end]) !== undefined);
}

/** The most of these times that lie in a period, of which the end is excluded. */
function mostWithin(periodMs: number, times: readonly number[]): number {
  const sorted = times.toSorted((a, b) => a - b);
  let first = 0;
  return sorted.reduce((most, at, i) => {
    while (at - Number(sorted[first]) >= periodMs) first += 1;
    return Math.max(most, i - first + 1);
  }, 0);
}
