import { systemClock } from '../clock.ts';
import type { DeadLetterWatch } from '../operations/dead-letter-watch.ts';
import { systemRandomBytes } from '../store/event-id.ts';
import { powertoolsTelemetry } from '../telemetry.ts';
import type { RelayHandlerDeps } from './relay.ts';
import { createShardSweep } from './shard-sweep.ts';
import { MINUTE_MS, youngestMinutes } from './sweep-minutes.ts';
import { createSweepPass } from './sweep-pass.ts';
import { rangeToSweep, type SweepRangeReport, sweepRange } from './sweep-range.ts';
import { END_MARGIN_MS, newTally } from './sweep-tally.ts';

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

/** The backstop: finds PENDING rows whose lease has passed, and publishes them. */
export interface RelaySweep {
  /**
   * One whole pass.
   *
   * @param endsBy - when the invocation ends, epoch milliseconds
   */
  pass(endsBy: number): Promise<SweepReport>;
  /**
   * The handler: a pass; where `sweepEvery` is under a minute, then the youngest minutes again and again until the minute is
   * over. Given `{ since, until }`, epoch milliseconds, it sweeps that range instead and says how far it came.
   *
   * @throws `BAD_SWEEP_RANGE` when these are no range
   */
  handler(
    event: unknown,
    context: { getRemainingTimeInMillis(): number },
  ): Promise<SweepReport | SweepRangeReport>;
}

/** What the sweep is made of. */
export interface RelaySweepDeps extends RelayHandlerDeps {
  /** Looks after the dead letters once in each invocation. @default nobody does */
  readonly watch?: DeadLetterWatch | undefined;
}

/**
 * Makes the sweep. It reads a table without an index: which minutes it reads is a pure function of now and of
 * when the last whole pass started (see `minutesToSweep`), and every minute that a pass left unsettled has a
 * pointer and is read again by each pass until it is clean.
 *
 * @example
 * ```ts
 * export const { handler } = createRelaySweep({ config, table, bus });
 * ```
 */
export function createRelaySweep(deps: RelaySweepDeps): RelaySweep {
  const { config, clock = systemClock, random = systemRandomBytes } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const parts = { ...deps, clock, random, telemetry };
  const shardSweep = createShardSweep(parts);
  const pass = createSweepPass(parts, shardSweep);

  return {
    pass: async (endsBy) => (await pass(endsBy)).report,
    handler: async (event, context) => {
      const startedAt = clock.now();
      const endsBy = startedAt + context.getRemainingTimeInMillis();
      const range = rangeToSweep(event, startedAt);
      if (range !== undefined) {
        const report = await sweepRange(parts, shardSweep, range, endsBy);
        telemetry.flush();
        return report;
      }
      const { report, shards } = await pass(endsBy);
      telemetry.flush();
      await deps.watch?.(telemetry, endsBy);
      telemetry.flush();
      let { published } = report;
      // An invocation a minute: what comes more often happens inside it.
      const loopUntil = Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS);
      while (config.sweepEveryMs < MINUTE_MS && clock.now() + config.sweepEveryMs < loopUntil) {
        await clock.sleep(config.sweepEveryMs);
        published += await sweepYoungest(shards, endsBy);
      }
      telemetry.flush();
      return { ...report, published };
    },
  };

  /** The youngest minutes, in all shards. They need no pointer: their first age has not come yet. Returns how many it published. */
  async function sweepYoungest(shards: number, endsBy: number): Promise<number> {
    const tally = newTally(endsBy, config.publishTimeoutMs);
    const how = { consistent: false, pointers: false };
    await shardSweep.minutes(shards, youngestMinutes(clock.now()), how, tally);
    return tally.published;
  }
}
