import type { DatabaseEngine } from '../../../lambdas/runtime/base/database-engine.ts';
import type { StoredEventRow } from '../../../lambdas/runtime/operations/outbox-rows.ts';
import {
  type PublishWait,
  publishWait,
  type WaitContext,
  type WaitReason,
} from '../../../lambdas/runtime/operations/publish-wait.ts';
import { pendingSince } from '../../../lambdas/runtime/outbox/pending-row.ts';
import { eventIdInSortKey, eventIdShard, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import { asClause, clipped, many } from '../../terminal/output.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';

/** A PENDING event, and why it waits. */
export interface WaitingEvent extends PublishWait {
  readonly eventId: string;
  /** When it was committed, epoch milliseconds. */
  readonly committedAt: number;
  readonly lastError: string | null;
  /** The kind of database whose relay publishes it, and no sweep; `null`: the table. */
  readonly store: DatabaseEngine | null;
}

/** The PENDING events that wait for one reason, as in the JSON documents of docs/cli-json.md. Times are epoch milliseconds. */
export interface WaitGroup {
  readonly because: WaitReason;
  readonly store: DatabaseEngine | null;
  readonly events: number;
  /** The event id of the oldest. */
  readonly example: string;
  /** The time since which it waits, and that of the oldest commit: of a requeued event, they differ. */
  readonly since: number;
  readonly committedAt: number;
  /** When the first of them is due again; `null` if that is unknown, or past. */
  readonly until: number | null;
  /** The last error of the oldest that has one. */
  readonly lastError: string | null;
}

/** Judges PENDING events. */
export function judged(rows: readonly StoredEventRow[], context: WaitContext): WaitingEvent[] {
  return rows.map((row) => {
    const wait = publishWait(row, context);
    return {
      ...wait,
      eventId: eventIdInSortKey(row.SK) ?? row.SK,
      committedAt: pendingSince({ PK: row.PK, SK: row.SK }) ?? wait.since,
      lastError: readable(row)?.lastError ?? null,
      store: row.store ?? null,
    };
  });
}

/** Groups events by the reason for which they wait, the largest group first. */
export function waitGroups(events: readonly WaitingEvent[]): WaitGroup[] {
  const groups = new Map<string, WaitingEvent[]>();
  for (const event of events) {
    const key = `${event.because} ${event.store}`;
    groups.set(key, [...(groups.get(key) ?? []), event]);
  }
  return [...groups.values()]
    .map((group): WaitGroup => {
      const oldestFirst = group.toSorted((a, b) => a.since - b.since);
      const { because = 'due', store = null, eventId = '', since = 0 } = oldestFirst[0] ?? {};
      const ends = group.flatMap(({ until }) => until ?? []);
      return {
        ...{ because, store, since, example: eventId, events: group.length },
        committedAt: group.reduce((first, { committedAt }) => Math.min(first, committedAt), since),
        until: ends.length === 0 ? null : ends.reduce((first, until) => Math.min(first, until)),
        lastError: oldestFirst.find(({ lastError }) => lastError !== null)?.lastError ?? null,
      };
    })
    .sort((a, b) => b.events - a.events);
}

/** The reason for which a group waits, after the number of its events. */
export function waitText(
  { because, store, until, since, lastError, example }: WaitGroup,
  now: number,
): string {
  const at = until === null ? '' : time(until);
  const error = lastError === null ? '' : `: ${asClause(lastError)}`;
  switch (because) {
    case 'held':
      return `leased until ${at}: no relay leases an event for that long, so its row was changed by hand`;
    case 'too-late':
      return `due ${at}: no event can be scheduled that far ahead, so its row was changed by hand`;
    case 'ahead':
      return `dated ${at}, ${duration((until ?? now) - now)} ahead: its producer's clock is wrong, or its row was written by hand`;
    case 'scheduled':
      return `scheduled, due ${at}`;
    case 'new':
      return `reserved for the stream relay until ${at}`;
    case 'leased':
      return `held by a relay until ${at}, which has not finished`;
    case 'retry':
      return `waiting for the next attempt at ${at} since the last one failed${error}`;
    case 'unswept':
      return `in shard ${isEventId(example) ? eventIdShard(example) : '?'}, which the sweep does not read: its producer, which doctor names, has a higher MAILROOM_SHARDS`;
    case 'behind':
      return 'behind the event before them in their aggregate, which is published first';
    case 'undeclared':
      return 'with a source that no producer of this Mailroom declares';
    case 'unreadable':
      return 'in a row that cannot be read';
    case 'due':
      return `due, the oldest for ${duration(now - since)}${error}${store !== null ? ': no relay of the database has published it' : ''}`;
  }
}

/**
 * The command that helps a group, the same in every report.
 *
 * @param wasSwept - a sweep of the events has just been made: to repeat it would change nothing
 */
export function waitCommand(
  { because, store, committedAt, example }: WaitGroup,
  now: number,
  wasSwept = false,
): ShellText | undefined {
  // Its own verdict names the relay, the lock or the row.
  if (store !== null && because !== 'undeclared') return shell`why ${example}`;
  const since = hours(Math.max(0, now - committedAt));
  switch (because) {
    case 'held':
      return shell`audit --since ${since} --repair`;
    case 'too-late':
    case 'ahead':
      return shell`audit --event ${example} --repair`;
    case 'unswept':
      return shell`sweep --since ${since} --shards ${String(isEventId(example) ? eventIdShard(example) + 1 : 1)}`;
    case 'undeclared':
      return shell`why ${example} --payload`;
    case 'unreadable':
      return shell`why ${example}`;
    case 'retry':
      return shell`doctor`;
    case 'leased':
      return shell`logs ${example}`;
    case 'due':
      return wasSwept ? shell`logs ${example}` : shell`sweep --since ${since}`;
    case 'new':
    case 'scheduled':
      return undefined;
  }
}

/** A group as a sentence without its end: the number, what it waits for, and an example. */
export function groupText(group: WaitGroup, now: number): string {
  return `${many(group.events, 'event')} ${waitText(group, now)}; e.g. ${clipped(group.example)}`;
}
