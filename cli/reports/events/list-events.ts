import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import type { WaitReason } from '../../../lambdas/runtime/operations/publish-wait.ts';
import { pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';
import { isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { unreadableText } from '../../deployment/row-text.ts';
import {
  isNotDue,
  minutesOf,
  type PartialList,
  readMinutes,
  readSweepState,
} from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import type { TimeWindow } from '../../terminal/window.ts';
import { waitingSince } from './pending-events.ts';
import { containingId, envelopeOf, storedEventId } from './stored-envelope.ts';
import { judged, type WaitingEvent } from './waits.ts';

/** An event that is not published, as in the JSON document of docs/cli-json.md. Times are epoch milliseconds. */
export interface UnpublishedEvent {
  readonly eventId: string;
  readonly status: 'PENDING' | 'DEAD' | 'UNREADABLE';
  readonly type: string | null;
  readonly source: string | null;
  /** When it was committed, or last requeued; for a DEAD event, when it became DEAD. */
  readonly at: number | null;
  /** Why it waits: see docs/cli-json.md. `null` for DEAD events. */
  readonly because: WaitReason | null;
  /** It is PENDING, and should be published by now. */
  readonly stuck: boolean;
  /** From when on the sweep may publish it. `null` for DEAD events. */
  readonly nextAt: number | null;
  readonly attempts: number | null;
  readonly fingerprint: string | null;
  readonly lastError: string | null;
}

/** The most DEAD events of a shard that are read. */
const DEAD_MAX = 1_000;

type UnpublishedDeps = Pick<Deployment, 'directory' | 'table' | 'stored' | 'clock'>;

/** Reads the PENDING events that are due, as `status` does, and judges each. */
export async function readWaits({ directory, table, stored, clock }: UnpublishedDeps) {
  const now = clock.now();
  const sweep = await readSweepState(directory, table);
  const sweptAt = sweep.sweptTo ?? (await stored.createdAt());
  const { items: rows, more } = await stored.outbox.pending({ ...sweep, sweptAt }, now);
  const { sources } = directory.mailroom;
  return { rows, more, waits: judged(rows, { now, sources, sweptShards: sweep.shards.length }) };
}

/** Reads the events that are not published: PENDING, DEAD, or both. The longest waiting first. */
export async function readUnpublished(
  deps: UnpublishedDeps,
  wanted: { readonly pending: boolean; readonly dead: boolean },
): Promise<PartialList<UnpublishedEvent>> {
  const { directory, table, stored } = deps;
  const none: PartialList<UnpublishedEvent> = { items: [], more: false };
  const [pending, dead] = await Promise.all([
    wanted.pending ? pendingEvents() : none,
    wanted.dead ? deadEvents() : none,
  ]);
  const items = [...pending.items, ...dead.items].sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  return { items, more: pending.more || dead.more };

  async function pendingEvents(): Promise<PartialList<UnpublishedEvent>> {
    const { rows, more, waits } = await readWaits(deps);
    return { items: rows.map((row, index) => pendingEvent(row, waits[index])), more };
  }

  async function deadEvents(): Promise<PartialList<UnpublishedEvent>> {
    const { shards } = await readSweepState(directory, table);
    const found = await stored.deadLetters.dead(shards, DEAD_MAX);
    const ids = found.items.flatMap(({ SK }) => (isEventId(SK) ? [SK] : []));
    const rows = new Map(
      await stored.outbox.byIds(ids, (id, row) => {
        const event = readable(row);
        return [id, event && { source: event.source, attempts: event.attempts }] as const;
      }),
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
  because: null,
  stuck: false,
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

function pendingEvent(row: StoredEventRow, wait: WaitingEvent | undefined): UnpublishedEvent {
  const { PK, SK } = row;
  const { because = null, isStuck: stuck = false } = wait ?? {};
  const eventId = SK.slice('EVENT#'.length);
  if (isUnreadable(row)) {
    const lastError = unreadableText(row.unreadable);
    const at = pendingSince({ PK, SK }) ?? null;
    return { ...NOTHING, eventId, status: 'UNREADABLE', because, stuck, at, lastError };
  }
  const { type, source, attempts, leaseUntil, fingerprint = UNTRIED, lastError = null } = row;
  const at = waitingSince(row) ?? null;
  return {
    eventId,
    status: 'PENDING',
    type,
    source,
    at,
    because,
    stuck,
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

type ListDeps = Pick<Deployment, 'directory' | 'table' | 'stored' | 'terminal'>;

/** Reads the published events of a range of time, newest commit first. */
export async function readHistory(
  deps: ListDeps,
  range: Pick<TimeWindow, 'since' | 'until'>,
  choice: EventChoice,
): Promise<PartialList<HistoryEvent>> {
  return readEvents(deps, { ...range, isNewestFirst: true }, 'PUBLISHED', choice, (row) => {
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
  return readEvents(deps, { ...range, isNewestFirst: false }, 'PENDING', choice, (row) => {
    const { dueAt = 0, scheduledAt = null } = row;
    return isNotDue(row, range.since) && dueAt <= range.until ? [{ dueAt, scheduledAt }] : [];
  });
}

/** The most minutes that are read at a time. */
const MINUTES_MAX = 64;

/**
 * Reads the events of a status minute after minute, more at a time while it finds nothing, and stops at the limit.
 *
 * @param timesOf - the attributes that one kind of list has besides the names; empty for a row that is not listed
 */
async function readEvents<Times>(
  { directory, table, stored, terminal: { signal, progress } }: ListDeps,
  { since, until, isNewestFirst }: Pick<TimeWindow, 'since' | 'until'> & { readonly isNewestFirst: boolean },
  status: OutboxRow['status'],
  { type, aggregate, limit }: EventChoice,
  timesOf: (row: OutboxRow) => readonly Times[],
): Promise<PartialList<EventNames & Times>> {
  const { shards } = await readSweepState(directory, table);
  const of = (row: StoredEventRow) => listed(row, timesOf);
  const containing = aggregate === undefined ? undefined : containingId(aggregate);
  const newest = minutesOf(since, until);
  const minutes = isNewestFirst ? newest : newest.toReversed();
  const found: (EventNames & Times)[] = [];
  let read = 0;
  for (let step = 1; read < minutes.length && found.length <= limit; step = Math.min(step * 2, MINUTES_MAX)) {
    const some = { minutes: minutes.slice(read, read + step), shards };
    const lists = await readMinutes(stored.outbox, some, { status, type, containing, signal }, of);
    const events = lists.flatMap(({ items }) => items.flat());
    found.push(...events.filter(({ aggregateId }) => aggregate === undefined || aggregateId === aggregate));
    read = Math.min(read + step, minutes.length);
    progress(`Reading: ${read} of ${many(minutes.length, 'minute')}, ${many(found.length, 'event')} found`);
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

function listed<Times>(
  stored: StoredEventRow,
  timesOf: (row: OutboxRow) => readonly Times[],
): (EventNames & Times)[] {
  const row = readable(stored);
  const eventId = storedEventId(stored);
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
