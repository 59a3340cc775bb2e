import { MailroomError } from '../base/errors.ts';
import { MINUTE_MS } from '../base/units.ts';
import { minuteOf } from '../store/event-id.ts';
import { SHARDS_MAX } from '../store/outbox-partition.ts';
import { shardsOfMinute } from './shards-of-minute.ts';
import type { SweepContext } from './sweep-partition.ts';
import { sweepMinutes } from './sweep-shard.ts';
import { raiseShards, shardsEverUsed } from './sweep-state.ts';
import { END_MARGIN_MS, newTally } from './sweep-tally.ts';

/** The minutes that an operator wants to sweep now, whatever their age. */
export interface SweepRange {
  /** The start, epoch milliseconds; the minute that contains it is the first one. */
  readonly since: number;
  /** The end, epoch milliseconds, exclusive. */
  readonly until: number;
  /**
   * Also look for events in the shards up to this number, 1 to 256. Those that have one are swept, by this call and every later pass.
   *
   * @default the shards that the sweep reads
   */
  readonly shards?: number | undefined;
}

/** The results of sweeping a range, and its progress. */
export interface SweepRangeReport {
  /** The number of events that this call published. */
  readonly published: number;
  /** The number of rows left PENDING up to `sweptTo`, under any lease, without scheduled events that are not due. */
  readonly pending: number;
  /** The end of the part that is swept, epoch milliseconds: continue from here. */
  readonly sweptTo: number;
  /** True if the whole range is swept. */
  readonly complete: boolean;
}

/** The time after which a call returns, so that the caller can see its progress, milliseconds. */
const RANGE_CALL_MS = 20_000;

/**
 * Reads the range from an invocation.
 *
 * @param now - epoch milliseconds: the default of `until`, and its maximum
 * @returns `undefined` if the invocation has no range: an ordinary pass
 * @throws `BAD_SWEEP_RANGE` if the range is not valid
 */
export function rangeToSweep(event: unknown, now: number): SweepRange | undefined {
  if (typeof event !== 'object' || event === null || !('since' in event || 'until' in event))
    return undefined;
  const { since, until = now, shards } = event as Partial<Record<keyof SweepRange, unknown>>;
  const isTime = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
  if (!isTime(since) || !isTime(until) || since >= until || since > now) {
    throw new MailroomError(
      'BAD_SWEEP_RANGE',
      `since is ${JSON.stringify(since)} and until is ${JSON.stringify(until)}; both must be times in epoch milliseconds, ` +
        `since before until and not in the future (now is ${now}). Omit both for an ordinary pass.`,
    );
  }
  const isNumber = Number.isSafeInteger(shards) && Number(shards) >= 1 && Number(shards) <= SHARDS_MAX;
  if (shards !== undefined && !isNumber) {
    throw new MailroomError(
      'BAD_SWEEP_RANGE',
      `shards is ${JSON.stringify(shards)}; it must be a whole number from 1 to ${SHARDS_MAX}. Omit it for the shards that the sweep reads.`,
    );
  }
  return { since, until: Math.min(until, now), ...(isNumber && { shards: Number(shards) }) };
}

/**
 * Sweeps exactly this range, whatever the ages of its minutes. Of the ordinary passes' state, only the number of shards is changed: a
 * shard above it in which there is an event is added before the minute is swept, because a pointer to it would not be read otherwise.
 *
 * @param endsBy - the end of the invocation, epoch milliseconds
 */
export async function sweepRange(
  context: SweepContext,
  range: SweepRange,
  endsBy: number,
): Promise<SweepRangeReport> {
  const { config, table, clock, telemetry } = context;
  const callEndsBy = clock.now() + RANGE_CALL_MS + END_MARGIN_MS;
  const tally = newTally(Math.min(endsBy, callEndsBy), config.publishTimeoutMs);
  let shards = await shardsEverUsed(table, config.shards);
  const how = { consistent: true, pointers: true };
  let sweptTo = range.since;
  let pending = 0;
  for (const { minute, to } of rangeSteps(range)) {
    const used = await shardsOfMinute(table, minute, {
      from: shards,
      to: range.shards ?? 0,
      consistent: true,
    });
    if (used > shards) shards = await raiseShards(table, used);
    const settled = await sweepMinutes(context, shards, [minute], how, tally);
    // The next call reads this step again and counts what it leaves: a pointer alone would not inform the operator.
    if (!settled || tally.failures > 0) break;
    for (const { rows, early = 0 } of tally.left.values()) pending += rows - early;
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
 * Returns the minutes of a range in the format of the keys, oldest first, each with the end of the part swept after it. The next
 * call repeats a minute that was not read completely, so a step is at most a minute long and fits into a call even after many
 * commits.
 */
function* rangeSteps({ since, until }: SweepRange): Generator<{ minute: string; to: number }> {
  const first = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  for (let from = first; from < until; from += MINUTE_MS)
    yield { minute: minuteOf(from), to: Math.min(until, from + MINUTE_MS) };
}
