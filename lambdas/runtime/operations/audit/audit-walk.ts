import pMap from 'p-map';
import { parseJson } from '../../base/json.ts';
import { MINUTE_MS } from '../../base/units.ts';
import type { Envelope } from '../../events/event.ts';
import { isHeartbeat } from '../../events/heartbeat-event.ts';
import { isOverdue } from '../../inbox/inbox-state.ts';
import { shardsOfMinute } from '../../relay/shards-of-minute.ts';
import { shardsEverUsed } from '../../relay/sweep-state.ts';
import { eventIdInSortKey, eventIdTime, minuteOf } from '../../store/event-id.ts';
import { EVENT_PREFIX } from '../../store/keys.ts';
import { SHARDS_MAX } from '../../store/outbox-partition.ts';
import type { OutboxRow } from '../../store/outbox-row.ts';
import { isUnreadable } from '../../store/stored-rows.ts';
import type { Table } from '../../store/table.ts';
import { atHome } from '../bus-consumers.ts';
import type { ConsumerEntry, Directory } from '../directory.ts';
import type { InboxRows, StoredMessageRow } from '../inbox-rows.ts';
import type { OutboxRows, StoredEventRow } from '../outbox-rows.ts';
import { consumersOf } from '../subscribed-events.ts';
import { type ChangedRows, lookAhead } from './audit-changed-rows.ts';
import type { Deliveries } from './audit-deliveries.ts';
import type { Doubles } from './audit-doubles.ts';
import type { Ledger, PublishedEvent, UnreadableFinding } from './audit-ledger.ts';

/** The number of partitions read concurrently, by default. */
const PARTITIONS_AT_ONCE = 8;

/** The number of inbox rows read at once, for each partition: of up to 400 KB each, 160 MB in memory at most. */
const ROWS_AT_ONCE = 50;

/** Minutes are read in groups of at least this size, oldest first: after each group, the audit reports its progress. */
const MINUTES_AT_ONCE = 10;

/**
 * Of so much of a range, the newest minute is searched for events in shards above those that the sweep reads: with 8 shards, 248 queries of
 * half a read unit, about 0.05 USD a month for an audit every 15 minutes.
 */
const PROBED_PART_MS = 30 * MINUTE_MS;

/** The most minutes that one audit searches so. */
const PROBES_MAX = 8;

/** Dependencies of the walk. */
interface WalkDeps {
  /** The number of partitions read concurrently. @default 8 */
  readonly partitionsAtOnce?: number | undefined;
  readonly table: Pick<Table, 'get' | 'query'>;
  readonly outbox: Pick<OutboxRows, 'inMinute'>;
  readonly inbox: Pick<InboxRows, 'byEvents'>;
  readonly directory: Directory;
  /** The inbox of a consumer of another Mailroom. */
  readonly inboxOf: (consumer: ConsumerEntry) => Pick<InboxRows, 'byEvent'>;
  readonly ledger: Ledger;
  readonly deliveries: Pick<Deliveries, 'add' | 'leaveOut'>;
  readonly doubles: Doubles;
  readonly changed: Pick<ChangedRows, 'event'>;
  /** A message whose retry was due before this time is overdue, epoch milliseconds. */
  readonly overdueAt: number;
  /** Returns true while there is time. */
  readonly hasTimeLeft: () => boolean;
}

/** The part of the outbox to read. All times are epoch milliseconds. */
export interface WalkRange {
  /** The earliest creation time of the events. */
  readonly since: number;
  /** The end of the range, exclusive. */
  readonly until: number;
  /** A part of the range to leave out, by the events' creation time. @default none */
  readonly gap?: { readonly since: number; readonly until: number } | undefined;
  /** Minutes after the range, in the format of the keys, in which only changed rows are looked for: those dated in the future. @default none */
  readonly ahead?: readonly string[] | undefined;
  /** Called with the progress from time to time. */
  readonly onProgress?:
    | ((progress: { readonly minute: string; readonly events: number }) => void)
    | undefined;
}

interface WalkCounts {
  events: number;
  published: number;
  pending: number;
  dead: number;
  discarded: number;
  cancelled: number;
  unreadable: number;
}

/** The results of the walk. */
export interface WalkReport {
  readonly counts: WalkCounts;
  /** The outbox rows that cannot be read. */
  readonly unreadable: UnreadableFinding[];
  /** The end of the completely read part, epoch milliseconds. */
  readonly seenUntil: number;
  /** The number of shards that the sweep reads, and the number that have events; equal unless a producer has more. */
  readonly shards: { readonly swept: number; readonly used: number };
}

