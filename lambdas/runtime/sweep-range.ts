import { MailroomError } from './errors.ts';
import { minuteOf } from './event-id.ts';
import { asRow, SWEEP_STATE_KEY, type SweepState } from './rows.ts';
import { MINUTE_MS } from './sweep-minutes.ts';
import type { Table } from './table.ts';

/** Which minutes an operator wants to be swept now, whatever their age. */
export interface SweepRange {
  /** Epoch milliseconds; the minute that it lies in is the first one. */
  readonly since: number;
  /** Epoch milliseconds, exclusive. */
  readonly until: number;
}

/** What the sweep of a range found and left, and how far it came in its time. */
export interface SweepRangeReport {
  /** Published by this call. */
  readonly published: number;
  /** Rows that it left PENDING up to `sweptTo`, whoever holds their lease. */
  readonly pending: number;
  /** The range is swept up to here, epoch milliseconds: go on from there. */
  readonly sweptTo: number;
  /** Whether that is the whole range. */
  readonly complete: boolean;
}

/** A call answers after about this long, so that whoever waits can see how far it came, milliseconds. */
export const RANGE_CALL_MS = 20_000;

/**
 * The range that an invocation asks for.
 *
 * @param now - epoch milliseconds: the default of `until`, and its most
 * @returns `undefined` when it asks for none: an ordinary pass
 * @throws `BAD_SWEEP_RANGE` when it asks for one that is none
 */
export function rangeToSweep(event: unknown, now: number): SweepRange | undefined {
  if (typeof event !== 'object' || event === null || !('since' in event || 'until' in event))
    return undefined;
  const { since, until = now } = event as { since?: unknown; until?: unknown };
  const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!isTime(since) || !isTime(until) || since >= until || since > now) {
    throw new MailroomError(
      'BAD_SWEEP_RANGE',
      `since is ${JSON.stringify(since)} and until is ${JSON.stringify(until)}; both must be times in epoch milliseconds, ` +
        `since before until and not in the future (now is ${now}). Leave both out for an ordinary pass.`,
    );
  }
  return { since, until: Math.min(until, now) };
}

/**
 * The minutes of a range as they stand in keys, oldest first, and up to where it is swept after each. One that is not read
 * whole is read again by the next call: so a step is no longer than a minute, and fits into a call also where much was committed.
 */
export function* rangeSteps({ since, until }: SweepRange): Generator<{ minute: string; to: number }> {
  const first = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  for (let from = first; from < until; from += MINUTE_MS)
    yield { minute: minuteOf(from), to: Math.min(until, from + MINUTE_MS) };
}

/** The highest number of shards that was ever used, as the sweep's state tells it; it is only read. @param atLeast - today's */
export async function shardsEverUsed(table: Pick<Table, 'get'>, atLeast: number): Promise<number> {
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  const stored = item === undefined ? undefined : asRow<SweepState>(item).shards;
  return typeof stored === 'number' ? Math.max(stored, atLeast) : atLeast;
}
