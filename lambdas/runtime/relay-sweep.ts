import pMap from 'p-map';
import { type BusBreaker, createBusBreaker } from './bus-breaker.ts';
import { systemClock } from './clock.ts';
import type { DeadLetterWatch } from './dead-letter-watch.ts';
import { isConditionFailed } from './errors.ts';
import { eventIdTime, mintToken, systemRandomBytes } from './event-id.ts';
import { LEASE_MARGIN_MS, type PendingRow, pendingRow } from './pending-row.ts';
import { createRelay, GROUP_ROWS, type Relay, type RelayHandlerDeps } from './relay.ts';
import { backoffMs } from './retry.ts';
import { asRow, deadKey, outboxPartition, SCHEMA, type UnsettledPointer, unsettledKey } from './rows.ts';
import { MINUTE_MS, minutesToSweep, youngestMinutes } from './sweep-minutes.ts';
import {
  RANGE_CALL_MS,
  rangeSteps,
  rangeToSweep,
  type SweepRange,
  type SweepRangeReport,
  shardsEverUsed,
} from './sweep-range.ts';
import { type SweepStart, startSweep } from './sweep-state.ts';
import type { Item } from './table.ts';
import { powertoolsTelemetry } from './telemetry.ts';

/** A long pass goes in steps of this much time, and stores its state after each, so that none is read twice. */
const STEP_MS = MINUTE_MS;

/** Of the time of a pass, the share after which the minutes that have a pointer get their turn. */
const RANGE_SHARE = 0.7;

/** What the bus failed to take is due again after so many sweeps: until then it does not stand in front of others. */
const BUS_BACKOFF_SWEEPS = 3;
const BUS_BACKOFF_MAX_MS = 15 * MINUTE_MS;

/** Work stops this long before the invocation's end, so that the last publish and its mark are over. */
const END_MARGIN_MS = 10_000;

/** How many shards are read at once, at most: of each one there is a page of up to 1 MB in memory. */
const SHARDS_AT_ONCE = 16;

/** How many calls to the bus, and how many to the table, each of them has under way at once, unless the handler is told. */
const CALLS_OF_SHARD = 8;

/** What a pass found and left. */
export interface SweepReport {
  /** Published by this pass. */
  readonly published: number;
  /** Rows that it left PENDING, whoever holds their lease. */
  readonly pending: number;
  /** The age of the oldest of them, milliseconds; 0 when there is none. */
  readonly oldestPendingMs: number;
  /** For how long the row that was served least recently has been nobody's, milliseconds; 0 when somebody holds each of them. */
  readonly oldestLeaseMs: number;
  /** DEAD events, in all shards. */
  readonly dead: number;
  /** Whether the pass came to its end: every page and pointer of its range was read, and the bus took what it was given. */
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

/** What one partition was left with. */
interface Left {
  /** Rows left PENDING. */
  readonly rows: number;
  /** When the oldest of them was minted, epoch milliseconds. */
  readonly oldest: number;
  /** When the first of the leases ended, or will end, under which this pass leaves them, epoch milliseconds. */
  readonly leaseUntil: number;
}

/** What one pass counts as it goes. */
interface Tally {
  published: number;
  /** By partition, where there is something left: one that is read twice counts once. */
  readonly left: Map<string, Left>;
  readonly breaker: BusBreaker;
  /** When the work must be over, epoch milliseconds. */
  endsBy: number;
  /** No publish begins after this: it and its mark must be over when the invocation ends. */
  readonly lastPublishAt: number;
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
  const { config, table, clock = systemClock, random = systemRandomBytes, concurrency } = deps;
  const telemetry =
    deps.telemetry ?? powertoolsTelemetry({ service: 'mailroom-relay', tableName: config.tableName });
  const [shardsAtOnce, callsOfShard] = shares(config.shards, concurrency);
  // Each has its own share of the calls: a shard full of events that fail must not take the turn of the others.
  const relays = Array.from({ length: shardsAtOnce }, () =>
    createRelay({ ...deps, clock, random, telemetry, concurrency: callsOfShard }, 'sweep'),
  );
  const relayOf = (shard: number) => relays[shard % relays.length] as Relay;

