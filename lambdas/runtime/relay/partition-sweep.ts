import { CLOCK_SKEW_MS, type Clock } from '../clock.ts';
import type { RelayConfig } from '../config.ts';
import { eventIdTime, type RandomBytes } from '../store/event-id.ts';
import { backoffMs } from '../store/retry.ts';
import { outboxPartition } from '../store/rows.ts';
import type { Item, Table } from '../store/table.ts';
import type { Telemetry } from '../telemetry.ts';
import { declaredSources } from './declared-sources.ts';
import { type PendingRow, pendingRow, pendingSince } from './pending-row.ts';
import { GROUP_ROWS, type Relay } from './relay.ts';
import { MINUTE_MS } from './sweep-minutes.ts';
import { goesOn, hasTime, type Tally } from './sweep-tally.ts';

/** What each part of the sweep needs. */
export interface SweepDeps {
  readonly config: RelayConfig;
  readonly table: Table;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
}

/**
 * Reads one minute of one shard, and publishes what is due in it.
 *
 * @param minute - as it stands in the key
 * @param consistent - whether it is read strongly consistently
 * @returns how many rows it leaves PENDING, whoever holds their lease
 */
export type PartitionSweep = (
  shard: number,
  minute: string,
  consistent: boolean,
  tally: Tally,
) => Promise<number>;

/** What the bus failed to take is due again after so many sweeps: until then it does not stand in front of others. */
const BUS_BACKOFF_SWEEPS = 3;
const BUS_BACKOFF_MAX_MS = 15 * MINUTE_MS;

/** Makes the sweep of partitions. @param relayOf - whose calls a shard may use */
export function createPartitionSweep(deps: SweepDeps, relayOf: (shard: number) => Relay): PartitionSweep {
  const { config, table, clock, random, telemetry } = deps;
  const declared = declaredSources(config, telemetry);

  return async (shard, minute, consistent, tally) => {
    const pk = outboxPartition(minute, shard);
    let left = 0;
    let undeclared = 0;
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
      const read = page.items.flatMap((item) => pendingRow(item) ?? []);
      // PENDING, but not as this version writes it: it cannot be published, and must not be overlooked.
      const unreadable = page.items.length - read.length;
      if (unreadable > 0)
        telemetry.log.error(
          'Outbox rows cannot be read: deploy the version that wrote them, or fix them by hand',
          { pk, unreadable },
        );
      left += unreadable;
      if (unreadable > 0) oldest = page.items.reduce((time, item) => olderUnreadable(time, item), oldest);
      const rows = read.filter(declared.has);
      const strangers = read.filter((row) => !declared.has(row));
      declared.report(strangers);
      left += strangers.length;
      undeclared += strangers.length;
      const now = clock.now();
      const due = rows.filter((row) => row.leaseUntil + CLOCK_SKEW_MS < now);
      const { settled, served } = await publishDue(relayOf(shard), due, tally);
      for (const row of rows) {
        if (settled.has(row.eventId)) continue;
        left += 1;
        oldest = Math.min(oldest, eventIdTime(row.eventId));
        if (!served.has(row.eventId)) leaseUntil = Math.min(leaseUntil, row.leaseUntil);
      }
      cursor = page.cursor;
    } while (cursor !== undefined && hasTime(tally, clock.now()));
    if (left > 0) tally.left.set(pk, { rows: left, undeclared, oldest, leaseUntil });
    else tally.left.delete(pk);
    // A page that was not read may hold more: the minute is not clean.
    return cursor === undefined ? left : left + 1;
  };

  /** The earlier of a time and the time of a row that cannot be read: it waits, and its age must show. */
  function olderUnreadable(time: number, item: Item): number {
    return pendingRow(item) === undefined ? Math.min(time, pendingSince(item) ?? time) : time;
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
    for (let i = 0; i < due.length && goesOn(tally, clock.now()); i += GROUP_ROWS) {
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
        ...[...report.skipped, ...report.leaseTooShort].map((row) => ({ row, leaseUntil: now })),
      ]);
    }
    return { settled, served };
  }
}
