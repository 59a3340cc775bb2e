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

/** A range is swept in steps of this much time; one that is not read whole is read again by the next call. */
const STEP_MS = 10 * MINUTE_MS;

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

/** The steps of a range, oldest first: the minutes of each as they stand in keys, and up to where it is swept after it. */
export function* rangeSteps({ since, until }: SweepRange): Generator<{ minutes: string[]; to: number }> {
  let minute = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  while (minute < until) {
    const to = Math.min(until, minute + STEP_MS);
    const minutes: string[] = [];
    for (; minute < to; minute += MINUTE_MS) minutes.push(minuteOf(minute));
    yield { minutes, to };
  }
}

/** The highest number of shards that was ever used, as the sweep's state tells it; it is only read. @param atLeast - today's */
export async function shardsEverUsed(table: Table, atLeast: number): Promise<number> {
  const item = await table.get(SWEEP_STATE_KEY, { consistent: true });
  const stored = item === undefined ? undefined : asRow<SweepState>(item).shards;
  return typeof stored === 'number' ? Math.max(stored, atLeast) : atLeast;
}
