import type { RefObject } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { FlowEvent } from '../../server/protocol.ts';
import { deliveryTo } from './moves.ts';
import { useMovingDots } from './use-moving-dots.ts';

/** An edge of the diagram between two of its elements with `data-node`. */
export interface Edge {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Events do not pass. */
  readonly isCut: boolean;
}

/** The edges from the outbox to every consumer. @param cut - the names of the edges that no event passes */
export function edgesOf(consumers: readonly string[], cut: ReadonlySet<string>): Edge[] {
  const edges = [
    { name: 'commit', from: 'outbox', to: 'relay' },
    { name: 'publish', from: 'relay', to: 'bus' },
    ...consumers.map((consumer) => ({
      name: deliveryTo(consumer),
      from: 'bus',
      to: `consumer:${consumer}`,
    })),
  ];
  return edges.map((edge) => ({ ...edge, isCut: cut.has(edge.name) }));
}

interface EdgesProps {
  /** The diagram: the edges are drawn over the whole of it. */
  readonly ground: RefObject<HTMLDivElement | null>;
  readonly edges: readonly Edge[];
  readonly events: readonly FlowEvent[] | undefined;
  /** The time of the reading, epoch milliseconds. */
  readonly now: number;
}

/** The shapes of the edges by their names. */
type Drawing = Readonly<Record<string, EdgeShape>>;

interface EdgeShape {
  readonly path: string;
  readonly middle: readonly [x: number, y: number];
}

/** The edges of the diagram, drawn where its parts are: to the right in a wide window, down in a narrow one. */
export function Edges({ ground, edges, events, now }: EdgesProps) {
  const [drawing, setDrawing] = useState<Drawing>({});
  const svg = useRef<SVGSVGElement>(null);
  useLayoutEffect(() => {
    const element = ground.current;
    if (element === null) return;
    const draw = () => {
      const next = drawingOf(element, edges);
      setDrawing((before) => (JSON.stringify(before) === JSON.stringify(next) ? before : next));
    };
    draw();
    const observer = new ResizeObserver(draw);
    observer.observe(element);
    return () => observer.disconnect();
  });
  useMovingDots(svg, events, now);
  return (
    <svg ref={svg} class="edges" aria-hidden="true">
      {edges.map(({ name, isCut }) => {
        const shape = drawing[name];
        if (shape === undefined) return null;
        const [x, y] = shape.middle;
        return (
          <g key={name} class={isCut ? 'edge is-cut' : 'edge'}>
            <path data-edge={name} d={shape.path} />
            {isCut && (
              <>
                <circle cx={x} cy={y} r="8" />
                <path class="cross" d={`M${x - 3} ${y - 3}l6 6m0-6l-6 6`} />
              </>
            )}
          </g>
        );
      })}
    </svg>
  );
}

function drawingOf(ground: HTMLElement, edges: readonly Edge[]): Drawing {
  const { left, top } = ground.getBoundingClientRect();
  const boxOf = (node: string) => {
    const box = ground.querySelector(`[data-node="${CSS.escape(node)}"]`)?.getBoundingClientRect();
    return box && { x: box.left - left, y: box.top - top, width: box.width, height: box.height };
  };
  const shapes = edges.flatMap(({ name, from, to }) => {
    const [start, end] = [boxOf(from), boxOf(to)];
    return start === undefined || end === undefined ? [] : [[name, shapeBetween(start, end)] as const];
  });
  return Object.fromEntries(shapes);
}

interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** In a narrow window the parts are below each other, and the edges run along a rail at the left. */
const RAIL = 12;

/** There, the edge to a consumer enters it beside its title. */
const TITLE = 22;

function shapeBetween(from: Box, to: Box): EdgeShape {
  if (to.x >= from.x + from.width) {
    const x1 = Math.round(from.x + from.width);
    const y1 = Math.round(from.y + from.height / 2);
    const x2 = Math.round(to.x);
    const y2 = Math.round(to.y + to.height / 2);
    const bend = (x1 + x2) / 2;
    return { path: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2} ${y2}`, middle: [bend, (y1 + y2) / 2] };
  }
  if (to.x > from.x) {
    const x = Math.round(from.x + RAIL);
    const y1 = Math.round(from.y + from.height);
    const y2 = Math.round(to.y + TITLE);
    const end = Math.round(to.x);
    return { path: `M${x} ${y1}V${y2 - 8}Q${x} ${y2} ${x + 8} ${y2}H${end}`, middle: [(x + end) / 2, y2] };
  }
  const x = Math.round(from.x + RAIL);
  const y1 = Math.round(from.y + from.height);
  const y2 = Math.round(to.y);
  return { path: `M${x} ${y1}V${y2}`, middle: [x, (y1 + y2) / 2] };
}
