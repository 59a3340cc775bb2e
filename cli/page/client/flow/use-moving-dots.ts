import type { RefObject } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import type { FlowEvent } from '../../server/protocol.ts';
import { type Move, movesBetween } from './moves.ts';

/** The time that a dot needs along an edge. */
const EDGE_MS = 700;

/** The readings come at this interval: the dots of one are spread over it. */
const SPREAD_MS = 1_800;

const SVG = 'http://www.w3.org/2000/svg';

/**
 * Moves a dot along the edges of a diagram for each event that has moved: decoration, so nothing moves with reduced motion or in a
 * hidden tab, and screen readers skip it.
 *
 * @param svg - holds a `path` with `data-edge` for each edge
 * @param now - the time of the reading
 */
export function useMovingDots(
  svg: RefObject<SVGSVGElement | null>,
  events: readonly FlowEvent[] | undefined,
  now: number,
): void {
  const before = useRef<readonly FlowEvent[] | undefined>(undefined);
  useEffect(() => {
    const moves = events === undefined ? [] : movesBetween(before.current, events, now);
    before.current = events;
    const ground = svg.current;
    if (ground === null || document.hidden || matchMedia('(prefers-reduced-motion: reduce)').matches) return;
    const ids = [...new Set(moves.map(({ eventId }) => eventId))];
    const apartMs = SPREAD_MS / Math.max(ids.length, 1);
    for (const move of moves) runDot(ground, move, ids.indexOf(move.eventId) * apartMs + move.step * EDGE_MS);
  }, [events, svg, now]);
}

function runDot(svg: SVGSVGElement, { edge }: Move, delayMs: number): void {
  const path = svg.querySelector<SVGPathElement>(`path[data-edge="${CSS.escape(edge)}"]`);
  if (path === null) return;
  const dot = document.createElementNS(SVG, 'circle');
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