/** A walk in progress. */
type Walk = WalkDeps & WalkRange & Omit<WalkReport, 'seenUntil' | 'shards'>;

/**
 * Reads every minute of the range in every shard, eventually consistent, and enters each published event into the accounts of the
 * consumers that must receive it.
 */
export async function walkOutbox(deps: WalkDeps, range: WalkRange): Promise<WalkReport> {
  const { table, directory } = deps;
  const counts: WalkCounts = {
    events: 0,
    published: 0,
    pending: 0,
    dead: 0,
    discarded: 0,
    cancelled: 0,
    unreadable: 0,
  };
  const walk: Walk = { ...deps, ...range, counts, unreadable: [] };
  const swept = await shardsEverUsed(table, directory.mailroom.shards);
  const seenUntil = await walkShards(walk, 0, swept);
  const used = Math.max(swept, await higherShards(walk, swept));
  await lookAhead({ ...walk, minutes: range.ahead, shards: used });
  return {
    counts,
    unreadable: walk.unreadable,
    seenUntil: Math.min(seenUntil, await walkShards(walk, swept, used)),
    shards: { swept, used },
  };
}

/** Reads some shards, up to `end`. @returns the end of the completely read part, epoch milliseconds */
async function walkShards(walk: Walk, first: number, end: number): Promise<number> {
  const { since, until, gap = NO_GAP, counts, onProgress, partitionsAtOnce = PARTITIONS_AT_ONCE } = walk;
  if (first >= end) return until;
  const minutesAtOnce = Math.max(MINUTES_AT_ONCE, Math.floor(partitionsAtOnce / (end - first)));
  let from = Math.floor(since / MINUTE_MS) * MINUTE_MS;
  for (; from < until; from += minutesAtOnce * MINUTE_MS) {
    const left = Math.ceil((until - from) / MINUTE_MS);
    const minutes = Array.from({ length: Math.min(minutesAtOnce, left) }, (_, i) =>
      minuteOf(from + i * MINUTE_MS),
    );
    onProgress?.({ minute: minutes[0] ?? '', events: counts.events });
    const read = minutes.filter((minute) => !isInside(minute, gap));
    const partitions = read.flatMap((minute) =>
      Array.from({ length: end - first }, (_, index) => ({ minute, shard: first + index })),
    );
    const whole = await pMap(partitions, (partition) => readPartition(walk, partition), {
      concurrency: partitionsAtOnce,
    });
    if (whole.includes(false)) break;
  }
  return Math.min(from, until);
}

/** Probes the shards above those that the sweep reads. @returns the number of shards up to the highest one with an event; 0 if none has one */
async function higherShards({ table, since, until, hasTimeLeft }: Walk, swept: number): Promise<number> {
  const probes = Math.min(PROBES_MAX, Math.ceil((until - since) / PROBED_PART_MS));
  const times = Array.from(
    { length: probes },
    (_, probe) => until - 1 - Math.floor((probe * (until - since)) / probes),
  );
  const range = { from: swept, to: SHARDS_MAX };
  const used = await pMap(times, async (at) =>
    hasTimeLeft() ? shardsOfMinute(table, minuteOf(at), range) : 0,
  );
  return Math.max(0, ...used);
}

/** Reads a minute of a shard. @returns true if it was read completely */
async function readPartition(
  walk: Walk,
  { minute, shard }: { readonly minute: string; readonly shard: number },
): Promise<boolean> {
  if (!walk.hasTimeLeft()) return false;
  const pages = walk.outbox.inMinute(minute, shard, {}, (row) => expectedOf(walk, row));
  for await (const { items, more } of pages) {
    await enterAll(walk, items.flat());
    if (more && !walk.hasTimeLeft()) return false;
  }
  return true;
}

/** An event that a consumer must have received. */
interface ExpectedEvent {
  readonly consumer: ConsumerEntry;
  readonly event: PublishedEvent;
}

function expectedOf(walk: Walk, row: StoredEventRow): ExpectedEvent[] {
  const { event, consumers = [] } = countEvent(walk, row) ?? {};
  return event === undefined ? [] : consumers.map((consumer) => ({ consumer, event }));
}

