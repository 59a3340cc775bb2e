import { MINUTE_MS } from '../base/units.ts';
import type { Telemetry } from '../observe/telemetry.ts';
import { flushSpans } from '../observe/tracer.ts';
import { youngestMinutes } from './minutes-to-sweep.ts';
import type { RelayHandlerDeps } from './relay-context.ts';
import { eventToRepublish, type RepublishReport, type RepublishRequest, republish } from './republish.ts';
import type { SweepContext } from './sweep-partition.ts';
import { type SweepReport, sweepPass } from './sweep-pass.ts';
import { rangeToSweep, type SweepRangeReport, sweepRange } from './sweep-range.ts';
import { sweepContext, sweepMinutes } from './sweep-shard.ts';
import { END_MARGIN_MS, newTally } from './sweep-tally.ts';

/**
 * The sweep's Lambda handler: it runs one pass and, if `sweepEvery` is below one minute, then sweeps the most recent minutes
 * repeatedly until the minute is over. If it is invoked with `{ since, until }`, epoch milliseconds, it sweeps that range instead
 * and reports its progress. If it is invoked with `{ republish }`, an event id, it publishes only that event again.
 *
 * @throws `BAD_SWEEP_RANGE` if these are not a valid range, `NOT_PUBLISHED` if the event is not PUBLISHED
 */
export interface RelaySweepHandler {
  (event: RepublishRequest, context: { getRemainingTimeInMillis(): number }): Promise<RepublishReport>;
  (event: unknown, context: { getRemainingTimeInMillis(): number }): Promise<SweepReport | SweepRangeReport>;
}

/**
 * Reads every dead-letter queue and emits the number of dead letters (`DeadLetters`) and the time until the first of them is
 * permanently deleted (`FirstDeadLetterExpiry`). Queues that cannot be read are counted (`WatchFailures`) and logged: the watch
 * never throws.
 *
 * @param endsBy - the end of the invocation, epoch milliseconds: the watch ends before it
 */
export type DeadLetterWatch = (telemetry: Telemetry, endsBy: number) => Promise<void>;

/** Dependencies of {@link createRelaySweep}. */
export interface RelaySweepDeps extends RelayHandlerDeps {
  /** Checks the dead-letter queues once per invocation. @default none */
  readonly watch?: DeadLetterWatch | undefined;
}

/**
 * Creates the sweep. It reads the table without an index: the minutes that it reads are a pure function of the current time and
 * the start of the last complete pass (see `minutesToSweep`), and each minute that a pass leaves unsettled gets a pointer and is
 * read again by each pass until it is clean.
 *
 *
 * @example
 * ```ts
 * export const handler = createRelaySweep({ config, table, bus });
 * ```
 */
export function createRelaySweep(deps: RelaySweepDeps): RelaySweepHandler {
  const context = sweepContext(deps);
  const { config, clock, telemetry } = context;
  const sweep = async (event: unknown, lambda: Parameters<RelaySweepHandler>[1]) => {
    const startedAt = clock.now();
    const endsBy = startedAt + lambda.getRemainingTimeInMillis();
    const again = eventToRepublish(event);
    if (again !== undefined) return republish({ ...deps, telemetry }, again);
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
    // Invocations start once a minute; more frequent sweeps run within one.
    const loopUntil = Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS);
    while (config.sweepEveryMs < MINUTE_MS && clock.now() + config.sweepEveryMs < loopUntil) {
      await clock.sleep(config.sweepEveryMs);
      published += await sweepYoungest(context, shards, endsBy);
    }
    telemetry.flush();
    return { ...report, published };
  };
  const handler = async (event: unknown, lambda: Parameters<RelaySweepHandler>[1]) => {
    try {
      return await sweep(event, lambda);
    } finally {
      await flushSpans(clock, clock.now() + lambda.getRemainingTimeInMillis());
    }
  };
  return handler as RelaySweepHandler;
}

/**
 * Creates a function that runs one complete pass of the sweep, without the dead-letter watch.
 *
 * @returns a function that takes the end of the invocation, epoch milliseconds
 */
export function createSweepPass(deps: RelayHandlerDeps): (endsBy: number) => Promise<SweepReport> {
  const context = sweepContext(deps);
  return async (endsBy) => (await sweepPass(context, endsBy)).report;
}

/** Sweeps the most recent minutes of all shards and returns the number published. No pointers: their first age is still to come. */
async function sweepYoungest(context: SweepContext, shards: number, endsBy: number): Promise<number> {
  const { config, clock } = context;
  const tally = newTally(endsBy, config.publishTimeoutMs);
  const how = { consistent: false, pointers: false };
  await sweepMinutes(context, shards, youngestMinutes(clock.now()), how, tally);
  return tally.published;
}