  let shards = config.shards;

  async function pass(endsBy: number): Promise<SweepReport> {
    const tally = newTally(endsBy, config.publishTimeoutMs);
    const startedAt = clock.now();
    const start = await startSweep({ config, table, clock, telemetry }, startedAt);
    shards = start.shards;

    // Pointers that this pass puts are for the next one.
    const pointers = await unsettledPointers();
    tally.endsBy = startedAt + (endsBy - startedAt) * RANGE_SHARE;
    const swept = await sweepRange(start, startedAt, tally);
    tally.endsBy = endsBy;
    const settled = await eachShard(pointers, tally, (pointer) => sweepUnsettled(pointer, tally));

    const left = [...tally.left.values()];
    const since = (times: readonly number[]) => Math.max(0, clock.now() - Math.min(...times));
    const report: SweepReport = {
      published: tally.published,
      pending: left.reduce((sum, { rows }) => sum + rows, 0),
      oldestPendingMs: since(left.map(({ oldest }) => oldest)),
      oldestLeaseMs: since(left.map(({ leaseUntil }) => leaseUntil)),
      dead: await countDead(),
      complete: swept && settled,
    };
    telemetry.gauge('PendingEvents', report.pending);
    telemetry.duration('OldestPendingAge', report.oldestPendingMs);
    telemetry.duration('OldestLeaseAge', report.oldestLeaseMs);
    telemetry.gauge('DeadEvents', report.dead);
    telemetry.log.info('Swept', { ...report });
    return report;
  }

  /** Every minute whose age was passed since the last pass, step by step; true when all of them were read whole. */
  async function sweepRange(start: SweepStart, startedAt: number, tally: Tally): Promise<boolean> {
    for (let from = start.since; from < startedAt; ) {
      const to = Math.min(startedAt, from + STEP_MS);
      const minutes = minutesToSweep(from, to);
      const work = Array.from({ length: shards }, (_, shard) => minutes.map((minute) => ({ shard, minute })));
      const whole = await eachShard(work, tally, async ({ shard, minute }) => {
        const { left } = await sweepMinute(shard, minute, false, tally);
        if (left > 0) await putUnsettled(shard, minute);
      });
      if (!whole) return false;
      await start.moveTo(to);
      from = to;
    }
    return true;
  }

  /** Does the work of every shard: shards in parallel, each in order. True when all of it was done. */
  async function eachShard<T>(
    shards: readonly (readonly T[])[],
    tally: Tally,
    work: (item: T) => Promise<void>,
  ): Promise<boolean> {
    let whole = true;
    await pMap(
      shards,
      async (items) => {
        for (const item of items) {
          if (!goesOn(tally)) {
            whole = false;
            return;
          }
          try {
            await work(item);
          } catch (error) {
            whole = false;
            telemetry.log.error('A minute could not be swept; the next pass reads it again', {
              error: error as Error,
            });
            return;
          }
        }
      },
      { concurrency: shardsAtOnce },
    );
    return whole && goesOn(tally);
  }

  function goesOn(tally: Tally): boolean {
    return !tally.breaker.isGivenUp() && clock.now() < tally.endsBy - END_MARGIN_MS;
  }

