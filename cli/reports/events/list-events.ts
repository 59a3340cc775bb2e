import { pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';
import { isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { EVENT_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable, readOutboxRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { readDeadPointers } from '../../deployment/dead-pointers.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import {
  eachOf,
  isNotDue,
  minutesOf,
  type PartialList,
  partitionsOf,
  readPartition,
  readSweepState,
  withItems,
} from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { readPending, waitingSince } from '../status/pending-events.ts';
import { containingId, envelopeOf, storedEventId } from './stored-envelope.ts';

/** An event that is not published, as in the JSON document of docs/cli-json.md. Times are epoch milliseconds. */
export interface UnpublishedEvent {
  readonly eventId: string;
  readonly status: 'PENDING' | 'DEAD' | 'UNREADABLE';
  readonly type: string | null;
  readonly source: string | null;
  /** When it was committed, or last requeued; for a DEAD event, when it became DEAD. */
  readonly at: number | null;
  /** From when on the sweep may publish it. `null` for DEAD events. */
  readonly nextAt: number | null;
  readonly attempts: number | null;
  readonly fingerprint: string | null;
  readonly lastError: string | null;
}

/** The most DEAD events of a shard that are read. */
const DEAD_MAX = 1_000;

/** Reads the events that are not published: PENDING, DEAD, or both. The longest waiting first. */
export async function readUnpublished(
  { directory, table, clock }: Pick<Deployment, 'directory' | 'table' | 'clock'>,
  wanted: { readonly pending: boolean; readonly dead: boolean },
): Promise<PartialList<UnpublishedEvent>> {
  const sweep = await readSweepState(directory, table);
  const now = clock.now();
  const none: PartialList<UnpublishedEvent> = { items: [], more: false };
  const [pending, dead] = await Promise.all([
    wanted.pending ? pendingEvents() : none,
    wanted.dead ? deadEvents() : none,
  ]);
  const items = [...pending.items, ...dead.items].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  return { items, more: pending.more || dead.more };

  async function pendingEvents(): Promise<PartialList<UnpublishedEvent>> {
    const createdAt = sweep.sweptTo ?? (await table.createdAt());
    const found = await readPending({ table, now }, sweep, createdAt);
    return { items: found.items.map(pendingEvent), more: found.more };
  }

  async function deadEvents(): Promise<PartialList<UnpublishedEvent>> {
    const found = await readDeadPointers(table, sweep.shards, DEAD_MAX);
    const ids = found.items.flatMap(({ SK }) => (isEventId(SK) ? [SK] : []));
    const rows = new Map(
      await withItems(
        table,
        ids,
        (id) => outboxKeyOf(id),
        (id, item) => [id as string, readable(readOutboxRow(item))] as const,
      ),
    );
    const items = found.items.map((pointer): UnpublishedEvent => {
      const event = { ...NOTHING, eventId: pointer.SK, status: 'DEAD' } as const;
      if (isUnreadable(pointer)) return { ...event, lastError: unreadableText(pointer.unreadable) };
      const { type, deadAt: at, fingerprint, lastError } = pointer;
      const { source = null, attempts = null } = rows.get(pointer.SK) ?? {};
      return { ...event, type, at, source, attempts, fingerprint, lastError };
    });
    return { items, more: found.more };
  }
}

const NOTHING = {
  type: null,
  source: null,
  at: null,
  nextAt: null,
  attempts: null,
  fingerprint: null,
  lastError: null,
};

/** The cause of an event that waits for its first attempt. */
const UNTRIED = 'not tried yet';

function pendingEvent(item: Item): UnpublishedEvent {
  const eventId = String(item.SK).slice('EVENT#'.length);
  const row = readOutboxRow(item);
  if (row === undefined || isUnreadable(row)) {
    const lastError = unreadableText(row?.unreadable ?? 'it is not an outbox row');
    return { ...NOTHING, eventId, status: 'UNREADABLE', at: pendingSince(item) ?? null, lastError };
  }
  const { type, source, attempts, leaseUntil, fingerprint = UNTRIED, lastError = null } = row;
  const at = waitingSince(item) ?? null;
  return {
    eventId,
    status: 'PENDING',
    type,
    source,
    at,
    nextAt: leaseUntil,
    attempts,
    fingerprint,
    lastError,
  };
}

/** A published event, as in the JSON document of docs/cli-json.md. Times are epoch milliseconds. */
export interface HistoryEvent extends EventNames {
  readonly publishedAt: number | null;
  readonly publishedBy: string | null;
}

/** A scheduled event before its due time, likewise. */
export interface ScheduledEvent extends EventNames {
  readonly dueAt: number;
  readonly scheduledAt: number | null;
}

/** The events to list. */
export interface EventChoice {
  readonly type?: string | undefined;
  /** An aggregate id. */
  readonly aggregate?: string | undefined;
  readonly limit: number;
}

type ListDeps = Pick<Deployment, 'directory' | 'table' | 'terminal'>;

/** Reads the published events of a range of time, newest commit first. */
export async function readHistory(
  deps: ListDeps,
  range: Pick<TimeWindow, 'since' | 'until'>,
  choice: EventChoice,
): Promise<PartialList<HistoryEvent>> {
  return readMinutes(deps, { ...range, isNewestFirst: true }, 'PUBLISHED', choice, (row) => {
    const { publishedAt = null, publishedBy = null } = row;
    return [{ publishedAt, publishedBy }];
  });
}

/** Reads the scheduled events that are due in a range of time, in order of their due time. */
export async function readScheduled(
  deps: ListDeps,
  range: Pick<TimeWindow, 'since' | 'until'>,
  choice: EventChoice,
): Promise<PartialList<ScheduledEvent>> {
  return readMinutes(deps, { ...range, isNewestFirst: false }, 'PENDING', choice, (row) => {
    const { dueAt = 0, scheduledAt = null } = row;
    return isNotDue({ ...row }, range.since) && dueAt <= range.until ? [{ dueAt, scheduledAt }] : [];
  });
}

/** The most minutes that are read at a time. */
const MINUTES_MAX = 64;

/**
 * Reads the events of a status minute after minute, more at a time while it finds nothing, and stops at the limit.
 *
 * @param timesOf - the attributes that one kind of list has besides the names; empty for a row that is not listed
 */
async function readMinutes<Times>(
  { directory, table, terminal }: ListDeps,
  { since, until, isNewestFirst }: Pick<TimeWindow, 'since' | 'until'> & { readonly isNewestFirst: boolean },
  status: OutboxRow['status'],
  { type, aggregate, limit }: EventChoice,
  timesOf: (row: OutboxRow) => readonly Times[],
): Promise<PartialList<EventNames & Times>> {
  const { shards } = await readSweepState(directory, table);
  const where = { status, ...(type !== undefined && { type }) };
  const containing = aggregate === undefined ? undefined : containingId(aggregate);
  const newest = minutesOf(since, until);
  const minutes = isNewestFirst ? newest : newest.toReversed();
  const found: (EventNames & Times)[] = [];
  let read = 0;
  for (let step = 1; read < minutes.length && found.length <= limit; step = Math.min(step * 2, MINUTES_MAX)) {
    const partitions = minutes.slice(read, read + step).flatMap((minute) => partitionsOf(minute, shards));
    const pages = await eachOf(
      partitions,
      (pk) => {
        const query = { pk, skPrefix: EVENT_PREFIX, where, containing };
        return readPartition(table, query, Number.POSITIVE_INFINITY);
      },
      terminal.signal,
    );
    const events = pages.flatMap(({ items }) => items.flatMap((item) => listed(item, timesOf)));
    found.push(...events.filter(({ aggregateId }) => aggregate === undefined || aggregateId === aggregate));
    read = Math.min(read + step, minutes.length);
    terminal.progress(
      `Reading: ${read} of ${many(minutes.length, 'minute')}, ${many(found.length, 'event')} found`,
    );
  }
  const items = found.sort((a, b) => (a.eventId < b.eventId === isNewestFirst ? 1 : -1));
  return { items: items.slice(0, limit), more: found.length > limit || read < minutes.length };
}

/** The parts of an event that every list of whole events has. */
interface EventNames {
  readonly eventId: string;
  readonly type: string;
  readonly source: string;
  readonly aggregateType: string | null;
  readonly aggregateId: string | null;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly occurredAt: number | null;
}

function listed<Times>(item: Item, timesOf: (row: OutboxRow) => readonly Times[]): (EventNames & Times)[] {
  const row = readable(readOutboxRow(item));
  const eventId = storedEventId(item);
  if (row === undefined || eventId === undefined) return [];
  const envelope = envelopeOf(row.envelope);
  const names: EventNames = {
    eventId,
    type: row.type,
    source: row.source,
    aggregateType: envelope?.aggregateType ?? null,
    aggregateId: envelope?.aggregateId ?? null,
    correlationId: envelope?.correlationId ?? null,
    causationId: envelope?.causationId ?? null,
    occurredAt: envelope?.occurredAt ?? null,
  };
  return timesOf(row).map((times) => ({ ...names, ...times }));
}