/** Enters the events of a page. An event keeps no envelope, so all events of a page fit into memory. */
async function enterAll(walk: Walk, expected: readonly ExpectedEvent[]): Promise<void> {
  const own = expected.filter(({ consumer }) => consumer.elsewhere === undefined);
  for (let from = 0; from < own.length; from += ROWS_AT_ONCE) {
    const batch = own.slice(from, from + ROWS_AT_ONCE);
    const messages = batch.map(({ consumer: { name }, event }) => ({
      consumer: name,
      eventId: event.eventId,
      event,
    }));
    await walk.inbox.byEvents(messages, ({ consumer, event }, row) => enterAt(walk, consumer, event, row));
  }
  const others = expected.filter(({ consumer }) => consumer.elsewhere !== undefined);
  const enter = async ({ consumer, event }: ExpectedEvent) => {
    const reading = walk.inboxOf(consumer).byEvent(atHome(consumer).name, event.eventId);
    // An unread row is judged later, which names the reason.
    enterAt(walk, consumer.name, event, await reading.catch(() => undefined));
  };
  await pMap(others, enter, { concurrency: ROWS_AT_ONCE });
}

/**
 * Counts an outbox row. A row that cannot be read, or has an unknown status, is counted as unreadable.
 *
 * @returns the event, and the consumers that must receive it, if it is published
 */
function countEvent(
  walk: Walk,
  row: StoredEventRow,
): { readonly event: PublishedEvent; readonly consumers: readonly ConsumerEntry[] } | undefined {
  const { since, until, gap = NO_GAP, counts, unreadable, doubles, changed, deliveries, directory } = walk;
  const eventId = eventIdInSortKey(row.SK);
  if (eventId !== undefined) {
    const mintedAt = eventIdTime(eventId);
    if (mintedAt < since || mintedAt >= until || (mintedAt >= gap.since && mintedAt < gap.until))
      return undefined;
  }
  counts.events += 1;
  const envelope = isUnreadable(row) ? undefined : envelopeOf(row);
  if (isUnreadable(row) || envelope === undefined || envelope.eventId !== eventId) {
    counts.unreadable += 1;
    const problem = isUnreadable(row) ? row.unreadable : 'its "envelope" is not that of its event';
    unreadable.push({ eventId: row.SK.slice(EVENT_PREFIX.length), consumer: null, problem });
    return undefined;
  }
  counts[COUNT_OF[row.status]] += 1;
  changed.event(row);
  doubles.add(row.source, envelope);
  if (isHeartbeat(row)) deliveries.leaveOut(envelope.eventId);
  const { source, type, publishedBy } = row;
  const consumers = consumersOf(directory, { source, type, publishedBy, data: () => envelope.data });
  // Both may be published later, but an SLO is missed all the same.
  if (row.status === 'PENDING' || row.status === 'DEAD')
    for (const { name } of consumers) deliveries.add(name, envelope.eventId, 'waiting');
  if (row.status !== 'PUBLISHED') return undefined;
  const publishedAt = row.publishedAt ?? eventIdTime(envelope.eventId);
  const { resentAt = null } = row;
  const sentAt = Math.max(publishedAt, resentAt ?? 0);
  return { event: { eventId: envelope.eventId, source, type, publishedAt, resentAt, sentAt }, consumers };
}

function enterAt(
  { ledger, overdueAt }: Walk,
  consumer: string,
  event: PublishedEvent,
  row: StoredMessageRow | undefined,
): void {
  ledger.expect(consumer);
  if (row === undefined) ledger.undecided(consumer, event);
  else if (!isUnreadable(row) && isOverdue(row, overdueAt)) ledger.undecided(consumer, { ...event, row });
  else ledger.row(consumer, event.eventId, row);
}

const NO_GAP = { since: 0, until: 0 };

/** Returns true if a whole minute is left out. */
function isInside(minute: string, gap: { readonly since: number; readonly until: number }): boolean {
  const startsAt = Date.parse(`${minute}Z`);
  return startsAt >= gap.since && startsAt + MINUTE_MS <= gap.until;
}

const COUNT_OF: Readonly<Record<OutboxRow['status'], keyof WalkCounts>> = {
  PUBLISHED: 'published',
  PENDING: 'pending',
  DEAD: 'dead',
  DISCARDED: 'discarded',
  CANCELLED: 'cancelled',
};

function envelopeOf(row: OutboxRow): Envelope | undefined {
  try {
    return parseJson(row.envelope) as Envelope;
  } catch {
    return undefined;
  }
}
