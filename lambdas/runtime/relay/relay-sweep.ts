import { MINUTE_MS } from '../base/units.ts';
import type { InvocationContext, Telemetry } from '../observe/telemetry.ts';
import { flushSpans } from '../observe/tracer.ts';
import { deadKey } from '../store/keys.ts';
import type { UnsettledPointer } from '../store/outbox-row.ts';
import { pagesOf } from '../store/table.ts';
import { minutesToSweep, youngestMinutes } from './minutes-to-sweep.ts';
import type { RelayHandlerDeps } from './relay-context.ts';
import { eventToRepublish, type RepublishReport, type RepublishRequest, republish } from './republish.ts';
import type { SweepContext } from './sweep-partition.ts';
import { rangeToSweep, type SweepRangeReport, sweepRange } from './sweep-range.ts';
import { readPointers, sweepContext, sweepMinutes, sweepUnsettled } from './sweep-shard.ts';
import { moveSweptTo, type SweepStart, startSweep } from './sweep-state.ts';
import { attemptStep, END_MARGIN_MS, hasTimeLeft, newTally, type Tally } from './sweep-tally.ts';

/**
 * The sweep's Lambda handler: it runs one pass and, if `sweepEvery` is below one minute, then sweeps the most recent minutes
 * repeatedly until the minute is over. If it is invoked with `{ since, until }`, epoch milliseconds, it sweeps that range instead
 * and reports its progress. If it is invoked with `{ republish }`, an event id, it publishes only that event again.
 *
 * @throws `BAD_SWEEP_RANGE` if these are not a valid range, `NOT_PUBLISHED` if the event is not PUBLISHED
 */
