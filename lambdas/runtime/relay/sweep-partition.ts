import { CLOCK_SKEW_MS } from '../base/clock.ts';
import { MINUTE_MS } from '../base/units.ts';
import { groupsOf } from '../bus/event-bus.ts';
import { type PendingRow, pendingRow, pendingSince } from '../outbox/pending-row.ts';
import { backoffMs } from '../store/backoff.ts';
import { claimEvents, releaseEvents } from '../store/dynamo/outbox-writes.ts';
import { NOTHING_LEFT, type WalkedPart } from '../store/dynamo/unsettled-minutes.ts';
import { EVENT_PREFIX } from '../store/keys.ts';
import { outboxPartition } from '../store/outbox-partition.ts';
import type { LeftPending } from '../store/outbox-row.ts';
import { type Item, pagesOf } from '../store/table.ts';
import type { DeclaredSources } from './declared-sources.ts';
import { GROUP_ROWS, publishEvents, withOutcome } from './publish-events.ts';
import type { RelayContext } from './relay-context.ts';
import { hasTime, hasTimeLeft, type Tally } from './sweep-tally.ts';

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

/** Options for reading one minute of a shard. */
export interface PartitionRead {
  /** Use strongly consistent reads. */
  readonly consistent: boolean;
  /** The part that earlier passes have read. @default none */
  readonly from?: WalkedPart | undefined;
}

/** The end of reading a minute of a shard. */
export interface PartitionSweep {
  /** True if the minute was read completely, with no row left PENDING under any lease. */
  readonly clean: boolean;
  /** The part that has been read; absent if the minute was read to its end. */
  readonly stopped?: WalkedPart | undefined;
}

/** Reads one minute of one shard, while there is time, and publishes the rows that are due. */
export async function sweepPartition(
  context: SweepContext,
  { shard, minute }: SweepPartition,
  { consistent, from = { left: NOTHING_LEFT } }: PartitionRead,
  tally: Tally,
): Promise<PartitionSweep> {
  const pk = outboxPartition(minute, shard);
  const cursor = from.after === undefined ? undefined : { PK: pk, SK: from.after };
  const query = { pk, skPrefix: EVENT_PREFIX, where: { status: 'PENDING' }, consistent };
  let walked = from;
  let left = from.left;
  let whole = true;
  for await (const page of pagesOf(context.table, query, cursor)) {
    const found = await sweepPage(context, shard, pk, page.items, tally);
    left = together(left, found);
    const inTime = hasTime(tally, context.clock.now());
    // Rows that had no turn are read again: the walk goes on at the beginning of their page.
    whole = inTime || (page.cursor === undefined && found.untried === 0);
    if (inTime || found.untried === 0) walked = { after: page.cursor && String(page.cursor.SK), left };
    if (!whole) break;
  }
  if (left.rows > 0) tally.left.set(pk, left);
  else tally.left.delete(pk);
  return whole ? { clean: left.rows === 0 } : { clean: false, stopped: walked };
}

function together(a: LeftPending, b: LeftPending): LeftPending {
  return {
    rows: a.rows + b.rows,
    undeclared: a.undeclared + b.undeclared,
    ...earlyRows((a.early ?? 0) + (b.early ?? 0)),
    ...earliest('oldest', a.oldest, b.oldest),
    ...earliest('leaseUntil', a.leaseUntil, b.leaseUntil),
  };
}

function earlyRows(early: number): { readonly early?: number } {
  return early > 0 ? { early } : {};
}

/** The earliest of some times as a member; no member if there is none. */
function earliest<K extends string>(
  name: K,
  ...times: readonly (number | undefined)[]
): { readonly [N in K]?: number } {
  const earliest = Math.min(...times.map((time) => time ?? Number.POSITIVE_INFINITY));
  return (Number.isFinite(earliest) ? { [name]: earliest } : {}) as { readonly [N in K]?: number };
}

async function sweepPage(
  context: SweepContext,
  shard: number,
  pk: string,
  items: readonly Item[],
  tally: Tally,
): Promise<LeftPending & { readonly untried: number }> {
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
  const { settled, served, tried } = await publishDue(relay, due, tally);
  const isEarly = ({ dueAt = 0 }: PendingRow) => dueAt > now;
  const early = ours.filter(isEarly).length;
  const waiting = ours.filter((row) => !settled.has(row.eventId) && !isEarly(row));
  const since = [...unreadable.map(pendingSince), ...waiting.map((row) => row.since)];
  const unserved = waiting.filter(({ eventId }) => !served.has(eventId));
  return {
    rows: unreadable.length + undeclared.length + waiting.length + early,
    undeclared: undeclared.length,
    ...earlyRows(early),
    ...earliest('oldest', ...since),
    ...earliest('leaseUntil', ...unserved.map(({ leaseUntil }) => leaseUntil)),
    untried: due.length - tried,
  };
}

/**
 * Claims, publishes and marks rows.
 *
 * @returns the ids of rows that are no longer PENDING, and of rows that have a new lease; the number of rows that had their turn
 */
async function publishDue(
  relay: RelayContext,
  due: readonly PendingRow[],
  tally: Tally,
): Promise<{ settled: ReadonlySet<string>; served: ReadonlySet<string>; tried: number }> {
  const settled = new Set<string>();
  const served = new Set<string>();
  let tried = 0;
  const { clock } = relay;
  const { breaker } = tally;
  for (const rows of groupsOf(due, GROUP_ROWS)) {
    if (!hasTimeLeft(tally, clock.now())) break;
    const group = rows.filter((row) => !breaker.isOpen(row.entry.source));
    const { claimed, failed } = await claimEvents(relay, group);
    for (const row of group) if (!failed.includes(row)) served.add(row.eventId);
    const outcomes = await publishEvents(relay, claimed, breaker, () => clock.now() < tally.lastPublishAt);
    for (const { eventId } of withOutcome(outcomes, 'published')) settled.add(eventId);
    tally.published += withOutcome(outcomes, 'published', 'unmarked').length;
    const untried = withOutcome(outcomes, 'skipped', 'leaseTooShort');
    tried += group.length - untried.length;
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
      ...untried.map((row) => ({ row, leaseUntil: now })),
    ]);
  }
  return { settled, served, tried };
}
