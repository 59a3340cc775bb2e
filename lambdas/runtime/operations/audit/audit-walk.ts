import pMap from 'p-map';
import type { Envelope } from '../../event.ts';
import { parseJson } from '../../json-depth.ts';
import { MINUTE_MS } from '../../relay/sweep-minutes.ts';
import { shardsEverUsed } from '../../relay/sweep-state.ts';
import { eventIdTime, minuteOf } from '../../store/event-id.ts';
import { isOverdue } from '../../store/inbox-state.ts';
import { EVENT_PREFIX, eventIdInSortKey } from '../../store/keys.ts';
import { inboxKey, type OutboxRow, outboxPartition } from '../../store/rows.ts';
import { isUnreadable, readInboxRow, readOutboxRow } from '../../store/stored-rows.ts';
import type { Item, Table } from '../../store/table.ts';
import { pagesOf } from '../../store/table-requests.ts';
import { consumersOf, type Directory } from '../directory.ts';
import type { Doubles } from './audit-doubles.ts';
import type { Ledger, PublishedEvent, UnreadableFinding } from './audit-ledger.ts';

/** How many partitions are read at once, and how many inbox rows of one page. */
const PARTITIONS_AT_ONCE = 8;
const ROWS_AT_ONCE = 8;

/** Minutes are read in groups of so many, the oldest first: after each, the audit knows how far it has come. */
const MINUTES_AT_ONCE = 10;

/** The parts that the walk needs. */
interface WalkDeps {
  readonly table: Pick<Table, 'get' | 'query'>;
  readonly directory: Directory;
  readonly ledger: Ledger;
  readonly doubles: Doubles;
  /** A message that was to be tried again before this is overdue, epoch milliseconds. */
  readonly overdueAt: number;
  /** Whether there is time for more. */
  readonly goesOn: () => boolean;
}

/** The part of the outbox that is read. All times are epoch milliseconds. */
export interface WalkRange {
  /** The events that were minted from this on, */
  readonly since: number;
  /** and before this. */
  readonly until: number;
  /** Events that were minted in this part of the range are left out. @default none */
  readonly gap?: { readonly since: number; readonly until: number } | undefined;
  /** Told now and then how far it is. */
  readonly onProgress?:
    | ((progress: { readonly minute: string; readonly events: number }) => void)
    | undefined;
}

/** What the walk counted. */
interface WalkCounts {
  events: number;
  published: number;
  pending: number;
  dead: number;
  discarded: number;
  unreadable: number;
}

/** What the walk found. */
interface WalkReport {
  readonly counts: WalkCounts;
  /** The outbox rows that cannot be read. */
  readonly unreadable: UnreadableFinding[];
  /** Until when it has seen everything, epoch milliseconds. */
  readonly seenUntil: number;
}

/** A walk that is under way. */
type Walk = WalkDeps & WalkRange & Omit<WalkReport, 'seenUntil'>;

/**
 * Reads every minute of the range in every shard, eventually consistent, and enters each published event into the books of
 * the consumers that must see it.
 */
export async function walkOutbox(deps: WalkDeps, range: WalkRange): Promise<WalkReport> {
  const { table, directory } = deps;
  const { since, until, gap = NO_GAP, onProgress } = range;
  const counts: WalkCounts = { events: 0, published: 0, pending: 0, dead: 0, discarded: 0, unreadable: 0 };
  const walk: Walk = { ...deps, ...range, counts, unreadable: [] };
  const shards = await shardsEverUsed(table, directory.mailroom.shards);
  let from = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  for (; from < until; from += MINUTES_AT_ONCE * MINUTE_MS) {
    const left = Math.ceil((until - from) / MINUTE_MS);
    const minutes = Array.from({ length: Math.min(MINUTES_AT_ONCE, left) }, (_, i) =>
      minuteOf(from + i * MINUTE_MS),
    );
    onProgress?.({ minute: minutes[0] ?? '', events: counts.events });
    const read = minutes.filter((minute) => !isInside(minute, gap));
    const partitions = read.flatMap((minute) =>
      Array.from({ length: shards }, (_, shard) => outboxPartition(minute, shard)),
    );
    const whole = await pMap(partitions, (pk) => readPartition(walk, pk), {
      concurrency: PARTITIONS_AT_ONCE,
    });
    if (whole.includes(false)) break;
  }
  return { counts, unreadable: walk.unreadable, seenUntil: Math.min(from, until) };
}