export interface RelaySweepHandler {
  (event: RepublishRequest, context: InvocationContext): Promise<RepublishReport>;
  (event: unknown, context: InvocationContext): Promise<SweepReport | SweepRangeReport>;
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
 * @example
 * ```ts
 * export const handler = createRelaySweep({ config, table, bus });
 * ```
 */
export function createRelaySweep(deps: RelaySweepDeps): RelaySweepHandler {
  const context = sweepContext(deps);
  const { config, clock, telemetry } = context;
  const sweep = async (event: unknown, lambda: Parameters<RelaySweepHandler>[1]) => {
    telemetry.startInvocation?.(lambda);
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
    // An event is due in one of these two minutes, or was when an earlier pass read them.
    if (config.punctual && config.sweepEveryMs >= MINUTE_MS)
      published += await sweepYoungest(context, shards, endsBy, youngestMinutes(clock.now()).slice(-2));
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
async function sweepYoungest(
  context: SweepContext,
  shards: number,
  endsBy: number,
  minutes = youngestMinutes(context.clock.now()),
): Promise<number> {
  const { config } = context;
  const tally = newTally(endsBy, config.publishTimeoutMs);
  const how = { consistent: false, pointers: false };
  await sweepMinutes(context, shards, minutes, how, tally);
  return tally.published;
}

/** The results of a pass. */
export interface SweepReport {
  /** The number of events that this pass published. */
  readonly published: number;
  /** The number of rows left PENDING under any lease, without scheduled events that are not due. */
  readonly pending: number;
  /** The number of those rows that wait because their source is not declared. */
  readonly undeclared: number;
  /** The longest wait of the others since their commit or requeue, milliseconds; 0 if no others are left. */
  readonly oldestPendingMs: number;
  /** The time since the least recently served row's lease ended, milliseconds; 0 if every row is leased. */
  readonly oldestLeaseMs: number;
  /** The number of DEAD events in all shards, or a smaller number if counting did not finish; absent if none was counted. */
  readonly dead?: number | undefined;
  /** True if the pass finished: every step ran and succeeded, and the bus accepted what was sent to it. */
  readonly complete: boolean;
}

/** A long pass runs in steps of this length and stores its state after each, so that no step is read twice. */
const STEP_MS = MINUTE_MS;

/** The share of a pass's time after which the minutes with a pointer get their turn. */
const RANGE_SHARE = 0.7;

/**
 * Runs one complete pass: the minutes that reached an age since the last pass, then those with a pointer.
 *
 * @param endsBy - the end of the invocation, epoch milliseconds
 * @returns its report, and the number of shards that it read
 */
async function sweepPass(
  context: SweepContext,
  endsBy: number,
): Promise<{ readonly report: SweepReport; readonly shards: number }> {
  const { config, clock, telemetry } = context;
  const tally = newTally(endsBy, config.publishTimeoutMs);
  const startedAt = clock.now();
  const start = await startSweep(context, startedAt);
  const { shards } = start;

  // Pointers to other minutes that this pass writes are for the next one.
  const pointers = await readPointers(context, shards, tally);
  tally.endsBy = startedAt + (endsBy - startedAt) * RANGE_SHARE;
  const swept = await sweepAges(context, start, startedAt, pointers, tally);
  tally.endsBy = endsBy;
  const settled = await sweepUnsettled(context, pointers, tally);

  const { dead, counted } = await countDead(context, shards, tally);
  const left = [...tally.left.values()];
  const since = (times: readonly (number | undefined)[]) =>
    Math.max(0, clock.now() - Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY)));
  const report: SweepReport = {
    published: tally.published,
    pending: left.reduce((sum, { rows, early = 0 }) => sum + rows - early, 0),
    undeclared: left.reduce((sum, { undeclared }) => sum + undeclared, 0),
    oldestPendingMs: since(left.map(({ oldest }) => oldest)),
    oldestLeaseMs: since(left.map(({ leaseUntil }) => leaseUntil)),
    dead,
    complete: swept && settled && counted && tally.failures === 0,
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
 * Sweeps every minute that passed an age since the last pass, step by step. The state moves past a step only if each of its
 * minutes was read completely or has a pointer, in every shard, and never past a step after one that failed. So the next pass
 * reads whatever was not read, and a failing step does not hold up newer ones.
 *
 * @returns false if anything was left out: time ran out, the bus refused events for a while, or a step failed
 */
async function sweepAges(
  context: SweepContext,
  start: SweepStart,
  startedAt: number,
  known: UnsettledPointer[][],
  tally: Tally,
): Promise<boolean> {
  let whole = true;
  let moves = true;
  for (let from = start.since; from < startedAt; ) {
    const to = Math.min(startedAt, from + STEP_MS);
    const how = { consistent: false, pointers: true, known };
    const settled = await sweepMinutes(context, start.shards, minutesToSweep(from, to), how, tally);
    whole &&= settled;
    moves =
      whole &&
      moves &&
      (await attemptStep(context.telemetry, tally, 'store the progress of the sweep', () =>
        moveSweptTo(context, start, to),
      ));
    if (!settled && !hasTimeLeft(tally, context.clock.now())) return false;
    from = to;
  }
  return whole;
}

/** The count of the DEAD events ends this long before the invocation, so that the metrics of the pass are still sent, milliseconds. */
const AFTER_COUNT_MS = 5_000;

/**
 * Counts the DEAD events, whose number has no bound: when time runs out, the number so far counts.
 *
 * @returns `dead`, `undefined` if none was counted, and true if all were
 */
async function countDead(
  { table, clock, telemetry }: SweepContext,
  shards: number,
  tally: Tally,
): Promise<{ readonly dead: number | undefined; readonly counted: boolean }> {
  let dead = 0;
  let inTime = true;
  const read = await attemptStep(telemetry, tally, 'count the DEAD events', async () => {
    for (let shard = 0; shard < shards && inTime; shard += 1)
      for await (const { items, cursor } of pagesOf(table, { pk: deadKey(shard, '').PK })) {
        dead += items.length;
        inTime =
          (cursor === undefined && shard === shards - 1) || clock.now() < tally.endsBy - AFTER_COUNT_MS;
        if (!inTime) break;
      }
  });
  if (!inTime) telemetry.log.warn('Time ran out before all DEAD events were counted', { dead });
  const counted = read && inTime;
  return { dead: counted || dead > 0 ? dead : undefined, counted };
}