  /**
   * Reads one minute of one shard and publishes what is due in it.
   *
   * @returns how many PENDING rows it found, and how many of them it leaves so, whoever holds their lease
   */
  async function sweepMinute(
    shard: number,
    minute: string,
    consistent: boolean,
    tally: Tally,
  ): Promise<{ found: number; left: number }> {
    const pk = outboxPartition(minute, shard);
    let found = 0;
    let left = 0;
    let oldest = Number.POSITIVE_INFINITY;
    let leaseUntil = Number.POSITIVE_INFINITY;
    let cursor: Item | undefined;
    do {
      const page = await table.query({
        pk,
        skPrefix: 'EVENT#',
        where: { status: 'PENDING' },
        consistent,
        cursor,
      });
      const rows = page.items.flatMap((item) => pendingRow(item) ?? []);
      // PENDING, but not as Mailroom writes it: nobody can publish it, and nobody must overlook it.
      const unreadable = page.items.length - rows.length;
      if (unreadable > 0)
        telemetry.log.error('Outbox rows cannot be read; mend them by hand', { pk, unreadable });
      found += unreadable;
      left += unreadable;
      const now = clock.now();
      const due = rows.filter((row) => row.leaseUntil + LEASE_MARGIN_MS < now);
      const { settled, served } = await publishDue(relayOf(shard), due, tally);
      for (const row of rows) {
        found += 1;
        if (settled.has(row.eventId)) continue;
        left += 1;
        oldest = Math.min(oldest, eventIdTime(row.eventId));
        if (!served.has(row.eventId)) leaseUntil = Math.min(leaseUntil, row.leaseUntil);
      }
      cursor = page.cursor;
    } while (cursor !== undefined);
    if (left > 0) tally.left.set(pk, { rows: left, oldest, leaseUntil });
    else tally.left.delete(pk);
    return { found, left };
  }

  /**
   * Claims, publishes and marks.
   *
   * @returns the ids of those that are PENDING no more, and of those that had their turn: their lease is a new one
   */
  async function publishDue(
    relay: Relay,
    due: readonly PendingRow[],
    tally: Tally,
  ): Promise<{ settled: ReadonlySet<string>; served: ReadonlySet<string> }> {
    const settled = new Set<string>();
    const served = new Set<string>();
    const { breaker } = tally;
    for (let i = 0; i < due.length && goesOn(tally); i += GROUP_ROWS) {
      const group = due.slice(i, i + GROUP_ROWS).filter((row) => !breaker.isOpen(row.entry.source));
      const { claimed, failed } = await relay.claim(group);
      for (const row of group) if (!failed.includes(row)) served.add(row.eventId);
      const report = await relay.publish(claimed, breaker, () => clock.now() < tally.lastPublishAt);
      for (const row of report.published) if (!report.unmarked.includes(row)) settled.add(row.eventId);
      tally.published += report.published.length;
      const now = clock.now();
      const backoff = Math.min(BUS_BACKOFF_SWEEPS * config.sweepEveryMs, BUS_BACKOFF_MAX_MS);
      await relay.release([
        // Scattered, so that one whose call always fails does not meet the same neighbours at every try.
        ...report.failed.map(({ row, error }) => ({
          row,
          leaseUntil: now + backoffMs(1, backoff, backoff, random),
          error,
        })),
        ...[...report.skipped, ...report.late].map((row) => ({ row, leaseUntil: now })),
      ]);
    }
    return { settled, served };
  }

  /**
   * A minute that some pass left unsettled: read strongly consistently, after its pointer's token was read. The
   * pointer goes only when the minute is clean, and only under that token: whoever put it anew knows of more.
   */
  async function sweepUnsettled(pointer: UnsettledPointer, tally: Tally): Promise<void> {
    const shard = Number(pointer.PK.slice('SWEEP#'.length));
    const minute = pointer.SK;
    const { found, left } = await sweepMinute(shard, minute, true, tally);
    if (left > 0) await putUnsettled(shard, minute);
    if (found > 0) return; // if they are all published now, the next pass finds it clean
    try {
      await table.write({
        Delete: {
          Key: { PK: pointer.PK, SK: pointer.SK },
          ExpressionAttributeNames: { '#token': 'token' },
          // One without a token was put by hand.
          ...(pointer.token === undefined
            ? { ConditionExpression: 'attribute_not_exists(#token)' }
            : {
                ConditionExpression: '#token = :token',
                ExpressionAttributeValues: { ':token': pointer.token },
              }),
        },
      });
    } catch (error) {
      if (!isConditionFailed(error)) throw error;
    }
  }

