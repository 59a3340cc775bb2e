import { isDeepStrictEqual } from 'node:util';
import { LEASE_AHEAD_MAX_MS } from '../../lambdas/runtime/outbox/outbox-transitions.ts';
import { OUTBOX_PREFIX } from '../../lambdas/runtime/store/outbox-partition.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { asRow } from '../../lambdas/runtime/store/row-schema.ts';
import type { Change } from '../../testing/explorer/past-items.ts';

/**
 * The actors on outbox rows: `stream` actors may use a row's stream lease, a `producer` may publish under it during its turn, an `operator`
 * may requeue.
 */
export type Role = 'producer' | 'stream' | 'sweep' | 'operator';

/** Knows who holds each row's lease, and says what may never happen to a row. */
export interface OutboxRules {
  /** Who holds what, and since when there is what, as a value that decides how things go on. */
  state(): unknown;
  /** @param now - the true time, epoch milliseconds. @returns what rule the change broke */
  changed(change: Change, actor: string, role: Role, now: number): string | undefined;
  /** Whether a publish that starts now may overlap with another publisher's. @returns what rule it broke */
  publishes(
    eventId: string,
    row: OutboxRow | undefined,
    actor: string,
    role: Role,
    now: number,
  ): string | undefined;
}

/** The holder of a row that is not claimed yet. */
const BORN = 'born';

/** Makes the rules of one schedule. */
export function outboxRules(): OutboxRules {
  const holders = new Map<string, string>();
  const bornLeases = new Map<string, number>();
  const writtenAt = new Map<string, number>(); // as the stream's records say
  const taken = new Set<string>(); // by a relay, at any time
  const cancelled = new Set<string>();

  function mayChange(row: OutboxRow, id: string, actor: string, role: Role, now: number): boolean {
    const holder = holders.get(id) ?? BORN;
    return (
      holder === actor ||
      (holder === BORN && role === 'stream') ||
      row.leaseUntil < now ||
      // Nobody leases a row for that long: it was changed by hand.
      row.leaseUntil > now + LEASE_AHEAD_MAX_MS
    );
  }

  function changed({ key, before: was, after: is }: Change, actor: string, role: Role, now: number) {
    if (!key.PK.startsWith(OUTBOX_PREFIX)) return undefined;
    const id = key.SK;
    if (is === undefined) return was === undefined ? undefined : 'An outbox row was deleted';
    const after = asRow<OutboxRow>(is);
    const endsEarly =
      after.expiresAt !== undefined && after.status !== 'PUBLISHED' && after.status !== 'CANCELLED'
        ? `TTL may delete an event that is ${after.status}`
        : undefined;
    if (was === undefined) {
      if (cancelled.has(id)) return 'A cancelled event was committed again';
      bornLeases.set(id, after.leaseUntil);
      writtenAt.set(id, now);
      if (after.status === 'DEAD') taken.add(id);
      return endsEarly;
    }
    const before = asRow<OutboxRow>(was);
    if (before.status === 'PUBLISHED') {
      return after.status !== 'PUBLISHED' ||
        after.attempts !== before.attempts ||
        after.leaseUntil !== before.leaseUntil
        ? `The row of a published event was changed to ${after.status}`
        : undefined;
    }
    if (before.status === 'CANCELLED') {
      return isDeepStrictEqual(was, is)
        ? undefined
        : `The row of a cancelled event was changed to ${after.status}`;
    }
    if (endsEarly !== undefined) return endsEarly;
    if (after.status === 'CANCELLED') {
      cancelled.add(id);
      return taken.has(id) ? 'An event was cancelled although a relay had taken it' : undefined;
    }
    if (before.status !== 'PENDING' || after.status === 'PUBLISHED') return undefined;
    const same =
      after.status === before.status &&
      after.leaseUntil === before.leaseUntil &&
      after.attempts === before.attempts;
    if (same) return undefined;
    taken.add(id);
    if (!mayChange(before, id, actor, role, now))
      return `${actor} changed a row under the lease of ${holders.get(id) ?? 'the stream'}`;
    // An operator leaves a row as if it was just written.
    const isBorn = role === 'operator' || (role === 'stream' && after.leaseUntil === bornLeases.get(id));
    holders.set(id, isBorn ? BORN : actor);
    return undefined;
  }

  return {
    state: () => [[...holders], [...writtenAt], [...taken], [...cancelled]],
    changed,
    publishes: (eventId, row, actor, role, now) => {
      if (row === undefined) return 'An event that was never committed is published';
      if (row.status === 'CANCELLED') return `Event ${eventId} is published although it was cancelled`;
      if (row.status !== 'PENDING') return undefined;
      const holder = holders.get(row.SK) ?? BORN;
      if (row.leaseUntil < now) return `${actor} publishes ${eventId} after its lease`;
      const mayUseBirth =
        row.dueAt === undefined && role === (row.producerUntil === undefined ? 'stream' : 'producer');
      return holder === actor || (holder === BORN && mayUseBirth)
        ? undefined
        : `${actor} publishes under the lease of ${holder === BORN ? 'the stream' : holder}`;
    },
  };
}
