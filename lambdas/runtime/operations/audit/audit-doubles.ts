import { createHash } from 'node:crypto';
import type { Envelope } from '../../events/event.ts';

/** Two or more events with the same content and the same cause. */
export interface DuplicatedEvent {
  /** The event that caused them. */
  readonly causationId: string;
  readonly source: string;
  readonly type: string;
  readonly aggregateId: string;
  /** Their ids, oldest first. */
  readonly eventIds: readonly string[];
}

/** Finds events that were written twice. */
export interface Doubles {
  /** @param source - the service that owns the event */
  add(source: string, envelope: Envelope): void;
  found(): DuplicatedEvent[];
}

/**
 * Finds a handler's commit that happened twice, which the inbox must prevent: two events with the same source, type, aggregate,
 * sequence and data, caused by one event. The hash of a payload in S3 stands for its data.
 *
 * It finds only commits that write events, only if both events are in the range, and not those whose events differ each time, for
 * example by a new id in their data. It also reports events that a handler wrote twice on purpose in one commit, or that two
 * consumers of one service wrote identically for one event: give such events a `sequence`, or data that distinguishes them.
 *
 * @example
 * ```ts
 * const doubles = createDoubles();
 * doubles.add(row.source, JSON.parse(row.envelope));
 * doubles.found();
 * ```
 */
export function createDoubles(): Doubles {
  // Only a digest of each first event is kept: a range may contain a million events.
  const first = new Map<string, string>();
  const duplicated = new Map<
    string,
    Omit<DuplicatedEvent, 'eventIds'> & { readonly eventIds: Set<string> }
  >();
  return {
    add: (source, { eventId, type, aggregateId, causationId, sequence, data, payload }) => {
      if (typeof causationId !== 'string') return; // no cause, or not one that Mailroom wrote
      const digest = createHash('sha256')
        .update(
          JSON.stringify([causationId, source, type, aggregateId, sequence ?? null, data, payload?.sha256]),
        )
        .digest('base64');
      const before = first.get(digest);
      if (before === undefined) {
        first.set(digest, eventId);
        return;
      }
      const known = duplicated.get(digest);
      if (known !== undefined) known.eventIds.add(eventId);
      else
        duplicated.set(digest, {
          causationId,
          source,
          type: textOf(type),
          aggregateId: textOf(aggregateId),
          eventIds: new Set([before, eventId]),
        });
    },
    found: () =>
      [...duplicated.values()]
        .map((group) => ({ ...group, eventIds: [...group.eventIds].sort() }))
        .sort((a, b) => String(a.eventIds[0]).localeCompare(String(b.eventIds[0]))),
  };
}

/** A stored envelope may have any value where a string is expected. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
