import pMap from 'p-map';
import type { Envelope } from '../../event.ts';
import { parseJson } from '../../json-depth.ts';
import { MINUTE_MS } from '../../relay/sweep-minutes.ts';
import { shardsEverUsed } from '../../relay/sweep-state.ts';
import { eventIdTime, isEventId, minuteOf } from '../../store/event-id.ts';
import { isOverdue } from '../../store/inbox-state.ts';
import { inboxKey, type OutboxRow, outboxPartition } from '../../store/rows.ts';
import { isUnreadable, readInboxRow, readOutboxRow } from '../../store/stored-rows.ts';
import type { Item, Table } from '../../store/table.ts';
import { consumersOf, type Directory } from '../directory.ts';
import type { AuditRange } from './audit.ts';
import type { Doubles } from './audit-doubles.ts';
import type { Ledger, PublishedEvent, UnreadableFinding } from './audit-ledger.ts';

/** How many partitions are read at once, and how many inbox rows of one page. */
const PARTITIONS_AT_ONCE = 8;
const ROWS_AT_ONCE = 8;

/** Minutes are read in groups of so many, the oldest first: after each, the audit knows how far it has come. */
const MINUTES_AT_ONCE = 10;

/** What the walk needs. */
interface WalkDeps {
  readonly table: Pick<Table, 'get' | 'query'>;
  readonly directory: Directory;
  readonly ledger: Ledger;
  readonly doubles: Doubles;
  /** Whoever was to try a message again before this has not, epoch milliseconds. */
  readonly overdueAt: number;
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

/**
 * Reads every minute of the range in every shard, eventually consistent, and enters each published event into the books of
 * the consumers that must see it.
 *
 * @returns the counts, the outbox rows that cannot be read, and until when it has seen everything, epoch milliseconds
 */
export async function walkOutbox(
  deps: WalkDeps,
  { since, until, gap = NO_GAP, onProgress }: AuditRange,
  goesOn: () => boolean,
): Promise<{
  readonly counts: WalkCounts;
  readonly unreadable: readonly UnreadableFinding[];
  readonly seenUntil: number;
}> {
  const { table, directory, ledger, doubles, overdueAt } = deps;
  const counts: WalkCounts = { events: 0, published: 0, pending: 0, dead: 0, discarded: 0, unreadable: 0 };
  const unreadable: UnreadableFinding[] = [];
  const shards = await shardsEverUsed(table, directory.mailroom.shards);

  /** An event whose row cannot be read, or which is in no state that there is, is counted as that. */
  async function enter(item: Item): Promise<void> {
    const row = readOutboxRow(item);
    if (row === undefined) return;
    const eventId = row.SK.slice('EVENT#'.length);
    if (isEventId(eventId)) {
      const mintedAt = eventIdTime(eventId);
      if (mintedAt < since || mintedAt >= until || (mintedAt >= gap.since && mintedAt < gap.until)) return;
    }
    counts.events += 1;
    const envelope = isUnreadable(row) ? undefined : envelopeOf(row);
    if (isUnreadable(row) || envelope?.eventId !== eventId) {
      counts.unreadable += 1;
      const problem = isUnreadable(row) ? row.unreadable : 'its "envelope" is not that of its event';
      unreadable.push({ eventId, consumer: null, problem });
      return;
    }
    counts[COUNT_OF[row.status]] += 1;
    doubles.add(row.source, envelope);
    if (row.status !== 'PUBLISHED') return;
    const publishedAt = row.publishedAt ?? eventIdTime(eventId);
    const sentAt = Math.max(publishedAt, row.resentAt ?? 0);
    const event = { eventId, source: row.source, type: row.type, publishedAt, sentAt };
    for (const { name } of consumersOf(directory, row)) await enterAt(name, event);
  }

  async function enterAt(consumer: string, event: PublishedEvent): Promise<void> {
    ledger.expect(consumer);
    const row = readInboxRow(await table.get(inboxKey(consumer, event.eventId)));
    if (row === undefined) ledger.undecided(consumer, event);
    else if (!isUnreadable(row) && isOverdue(row, overdueAt)) ledger.undecided(consumer, { ...event, row });
    else ledger.row(consumer, event.eventId, row);
  }

  /** @returns whether all of it was read */
  async function readPartition(pk: string): Promise<boolean> {
    let cursor: Item | undefined;
    do {
      if (!goesOn()) return false;
      const page = await table.query({ pk, skPrefix: 'EVENT#', cursor });
      await pMap(page.items, enter, { concurrency: ROWS_AT_ONCE });
      cursor = page.cursor;
    } while (cursor !== undefined);
    return true;
  }

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
    const whole = await pMap(partitions, readPartition, { concurrency: PARTITIONS_AT_ONCE });
    if (whole.includes(false)) break;
  }
  return { counts, unreadable, seenUntil: Math.min(from, until) };
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
