import { CLOCK_SKEW_MS } from '../clock.ts';
import { eventIdTime } from '../store/event-id.ts';
import { EVENT_PREFIX } from '../store/keys.ts';
import { claimEvents, releaseEvents } from '../store/outbox-transitions.ts';
import { type PendingRow, pendingRow, pendingSince } from '../store/pending-row.ts';
import { backoffMs } from '../store/retry.ts';
import { outboxPartition } from '../store/rows.ts';
import type { Item } from '../store/table.ts';
import { pagesOf } from '../store/table-requests.ts';
import type { DeclaredSources } from './declared-sources.ts';
import { groupsOf } from './entry-batches.ts';
import { GROUP_ROWS, publishEvents, type RelayContext, rowsThat } from './relay.ts';
import { MINUTE_MS } from './sweep-minutes.ts';
import { goesOn, hasTime, type Left, type Tally } from './sweep-tally.ts';

/** Dependencies shared by all steps of a sweep. */
export interface SweepContext
  extends Pick<RelayContext, 'config' | 'table' | 'clock' | 'random' | 'telemetry'> {
  readonly declared: DeclaredSources;
  /** One per shard that is read at a time, so that a shard full of failing events does not use up the calls of the others. */
  readonly relays: readonly RelayContext[];
}

/** One minute of one shard. */
export interface SweepPartition {
  readonly shard: number;
  /** In the format of the keys. */
  readonly minute: string;
}

/** A row that the bus failed to accept is due again after this many sweeps, so that it does not block others. */
const BUS_BACKOFF_SWEEPS = 3;
const BUS_BACKOFF_MAX_MS = 15 * MINUTE_MS;

const NOTHING_LEFT: Left = {
  rows: 0,
  undeclared: 0,
  oldest: Number.POSITIVE_INFINITY,
  leaseUntil: Number.POSITIVE_INFINITY,
};

/**
 * Reads one minute of one shard and publishes the rows that are due.
 *
 * @param consistent - use strongly consistent reads
 * @returns true if the minute is clean: read completely, with no row left PENDING under any lease
 */
export async function sweepPartition(
  context: SweepContext,
  { shard, minute }: SweepPartition,
  consistent: boolean,
  tally: Tally,
): Promise<boolean> {
  const pk = outboxPartition(minute, shard);
  const query = { pk, skPrefix: EVENT_PREFIX, where: { status: 'PENDING' }, consistent };
  let left = NOTHING_LEFT;
  let whole = true;
  for await (const { items, cursor } of pagesOf(context.table, query)) {
    left = together(left, await sweepPage(context, shard, pk, items, tally));
    // Unread pages may hold more rows.
    whole = cursor === undefined || hasTime(tally, context.clock.now());
    if (!whole) break;
  }
  if (left.rows > 0) tally.left.set(pk, left);
  else tally.left.delete(pk);
  return whole && left.rows === 0;
}

function together(a: Left, b: Left): Left {
  return {
    rows: a.rows + b.rows,
    undeclared: a.undeclared + b.undeclared,
    oldest: Math.min(a.oldest, b.oldest),
    leaseUntil: Math.min(a.leaseUntil, b.leaseUntil),
  };
}

async function sweepPage(
  context: SweepContext,
  shard: number,
  pk: string,
  items: readonly Item[],
  tally: Tally,
): Promise<Left> {
  const { clock, telemetry, declared, relays } = context;
  const read = items.map((item) => ({ item, row: pendingRow(item) }));
  // PENDING, but in a form that this version does not write: it cannot be published, and must not be overlooked.
  const unreadable = read.filter(({ row }) => row === undefined).map(({ item }) => item);
  if (unreadable.length > 0)
    telemetry.log.error(
      'Outbox rows cannot be read: deploy the version that wrote them, or fix them by hand',
      { pk, unreadable: unreadable.length },
    );
  const rows = read.flatMap(({ row }) => row ?? []);
  const undeclared = rows.filter((row) => !declared.has(row));
  declared.report(undeclared);
  const now = clock.now();
  const ours = rows.filter(declared.has);
  const due = ours.filter((row) => row.leaseUntil + CLOCK_SKEW_MS < now);
  const relay = relays[shard % relays.length] as RelayContext;
  const { settled, served } = await publishDue(relay, due, tally);
  const waiting = ours.filter(({ eventId }) => !settled.has(eventId));
  const since = [
    ...unreadable.map((item) => pendingSince(item) ?? Number.POSITIVE_INFINITY),
    ...waiting.map(({ eventId }) => eventIdTime(eventId)),
  ];
  const unserved = waiting.filter(({ eventId }) => !served.has(eventId));
  return {
    rows: unreadable.length + undeclared.length + waiting.length,
    undeclared: undeclared.length,
    oldest: Math.min(...since),
    leaseUntil: Math.min(...unserved.map(({ leaseUntil }) => leaseUntil)),
  };
}

/**
 * Claims, publishes and marks rows.
 *
 * @returns the ids of rows that are no longer PENDING, and of rows that had their turn and have a new lease
 */
async function publishDue(
  relay: RelayContext,
  due: readonly PendingRow[],
  tally: Tally,
): Promise<{ settled: ReadonlySet<string>; served: ReadonlySet<string> }> {
  const settled = new Set<string>();
  const served = new Set<string>();
  const { clock } = relay;
  const { breaker } = tally;
  for (const rows of groupsOf(due, GROUP_ROWS)) {
    if (!goesOn(tally, clock.now())) break;
    const group = rows.filter((row) => !breaker.isOpen(row.entry.source));
    const { claimed, failed } = await claimEvents(relay, group);
    for (const row of group) if (!failed.includes(row)) served.add(row.eventId);
    const outcomes = await publishEvents(relay, claimed, breaker, () => clock.now() < tally.lastPublishAt);
    for (const { eventId } of rowsThat(outcomes, 'published')) settled.add(eventId);
    tally.published += rowsThat(outcomes, 'published', 'unmarked').length;
    const now = clock.now();
    const backoff = Math.min(BUS_BACKOFF_SWEEPS * relay.config.sweepEveryMs, BUS_BACKOFF_MAX_MS);
    await releaseEvents(relay, [
      // The delays are random, so that a row whose call always fails is not batched with the same rows on every try.
      ...outcomes
        .filter(({ is }) => is === 'bus' || is === 'access')
        .map(({ row, error }) => ({
          row,
          leaseUntil: now + backoffMs(1, backoff, backoff, relay.random),
          error,
        })),
      ...rowsThat(outcomes, 'skipped', 'leaseTooShort').map((row) => ({ row, leaseUntil: now })),
    ]);
  }
  return { settled, served };
}