  async function putUnsettled(shard: number, minute: string): Promise<void> {
    const pointer: UnsettledPointer = {
      ...unsettledKey(shard, minute),
      schema: SCHEMA,
      token: mintToken(random),
    };
    await table.write({ Put: { Item: { ...pointer } } });
  }

  async function unsettledPointers(): Promise<UnsettledPointer[][]> {
    return pMap(
      Array.from({ length: shards }, (_, shard) => unsettledKey(shard, '').PK),
      async (pk) => {
        const pointers: UnsettledPointer[] = [];
        let cursor: Item | undefined;
        do {
          const page = await table.query({ pk, cursor });
          pointers.push(...page.items.map((item) => asRow<UnsettledPointer>(item)));
          cursor = page.cursor;
        } while (cursor !== undefined);
        return pointers;
      },
      { concurrency: shardsAtOnce },
    );
  }

  async function countDead(): Promise<number> {
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
  }

  return {
    pass,
    handler: async (event, context) => {
      const startedAt = clock.now();
      const endsBy = startedAt + context.getRemainingTimeInMillis();
      const range = rangeToSweep(event, startedAt);
      if (range !== undefined) return sweepNow(range, endsBy);
      let report = await pass(endsBy);
      telemetry.flush();
      await deps.watch?.(telemetry, endsBy);
      telemetry.flush();
      // An invocation a minute: what comes more often happens inside it.
      const loopUntil = Math.min(startedAt + MINUTE_MS, endsBy - END_MARGIN_MS);
      while (config.sweepEveryMs < MINUTE_MS && clock.now() + config.sweepEveryMs < loopUntil) {
        await clock.sleep(config.sweepEveryMs);
        report = { ...report, published: report.published + (await youngest(endsBy)) };
      }
      telemetry.flush();
      return report;
    },
  };

  /** Reads exactly this range, whatever the ages of its minutes. Where the ordinary passes have come to stays as it is. */
  async function sweepNow(range: SweepRange, endsBy: number): Promise<SweepRangeReport> {
    const callEndsBy = clock.now() + RANGE_CALL_MS + END_MARGIN_MS;
    const tally = newTally(Math.min(endsBy, callEndsBy), config.publishTimeoutMs);
    shards = await shardsEverUsed(table, config.shards);
    let sweptTo = range.since;
    let pending = 0;
    for (const { minute, to } of rangeSteps(range)) {
      const work = Array.from({ length: shards }, (_, shard) => [{ shard, minute }]);
      const whole = await eachShard(work, tally, async ({ shard, minute }) => {
        const { left } = await sweepMinute(shard, minute, true, tally);
        if (left > 0) await putUnsettled(shard, minute);
      });
      if (!whole) break; // the next call reads this step again, and counts what it leaves
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
    telemetry.flush();
    return report;
  }

  /** The youngest minutes, in all shards. They need no pointer: their first age has not come yet. */
  async function youngest(endsBy: number): Promise<number> {
    const tally = newTally(endsBy, config.publishTimeoutMs);
    const minutes = youngestMinutes(clock.now());
    const work = Array.from({ length: shards }, (_, shard) => minutes.map((minute) => ({ shard, minute })));
    await eachShard(work, tally, async ({ shard, minute }) => {
      await sweepMinute(shard, minute, false, tally);
    });
    return tally.published;
  }
}

/** How many shards are read at once, and how many calls each of them has under way. */
function shares(
  shards: number,
  concurrency: number | undefined,
): [shardsAtOnce: number, callsOfShard: number] {
  if (concurrency === undefined) return [SHARDS_AT_ONCE, CALLS_OF_SHARD];
  const shardsAtOnce = Math.min(SHARDS_AT_ONCE, shards, concurrency);
  return [shardsAtOnce, Math.floor(concurrency / shardsAtOnce)];
}

/** What a mark may take, milliseconds. */
const MARK_MS = 3_000;

function newTally(endsBy: number, publishTimeoutMs: number): Tally {
  return {
    published: 0,
    left: new Map(),
    breaker: createBusBreaker(),
    endsBy,
    lastPublishAt: endsBy - publishTimeoutMs - MARK_MS,
  };
}
