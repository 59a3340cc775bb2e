import { MailroomError } from '../errors.ts';
import { minuteOf } from '../store/event-id.ts';
import type { SweepContext } from './partition-sweep.ts';
import { sweepMinutes } from './shard-sweep.ts';
import { MINUTE_MS } from './sweep-minutes.ts';
import { shardsEverUsed } from './sweep-state.ts';
import { END_MARGIN_MS, newTally } from './sweep-tally.ts';

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
const RANGE_CALL_MS = 20_000;

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
 * Sweeps exactly this range, whatever the ages of its minutes. Where the ordinary passes have come to stays as it is.
 *
 * @param endsBy - when the invocation ends, epoch milliseconds
 */
export async function sweepRange(
  context: SweepContext,
  range: SweepRange,
  endsBy: number,
): Promise<SweepRangeReport> {
  const { config, table, clock, telemetry } = context;
  const callEndsBy = clock.now() + RANGE_CALL_MS + END_MARGIN_MS;
  const tally = newTally(Math.min(endsBy, callEndsBy), config.publishTimeoutMs);
  const shards = await shardsEverUsed(table, config.shards);
  const how = { consistent: true, pointers: true };
  let sweptTo = range.since;
  let pending = 0;
  for (const { minute, to } of rangeSteps(range)) {
    const settled = await sweepMinutes(context, shards, [minute], how, tally);
    // The next call reads this step again, and counts what it leaves: a pointer alone tells the operator nothing.
    if (!settled || tally.failures > 0) break;
    for (const { rows } of tally.left.values()) pending += rows;
    tally.left.clear();
    sweptTo = to;
  }
  const report: SweepRangeReport = {
    published: tally.published,
    pending,
    sweptTo,
    complete: sweptTo >= range.until,
  };
  telemetry.log.info('Swept a range', { ...range, ...report });
  return report;
}

/**
 * The minutes of a range as they stand in keys, oldest first, and up to where it is swept after each. One that is not read
 * whole is read again by the next call: so a step is no longer than a minute, and fits into a call also where much was committed.
 */
function* rangeSteps({ since, until }: SweepRange): Generator<{ minute: string; to: number }> {
  const first = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  for (let from = first; from < until; from += MINUTE_MS)
    yield { minute: minuteOf(from), to: Math.min(until, from + MINUTE_MS) };
}
