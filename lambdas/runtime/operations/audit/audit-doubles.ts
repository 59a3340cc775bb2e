import { createHash } from 'node:crypto';
import type { Envelope } from '../../event.ts';

/** Two or more events that say the same and were caused by the same event. */
export interface DoubledEvent {
  /** The event that caused them. */
  readonly causationId: string;
  readonly source: string;
  readonly type: string;
  readonly aggregateId: string;
  /** Their ids, the oldest first. */
  readonly eventIds: readonly string[];
}

/** Looks for events that were written twice. */
export interface Doubles {
  /** @param source - the service whose event it is */
  add(source: string, envelope: Envelope): void;
  found(): DoubledEvent[];
}

/**
 * Finds a handler's commit that happened twice, which the inbox must make impossible: two events with the same source, type,
 * aggregate, sequence and data, caused by one event.
 *
 * It sees only commits that write events, only where both events lie in the range, and not those whose events differ each
 * time, by a new id in their data for instance. It takes for doubled what a handler wrote twice on purpose in one commit, or
 * what two consumers of one service wrote alike for one event: give such events a `sequence`, or data that tells them apart.
 *
 * @example
 * ```ts
 * const doubles = createDoubles();
 * doubles.add(row.source, JSON.parse(row.envelope));
 * doubles.found();
 * ```
 */
export function createDoubles(): Doubles {
  // The first of each kind is remembered by a digest alone: a range may hold a million events.
  const first = new Map<string, string>();
  const doubled = new Map<string, Omit<DoubledEvent, 'eventIds'> & { readonly eventIds: Set<string> }>();
  return {
    add: (source, { eventId, type, aggregateId, causationId, sequence, data }) => {
      if (typeof causationId !== 'string') return; // none; or not one that Mailroom wrote
      const digest = createHash('sha256')
        .update(JSON.stringify([causationId, source, type, aggregateId, sequence ?? null, data]))
        .digest('base64');
      const before = first.get(digest);
      if (before === undefined) {
        first.set(digest, eventId);
        return;
      }
      const known = doubled.get(digest);
      if (known !== undefined) known.eventIds.add(eventId);
      else
        doubled.set(digest, {
          causationId,
          source,
          type: textOf(type),
          aggregateId: textOf(aggregateId),
          eventIds: new Set([before, eventId]),
        });
    },
    found: () =>
      [...doubled.values()]
        .map((group) => ({ ...group, eventIds: [...group.eventIds].sort() }))
        .sort((a, b) => String(a.eventIds[0]).localeCompare(String(b.eventIds[0]))),
  };
}

/** A stored envelope may hold anything where a text should be. */
function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value ?? null);
}
