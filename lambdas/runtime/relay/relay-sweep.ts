import type { DeadLetterWatch } from '../operations/dead-letter-watch.ts';
import type { SweepContext } from './partition-sweep.ts';
import type { RelayHandlerDeps } from './relay.ts';
import { sweepContext, sweepMinutes } from './shard-sweep.ts';
import { MINUTE_MS, youngestMinutes } from './sweep-minutes.ts';
import { type SweepReport, sweepPass } from './sweep-pass.ts';
import { rangeToSweep, type SweepRangeReport, sweepRange } from './sweep-range.ts';
import { END_MARGIN_MS, newTally } from './sweep-tally.ts';

/**
 * The sweep's Lambda handler: one pass; where `sweepEvery` is under a minute, then the youngest minutes again and again until the
 * minute is over. Given `{ since, until }`, epoch milliseconds, it sweeps that range instead and reports how far it came.
 *
 * @throws `BAD_SWEEP_RANGE` when these are not a range
 */
export type RelaySweepHandler = (
  event: unknown,
  context: { getRemainingTimeInMillis(): number },
) => Promise<SweepReport | SweepRangeReport>;

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
 * export const handler = createRelaySweep({ config, table, bus });
 * ```
 */
export function createRelaySweep(deps: RelaySweepDeps): RelaySweepHandler {
  const context = sweepContext(deps);
  const { config, clock, telemetry } = context;
  return async (event, lambda) => {
    const startedAt = clock.now();
    const endsBy = startedAt + lambda.getRemainingTimeInMillis();
    const range = rangeToSweep(event, startedAt);
    if (range !== undefined) {
      const report = await sweepRange(context, range, endsBy);
      telemetry.flush();
      return report;
    }
    const { report, shards } = await sweepPass(context, endsBy);
    telemetry.flush();
    await deps.watch?.(telemetry, endsBy);
    telemetry.flush();
    let { published } = report;
    // An invocation a minute: what comes more often happens inside it.
    const loopUntil = Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS);
    while (config.sweepEveryMs < MINUTE_MS && clock.now() + config.sweepEveryMs < loopUntil) {
      await clock.sleep(config.sweepEveryMs);
      published += await sweepYoungest(context, shards, endsBy);
    }
    telemetry.flush();
    return { ...report, published };
  };
}

/**
 * Makes a function that runs one whole pass of the sweep, without the dead-letter watch.
 *
 * @returns takes the time at which the invocation ends, epoch milliseconds
 */
export function createSweepPass(deps: RelayHandlerDeps): (endsBy: number) => Promise<SweepReport> {
  const context = sweepContext(deps);
  return async (endsBy) => (await sweepPass(context, endsBy)).report;
}

/** Sweeps the youngest minutes, in all shards. They need no pointer: their first age has not come yet. Returns how many it published. */
async function sweepYoungest(context: SweepContext, shards: number, endsBy: number): Promise<number> {
  const { config, clock } = context;
  const tally = newTally(endsBy, config.publishTimeoutMs);
  const how = { consistent: false, pointers: false };
  await sweepMinutes(context, shards, youngestMinutes(clock.now()), how, tally);
  return tally.published;
}
