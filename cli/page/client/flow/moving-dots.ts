import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { MINUTE_MS } from '../../../../lambdas/runtime/base/units.ts';
import type { Flow, FlowEvent } from '../../server/protocol.ts';

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

/** The time that a dot needs along an edge. */
const EDGE_MS = 700;

/** The readings come at this interval: the dots of one are spread over it. */
const SPREAD_MS = 1_800;

/**
 * Moves a dot along the edges of a diagram for each event that has moved: decoration, so nothing moves with reduced motion or in a
 * hidden tab, and screen readers skip it.
 *
 * @param svg - holds a `path` with `data-edge` for each edge
 */
export function useMovingDots(svg: RefObject<SVGSVGElement | null>, { events, at }: Flow): void {
  const before = useRef<readonly FlowEvent[] | undefined>(undefined);
  useEffect(() => {
    const moves = movesBetween(before.current, events, at);
    before.current = events;
    const ground = svg.current;
    if (ground === null || document.hidden || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const ids = [...new Set(moves.map(({ eventId }) => eventId))];
    const apartMs = SPREAD_MS / Math.max(ids.length, 1);
    for (const move of moves) runDot(ground, move, ids.indexOf(move.eventId) * apartMs + move.step * EDGE_MS);
  }, [events, svg, at]);
}

function runDot(svg: SVGSVGElement, { edge }: Move, delayMs: number): void {
  const path = svg.querySelector<SVGPathElement>(`path[data-edge="${CSS.escape(edge)}"]`);
  if (path === null) return;
  const dot = document.createElementNS('http://www.w3.org/2000/svg', 'circle');
  dot.setAttribute('r', '4');
  dot.setAttribute('class', 'dot');
  const start = performance.now() + delayMs;
  const frame = (now: number): void => {
    const part = (now - start) / EDGE_MS;
    if (part >= 1 || !path.isConnected) {
      dot.remove();
      return;
    }
    if (part >= 0) {
      const { x, y } = path.getPointAtLength(eased(part) * path.getTotalLength());
      dot.setAttribute('cx', String(x));
      dot.setAttribute('cy', String(y));
      if (!dot.isConnected) svg.append(dot);
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}

function eased(part: number): number {
  return part < 0.5 ? 2 * part * part : 1 - (2 - 2 * part) ** 2 / 2;
}
