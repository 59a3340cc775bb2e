import { deadKey } from '../store/rows.ts';
import type { Item } from '../store/table.ts';
import type { SweepDeps } from './partition-sweep.ts';
import type { SweepReport } from './relay-sweep.ts';
import type { ShardSweep } from './shard-sweep.ts';
import { MINUTE_MS, minutesToSweep } from './sweep-minutes.ts';
import { type SweepStart, startSweep } from './sweep-state.ts';
import { goesOn, newTally, stepFailed, type Tally } from './sweep-tally.ts';

/**
 * One whole pass, and how many shards it read.
 *
 * @param endsBy - when the invocation ends, epoch milliseconds
 */
export type SweepPass = (
  endsBy: number,
) => Promise<{ readonly report: SweepReport; readonly shards: number }>;

/** A long pass goes in steps of this much time, and stores its state after each, so that none is read twice. */
const STEP_MS = MINUTE_MS;

/** Of the time of a pass, the share after which the minutes that have a pointer get their turn. */
const RANGE_SHARE = 0.7;

/** Makes the pass: the minutes that came to an age since the last one, then those that have a pointer. */
export function createSweepPass(deps: SweepDeps, shardSweep: ShardSweep): SweepPass {
  const { config, table, clock, telemetry } = deps;

  return async (endsBy) => {
    const tally = newTally(endsBy, config.publishTimeoutMs);
    const startedAt = clock.now();
    const start = await startSweep({ config, table, clock, telemetry }, startedAt);
    const { shards } = start;

    // Pointers that this pass puts are for the next one.
    const pointers = await shardSweep.pointers(shards, tally);
    tally.endsBy = startedAt + (endsBy - startedAt) * RANGE_SHARE;
    const swept = await sweepAges(start, startedAt, tally);
    tally.endsBy = endsBy;
    const settled = await shardSweep.unsettled(pointers, tally);

    const dead = await countDead(shards, tally);
    const report = reportOf(tally, dead, swept && settled && tally.failures === 0);
    telemetry.gauge('PendingEvents', report.pending);
    telemetry.gauge('UndeclaredEvents', report.undeclared);
    telemetry.duration('OldestPendingAge', report.oldestPendingMs);
    telemetry.duration('OldestLeaseAge', report.oldestLeaseMs);
    if (dead !== undefined) telemetry.gauge('DeadEvents', dead);
    telemetry.log.info('Swept', { ...report });
    return { report, shards };
  };

  /**
   * Every minute whose age was passed since the last pass, step by step. The state moves past a step only when each of its
   * minutes was read whole or has a pointer, in every shard, and past no step after one that it stays before: so whatever was
   * not read is read by the next pass, and a step that fails does not hold up the newer ones.
   *
   * @returns false when something of it was left out: there was no time, the bus took nothing for a while, or a step failed
   */
  async function sweepAges(start: SweepStart, startedAt: number, tally: Tally): Promise<boolean> {
    let whole = true;
    let moves = true;
    for (let from = start.since; from < startedAt; ) {
      const to = Math.min(startedAt, from + STEP_MS);
      const how = { consistent: false, pointers: true };
      const settled = await shardSweep.minutes(start.shards, minutesToSweep(from, to), how, tally);
      whole &&= settled;
      moves = whole && moves && (await moved(start, to, tally));
      if (!settled && !goesOn(tally, clock.now())) return false;
      from = to;
    }
    return whole;
  }

  async function moved(start: SweepStart, to: number, tally: Tally): Promise<boolean> {
    try {
      await start.moveTo(to);
      return true;
    } catch (error) {
      stepFailed(telemetry, tally, 'store how far the sweep came', error);
      return false;
    }
  }

  function reportOf(tally: Tally, dead: number | undefined, complete: boolean): SweepReport {
    const left = [...tally.left.values()];
    const since = (times: readonly number[]) => Math.max(0, clock.now() - Math.min(...times));
    return {
      published: tally.published,
      pending: left.reduce((sum, { rows }) => sum + rows, 0),
      undeclared: left.reduce((sum, { undeclared }) => sum + undeclared, 0),
      oldestPendingMs: since(left.map(({ oldest }) => oldest)),
      oldestLeaseMs: since(left.map(({ leaseUntil }) => leaseUntil)),
      dead,
      complete,
    };
  }

  /** How many events are DEAD; `undefined` when that cannot be read. */
  async function countDead(shards: number, tally: Tally): Promise<number | undefined> {
    try {
      let dead = 0;
      for (let shard = 0; shard < shards; shard += 1) {
        let cursor: Item | undefined;
        do {
          const page = await table.query({ pk: deadKey(shard, '').PK, cursor });
          dead += page.items.length;
          cursor = page.cursor;
        } while (cursor !== undefined);
      }
      return dead;
    } catch (error) {
      stepFailed(telemetry, tally, 'count the DEAD events', error);
      return undefined;
    }
  }
}
