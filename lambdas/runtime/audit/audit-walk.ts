import pMap from 'p-map';
import type { Envelope } from '../event.ts';
import { eventIdTime, isEventId, minuteOf } from '../event-id.ts';
import { consumersOf, type Directory } from '../operate/directory.ts';
import { MINUTE_MS } from '../relay/sweep-minutes.ts';
import { shardsEverUsed } from '../relay/sweep-state.ts';
import { asRow, type InboxRow, inboxKey, type OutboxRow, outboxPartition } from '../rows.ts';
import type { Item, Table } from '../table.ts';
import type { AuditRange } from './audit.ts';
import type { Doubles } from './audit-doubles.ts';
import type { Ledger, PublishedEvent } from './audit-ledger.ts';
import { isOverdue } from './audit-verdict.ts';

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
 * @returns the counts, and until when it has seen everything, epoch milliseconds
 */
export async function walkOutbox(
  deps: WalkDeps,
  { since, until, onProgress }: AuditRange,
  goesOn: () => boolean,
): Promise<WalkCounts & { readonly seenUntil: number }> {
  const { table, directory, ledger, doubles, overdueAt } = deps;
  const counts: WalkCounts = { events: 0, published: 0, pending: 0, dead: 0, discarded: 0, unreadable: 0 };
  const shards = await shardsEverUsed(table, directory.mailroom.shards);

  /** An event whose row cannot be read, or which is in no state that there is, is counted as that. */
  async function enter(item: Item): Promise<void> {
    const row = asRow<OutboxRow>(item);
    const eventId = String(row.SK).slice('EVENT#'.length);
    if (isEventId(eventId)) {
      const mintedAt = eventIdTime(eventId);
      if (mintedAt < since || mintedAt >= until) return;
    }
    counts.events += 1;
    const envelope = envelopeOf(row);
    const count = COUNT_OF[row.status];
    if (envelope?.eventId !== eventId || count === undefined) {
      counts.unreadable += 1;
      return;
    }
    counts[count] += 1;
    doubles.add(row.source, envelope);
    if (row.status !== 'PUBLISHED') return;
    const publishedAt = row.publishedAt ?? eventIdTime(eventId);
    const sentAt = Math.max(publishedAt, row.resentAt ?? 0);
    const event = { eventId, source: row.source, type: row.type, publishedAt, sentAt };
    for (const { name } of consumersOf(directory, row)) await enterAt(name, event);
  }

  async function enterAt(consumer: string, event: PublishedEvent): Promise<void> {
    ledger.expect(consumer);
    const item = await table.get(inboxKey(consumer, event.eventId));
    const row = item === undefined ? undefined : asRow<InboxRow>(item);
    if (row === undefined || isOverdue(row, overdueAt)) ledger.undecided(consumer, { ...event, row });
    else ledger.row(consumer, row);
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
    const partitions = minutes.flatMap((minute) =>
      Array.from({ length: shards }, (_, shard) => outboxPartition(minute, shard)),
    );
    const whole = await pMap(partitions, readPartition, { concurrency: PARTITIONS_AT_ONCE });
    if (whole.includes(false)) break;
  }
  return { ...counts, seenUntil: Math.min(from, until) };
}

const COUNT_OF: Readonly<Record<OutboxRow['status'], 'published' | 'pending' | 'dead' | 'discarded'>> = {
  PUBLISHED: 'published',
  PENDING: 'pending',
  DEAD: 'dead',
  DISCARDED: 'discarded',
};

function envelopeOf(row: OutboxRow): Envelope | undefined {
  try {
    return JSON.parse(row.envelope) as Envelope;
  } catch {
    return undefined;
  }
}
