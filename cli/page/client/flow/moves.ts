import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import type { FlowEvent } from '../../server/protocol.ts';

/** An event that has moved along an edge: `commit`, `publish`, or `deliver:<consumer>`. */
export interface Move {
  readonly eventId: string;
  readonly edge: string;
  /** Its place among the moves of the event: a later one starts when the earlier ones have ended. */
  readonly step: number;
}

/** The most dots that move at the same time: more cannot be followed, and cost the browser. */
export const MOVES_MAX = 40;

/** The edge from the bus to a consumer. */
export function deliveryTo(consumer: string): string {
  return `deliver:${consumer}`;
}

/**
 * The moves between two readings of the newest events: those of new events, and of events that came further.
 *
 * @param before - absent for the first reading, from which nothing moves
 * @param now - an event of an earlier minute that is found only now does not move
 */
export function movesBetween(
  before: readonly FlowEvent[] | undefined,
  after: readonly FlowEvent[],
  now: number,
): readonly Move[] {
  if (before === undefined) return [];
  const known = new Map(before.map((event) => [event.eventId, event]));
  const isEarlier = ({ eventId, at }: FlowEvent) => !known.has(eventId) && at < now - MINUTE_MS;
  const moves = after.flatMap((event) => {
    if (isEarlier(event)) return [];
    const passed = new Set(edgesPassed(known.get(event.eventId)));
    const edges = edgesPassed(event).filter((edge) => !passed.has(edge));
    // All consumers receive an event at once.
    const first = edges.findIndex((edge) => edge.startsWith('deliver:'));
    return edges.map((edge, index) => ({
      eventId: event.eventId,
      edge,
      step: first < 0 ? index : Math.min(index, first),
    }));
  });
  return moves.slice(0, MOVES_MAX);
}

function edgesPassed(event: FlowEvent | undefined): string[] {
  if (event === undefined) return [];
  const { status, consumers } = event;
  if (status !== 'PUBLISHED') return ['commit'];
  const claimed = Object.entries(consumers).filter(([, state]) => state !== 'waiting');
  return ['commit', 'publish', ...claimed.map(([name]) => deliveryTo(name))];
}
