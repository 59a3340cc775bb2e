import { deadKey } from '../store/rows.ts';
import { pagesOf } from '../store/table-requests.ts';
import type { SweepContext } from './partition-sweep.ts';
import { readPointers, sweepMinutes, sweepUnsettled } from './shard-sweep.ts';
import { MINUTE_MS, minutesToSweep } from './sweep-minutes.ts';
import { moveSweptTo, type SweepStart, startSweep } from './sweep-state.ts';
import { attemptStep, goesOn, newTally, type Tally } from './sweep-tally.ts';

/** What a pass found and left. */
export interface SweepReport {
  /** Published by this pass. */
  readonly published: number;
  /** Rows that it left PENDING, whoever holds their lease. */
  readonly pending: number;
  /** Those of them that wait because their source is not declared. */
  readonly undeclared: number;
  /** The age of the oldest of the others, milliseconds; 0 when there is none. */
  readonly oldestPendingMs: number;
  /** For how long the row that was served least recently has been nobody's, milliseconds; 0 when somebody holds each of them. */
  readonly oldestLeaseMs: number;
  /** DEAD events, in all shards; absent when they could not be counted. */
  readonly dead?: number | undefined;
  /** Whether the pass came to its end: none of its steps failed, there was time for all of them, and the bus took what it was given. */
  readonly complete: boolean;
}

/** A long pass goes in steps of this much time, and stores its state after each, so that none is read twice. */
const STEP_MS = MINUTE_MS;

/** Of the time of a pass, the share after which the minutes that have a pointer get their turn. */
const RANGE_SHARE = 0.7;

/**
 * Makes one whole pass: the minutes that came to an age since the last one, then those that have a pointer.
 *
 * @param endsBy - when the invocation ends, epoch milliseconds
 * @returns its report, and how many shards it read
 */
export async function sweepPass(
  context: SweepContext,
  endsBy: number,
): Promise<{ readonly report: SweepReport; readonly shards: number }> {
  const { config, clock, telemetry } = context;
  const tally = newTally(endsBy, config.publishTimeoutMs);
  const startedAt = clock.now();
  const start = await startSweep(context, startedAt);
  const { shards } = start;

  // Pointers that this pass puts are for the next one.
  const pointers = await readPointers(context, shards, tally);
  tally.endsBy = startedAt + (endsBy - startedAt) * RANGE_SHARE;
  const swept = await sweepAges(context, start, startedAt, tally);
  tally.endsBy = endsBy;
  const settled = await sweepUnsettled(context, pointers, tally);

  const dead = await countDead(context, shards, tally);
  const left = [...tally.left.values()];
  const since = (times: readonly number[]) => Math.max(0, clock.now() - Math.min(...times));
  const report: SweepReport = {
    published: tally.published,
    pending: left.reduce((sum, { rows }) => sum + rows, 0),
    undeclared: left.reduce((sum, { undeclared }) => sum + undeclared, 0),
    oldestPendingMs: since(left.map(({ oldest }) => oldest)),
    oldestLeaseMs: since(left.map(({ leaseUntil }) => leaseUntil)),
    dead,
    complete: swept && settled && tally.failures === 0,
  };
  telemetry.gauge('PendingEvents', report.pending);
  telemetry.gauge('UndeclaredEvents', report.undeclared);
  telemetry.duration('OldestPendingAge', report.oldestPendingMs);
  telemetry.duration('OldestLeaseAge', report.oldestLeaseMs);
  if (dead !== undefined) telemetry.gauge('DeadEvents', dead);
  telemetry.log.info('Swept', { ...report });
  return { report, shards };
}

/**
 * Every minute whose age was passed since the last pass, step by step. The state moves past a step only when each of its
 * minutes was read whole or has a pointer, in every shard, and past no step after one that it stays before: so whatever was
 * not read is read by the next pass, and a step that fails does not hold up the newer ones.
 *
 * @returns false when something of it was left out: there was no time, the bus took nothing for a while, or a step failed
 */
async function sweepAges(
  context: SweepContext,
  start: SweepStart,
  startedAt: number,
  tally: Tally,
): Promise<boolean> {
  let whole = true;
  let moves = true;
  for (let from = start.since; from < startedAt; ) {
    const to = Math.min(startedAt, from + STEP_MS);
    const how = { consistent: false, pointers: true };
    const settled = await sweepMinutes(context, start.shards, minutesToSweep(from, to), how, tally);
    whole &&= settled;
    moves =
      whole &&
      moves &&
      (await attemptStep(context.telemetry, tally, 'store how far the sweep came', () =>
        moveSweptTo(context, start, to),
      ));
    if (!settled && !goesOn(tally, context.clock.now())) return false;
    from = to;
  }
  return whole;
}

/** How many events are DEAD; `undefined` when that cannot be read. */
async function countDead(
  { table, telemetry }: SweepContext,
  shards: number,
  tally: Tally,
): Promise<number | undefined> {
  let dead = 0;
  const counted = await attemptStep(telemetry, tally, 'count the DEAD events', async () => {
    for (let shard = 0; shard < shards; shard += 1)
      for await (const { items } of pagesOf(table, { pk: deadKey(shard, '').PK })) dead += items.length;
  });
  return counted ? dead : undefined;
}
