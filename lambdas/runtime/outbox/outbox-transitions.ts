import { errorMessage } from '../base/errors.ts';
import { fingerprint } from '../base/fingerprint.ts';
import { MINUTE_MS } from '../base/units.ts';
import { eventIdTime } from '../store/event-id.ts';
import type { Note } from '../store/operation-record.ts';
import type { OutboxRow, OutboxStatus } from '../store/outbox-row.ts';
import { expiresAt } from '../store/row-expiry.ts';
import type { Key } from '../store/table.ts';
import { leaseOf, type PendingRow } from './pending-row.ts';

/** The two relays. */
export type RelayPath = 'stream' | 'sweep';

/**
 * The longest time from now, or from a later due time, for which a relay or a producer leases a row, milliseconds: 15 minutes, by the limits of
 * the settings and of every backoff, and 5 more for clocks that differ.
 */
export const LEASE_AHEAD_MAX_MS = 20 * MINUTE_MS;

/** The time after which a DISCARDED event may be deleted, days. */
export const DISCARDED_RETENTION_DAYS = 35;

/** The time after which TTL may delete a CANCELLED event, counted from its due time at the earliest, days. */
const CANCELLED_RETENTION_DAYS = 7;

/**
 * With `orderBy: 'aggregate'`, an event that waits for the one before it is looked at again after this time, milliseconds, unless the publication of that one has
 * woken it. Only a relay that crashes between a mark and that lets an event wait for this time, and the discard of a DEAD event.
 */
export const PARKED_MS = 60_000;

/**
 * A change of an event's row, decided from what was read. Each store has one writer, which makes its expression or statement from this
 * value. Times are those of the worker's clock; a store with a clock of its own adds their distance from now to it, and uses that clock
 * for what happens now. A store without a column for an attribute does not store it.
 */
export interface EventTransition {
  /** The states from which the row is changed, in the order in which they are tried. In another state, nothing is left to do. */
  readonly from: readonly [OutboxStatus, ...OutboxStatus[]];
  /** `held`: only under the claim that was read; `unclaimed`: only if no relay has ever held the row. @default under any claim */
  readonly only?: 'held' | 'unclaimed';
  /** The service that owns the event. @default any */
  readonly source?: string;
  /** Without a status, the row stays PENDING. */
  readonly set: Partial<Omit<OutboxRow, keyof Key | 'schema' | 'source'>>;
  readonly clear?: readonly ['deadAt'];
  /** The row is held under the lease that is set. @default its holder gives it up */
  readonly isHeld?: true;
}

/** A relay holds the event until its lease ends; then any may claim it. */
export function claimed(
  row: Pick<PendingRow, 'eventId' | 'dueAt'>,
  now: number,
  leaseMs: number,
): EventTransition {
  return { from: ['PENDING'], only: 'held', set: { leaseUntil: leaseOf(row, now + leaseMs) }, isHeld: true };
}

/**
 * The bus has accepted the event. It is PUBLISHED under any claim, because it *was* published; also if it became DEAD while it was being
 * published successfully.
 */
export function published(now: number, retentionDays: number, path: RelayPath | 'producer'): EventTransition {
  return {
    from: ['PENDING', 'DEAD'],
    set: {
      status: 'PUBLISHED',
      publishedAt: now,
      publishedBy: path,
      expiresAt: expiresAt(now, retentionDays),
    },
  };
}

/** The event was not published, and is due again at `leaseUntil`. No attempt is counted. @param error - stored as its last error @default none */
export function released(
  row: Pick<PendingRow, 'eventId' | 'dueAt'>,
  leaseUntil: number,
  error?: unknown,
): EventTransition {
  return {
    from: ['PENDING'],
    only: 'held',
    set: { leaseUntil: leaseOf(row, leaseUntil), ...(error === undefined ? {} : causeOf(error)) },
  };
}

/** The time until a repaired event is due, milliseconds: a relay that publishes it at this moment, as one may a row that was just written, ends before. */
const REPAIRED_LEASE_MS = MINUTE_MS;

/**
 * An operator's repair of a row that Mailroom does not write: its event is due in a minute. Only under the lease and the due time that were read.
 *
 *     now                          + 20 min
 *      |-- a relay may hold it: kept --|-- no relay leases one for that long: ends in a minute --- …
 *
 * Its lease ends after its due time, as after each change: it may have been published, and is never cancelled.
 */
export function madeDue(
  { leaseUntil, dueAt }: Pick<OutboxRow, 'leaseUntil' | 'dueAt'>,
  now: number,
): EventTransition {
  const due = dueAt === undefined ? {} : { dueAt: Math.min(dueAt, now) };
  const soon = now + REPAIRED_LEASE_MS;
  const ends = leaseUntil > now + LEASE_AHEAD_MAX_MS ? soon : Math.max(leaseUntil, soon);
  return { from: ['PENDING'], only: 'held', set: { leaseUntil: leaseOf(due, ends), ...due } };
}

/** An operator requeues a DEAD event: its attempts are counted from 0. @param note - stored in the row @default none */
export function requeued(eventId: string, now: number, note?: Note): EventTransition {
  const noted = note && { requeuedBy: note.by, requeuedAt: now, requeuedReason: note.reason };
  // A scheduled event is never born again: a lease that ends at its due time would let its producer cancel it.
  const leaseUntil = leaseOf({ dueAt: eventIdTime(eventId) }, now);
  return { from: ['DEAD'], set: { status: 'PENDING', attempts: 0, leaseUntil, ...noted }, clear: ['deadAt'] };
}

/** An operator discards a DEAD event: it is never published. */
export function discarded(now: number, note: Note): EventTransition {
  return {
    from: ['DEAD'],
    set: {
      status: 'DISCARDED',
      discardedBy: note.by,
      discardedAt: now,
      discardedReason: note.reason,
      expiresAt: expiresAt(now, DISCARDED_RETENTION_DAYS),
    },
  };
}

/**
 * A producer cancels its scheduled event, which no relay has claimed.
 *
 *     commit                          dueAt      + 2 s
 *       |------ leaseUntil = dueAt ------|----------|--- a relay claims it: leaseUntil > dueAt --- …
 *       |<---------------- cancel is accepted ----->|<-- cancel is refused
 *
 * Every later write of `leaseUntil` stores more than `dueAt`: an event that was claimed, failed, released or requeued may have been
 * published, and is never cancelled. A cancelled event is never claimed, because a claim requires PENDING. In DynamoDB, its row outlives
 * its due time: if TTL deleted it earlier, an entry of the same event could be committed again.
 *
 * @throws `BAD_EVENT_ID` if the text is not an event id
 */
export function cancelled(
  eventId: string,
  service: string,
  now: number,
): EventTransition & { readonly source: string } {
  return {
    from: ['PENDING'],
    only: 'unclaimed',
    source: service,
    set: {
      status: 'CANCELLED',
      cancelledAt: now,
      cancelledBy: service,
      expiresAt: expiresAt(Math.max(now, eventIdTime(eventId)), CANCELLED_RETENTION_DAYS),
    },
  };
}

/** The attributes that a row stores about an error. */
export function causeOf(error: unknown): { readonly lastError: string; readonly fingerprint: string } {
  return { lastError: errorMessage(error), fingerprint: `relay ${fingerprint(error)}` };
}
