import { STUCK_MS } from '../base/patience.ts';
import { DAY_MS, MINUTE_MS } from '../base/units.ts';
import { DUE_AHEAD_MAX_MS } from '../outbox/event-draft.ts';
import { LEASE_AHEAD_MAX_MS } from '../outbox/outbox-transitions.ts';
import { pendingSince } from '../outbox/pending-row.ts';
import { eventIdInSortKey, eventIdShard } from '../store/event-id.ts';
import { isUnreadable } from '../store/stored-rows.ts';
import type { StoredEventRow } from './outbox-rows.ts';

/**
 * Why a PENDING event is not published. `new`: it is reserved for its producer and the stream relay. `leased`: a relay holds it. `retry`: its
 * last attempt failed, and it waits for the next one. `due`: a relay may publish it. `scheduled`: before its due time. `unswept`: in a shard
 * that the sweep does not read. `undeclared`: its source. `unreadable`: its row. The others are rows that Mailroom does not write: `held` under
 * a lease that no relay takes, `ahead` of every clock, `too-late` to be scheduled.
 */
export type WaitReason =
  | 'unreadable'
  | 'undeclared'
  | 'too-late'
  | 'scheduled'
  | 'ahead'
  | 'held'
  | 'new'
  | 'unswept'
  | 'behind'
  | 'leased'
  | 'retry'
  | 'due';

/** The reasons of rows that Mailroom does not write: an audit lists them, and its repair makes them due. */
export const CHANGED_BECAUSE = ['held', 'ahead', 'too-late'] as const satisfies readonly WaitReason[];

/** Returns true for the reason of a row that Mailroom does not write. */
export function isChanged(because: WaitReason): because is (typeof CHANGED_BECAUSE)[number] {
  return CHANGED_BECAUSE.some((one) => one === because);
}

/** The judgment on a PENDING event, the same for every command and the audit. Times are epoch milliseconds. */
export interface PublishWait {
  readonly because: WaitReason;
  /** When it is over by itself; `null` if that is unknown, or past. */
  readonly until: number | null;
  /** The time since which the event waits: its commit, its due time or its last requeue. */
  readonly since: number;
  /** It should be published by now: an operator must act. Events that are undeclared or unreadable are reported as such. */
  readonly isStuck: boolean;
}

/** The parts of a judgment besides the row. */
export interface WaitContext {
  readonly now: number;
  /** The sources that the relay publishes. @default all */
  readonly sources?: readonly string[] | undefined;
  /** The number of shards that the sweep reads. @default all */
  readonly sweptShards?: number | undefined;
}

/** A producer's clock may be ahead by less than this, milliseconds. */
const CLOCK_AHEAD_MAX_MS = MINUTE_MS;

/**
 * No event is scheduled further ahead than this, milliseconds. The limit is judged by its producer's clock, so a day is added: a producer whose
 * clock is ahead schedules at the right time all the same.
 */
const SCHEDULED_MAX_MS = DUE_AHEAD_MAX_MS + DAY_MS;

/** Returns why a PENDING event is not published, and whether it should be by now. */
export function publishWait(
  row: StoredEventRow,
  { now, sources, sweptShards = Number.POSITIVE_INFINITY }: WaitContext,
): PublishWait {
  const bornAt = pendingSince({ PK: row.PK, SK: row.SK }) ?? now;
  const since = Math.max(bornAt, row.requeuedAt ?? 0);
  const isLate = now - since > STUCK_MS;
  const wait = (because: WaitReason, until: number | null, isStuck: boolean): PublishWait => ({
    because,
    until: until === null || until <= now ? null : until,
    since,
    isStuck,
  });
  if (isUnreadable(row)) return wait('unreadable', null, false);
  const { source, dueAt, leaseUntil, lastError, requeuedAt } = row;
  if (sources?.includes(source) === false) return wait('undeclared', null, false);
  const isAhead = bornAt > now + CLOCK_AHEAD_MAX_MS;
  if (dueAt !== undefined && dueAt > now && bornAt > now)
    return dueAt > now + SCHEDULED_MAX_MS ? wait('too-late', dueAt, true) : wait('scheduled', dueAt, false);
  if (isAhead) return wait('ahead', bornAt, true);
  if (leaseUntil > now + LEASE_AHEAD_MAX_MS) return wait('held', leaseUntil, true);
  const isNew =
    lastError === undefined && requeuedAt === undefined && dueAt === undefined && now <= leaseUntil;
  if (isNew && !isLate) return wait('new', leaseUntil, false);
  const eventId = eventIdInSortKey(row.SK);
  if (row.store === undefined && eventId !== undefined && eventIdShard(eventId) >= sweptShards)
    return wait('unswept', null, true);
  if (row.waitsFor !== undefined) return wait('behind', null, isLate);
  if (leaseUntil > now) return wait(lastError === undefined ? 'leased' : 'retry', leaseUntil, isLate);
  return wait('due', null, isLate);
}