/** Reads a minute of a shard. @returns whether all of it was read */
async function readPartition(walk: Walk, pk: string): Promise<boolean> {
  if (!walk.goesOn()) return false;
  for await (const { items, cursor } of pagesOf(walk.table, { pk, skPrefix: EVENT_PREFIX })) {
    await pMap(items, (item) => enter(walk, item), { concurrency: ROWS_AT_ONCE });
    if (cursor !== undefined && !walk.goesOn()) return false;
  }
  return true;
}

/** Counts an outbox row. One that cannot be read, or which is in no state that there is, is counted as that. */
async function enter(walk: Walk, item: Item): Promise<void> {
  const { since, until, gap = NO_GAP, counts, unreadable, doubles, directory } = walk;
  const row = readOutboxRow(item);
  if (row === undefined) return;
  const eventId = eventIdInSortKey(row.SK);
  if (eventId !== undefined) {
    const mintedAt = eventIdTime(eventId);
    if (mintedAt < since || mintedAt >= until || (mintedAt >= gap.since && mintedAt < gap.until)) return;
  }
  counts.events += 1;
  const envelope = isUnreadable(row) ? undefined : envelopeOf(row);
  if (isUnreadable(row) || envelope === undefined || envelope.eventId !== eventId) {
    counts.unreadable += 1;
    const problem = isUnreadable(row) ? row.unreadable : 'its "envelope" is not that of its event';
    unreadable.push({ eventId: row.SK.slice(EVENT_PREFIX.length), consumer: null, problem });
    return;
  }
  counts[COUNT_OF[row.status]] += 1;
  doubles.add(row.source, envelope);
  if (row.status !== 'PUBLISHED') return;
  const publishedAt = row.publishedAt ?? eventIdTime(envelope.eventId);
  const sentAt = Math.max(publishedAt, row.resentAt ?? 0);
  const event = { eventId: envelope.eventId, source: row.source, type: row.type, publishedAt, sentAt };
  for (const { name } of consumersOf(directory, row)) await enterAt(walk, name, event);
}

async function enterAt(
  { table, ledger, overdueAt }: Walk,
  consumer: string,
  event: PublishedEvent,
): Promise<void> {
  ledger.expect(consumer);
  const row = readInboxRow(await table.get(inboxKey(consumer, event.eventId)));
  if (row === undefined) ledger.undecided(consumer, event);
  else if (!isUnreadable(row) && isOverdue(row, overdueAt)) ledger.undecided(consumer, { ...event, row });
  else ledger.row(consumer, event.eventId, row);
}

const NO_GAP = { since: 0, until: 0 };

/** Whether all of a minute is left out. */
function isInside(minute: string, gap: { readonly since: number; readonly until: number }): boolean {
  const startsAt = Date.parse(`${minute}Z`);
  return startsAt >= gap.since && startsAt + MINUTE_MS <= gap.until;
}

const COUNT_OF: Readonly<Record<OutboxRow['status'], 'published' | 'pending' | 'dead' | 'discarded'>> = {
  PUBLISHED: 'published',
  PENDING: 'pending',
  DEAD: 'dead',
  DISCARDED: 'discarded',
};

function envelopeOf(row: OutboxRow): Envelope | undefined {
  try {
    return parseJson(row.envelope) as Envelope;
  } catch {
    return undefined;
  }
}
