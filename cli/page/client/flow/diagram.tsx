import type { RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Flow } from '../../server/protocol.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { BusCard, ConsumerRow, NeighborGroup, OutboxCard, RelayCard } from './cards.tsx';
import { deliveryTo, useMovingDots } from './moving-dots.ts';
import { type PartTrouble, troublesAt, troublesOf } from './troubles.ts';

/** From the commit to the effects: outbox, relay, bus, and each consumer. */
export function Diagram({ flow }: { readonly flow: Flow }) {
  const { info } = useMailroom();
  const ground = useRef<HTMLDivElement>(null);
  const { status, neighbors = [] } = flow;
  const troubles = useMemo(() => (status === null ? [] : troublesOf(status)), [status]);
  const consumers = info.consumers.map(({ name }) => name);
  return (
    <div class="diagram" ref={ground}>
      <Edges ground={ground} edges={edgesOf(consumers, troubles)} flow={flow} />
      <OutboxCard flow={flow} troubles={troublesAt(troubles, 'table')} />
      <RelayCard flow={flow} troubles={troublesAt(troubles, 'stream relay', 'sweep', 'heartbeat')} />
      <BusCard flow={flow} troubles={troublesAt(troubles, 'bus')} consumers={consumers.length} />
      <div class="consumers">
        <div class="consumers-head" aria-hidden="true">
          <span>Consumer</span>
          <span>State</span>
          <span>Backlog</span>
          <span>Oldest</span>
          <span>Processed</span>
        </div>
        <ul aria-label="Consumers">
          {info.consumers.map((consumer) => (
            <ConsumerRow
              key={consumer.name}
              consumer={consumer}
              flow={flow}
              troubles={troublesAt(troubles, consumer.name)}
            />
          ))}
        </ul>
        {neighbors.map((neighbor) => (
          <NeighborGroup key={neighbor.parameter ?? neighbor.stack} neighbor={neighbor} />
        ))}
      </div>
    </div>
  );
}

/** An edge of the diagram between two of its elements with `data-node`. */
interface Edge {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Events do not pass, because of what it leads from or to; `idle`: an operator has acknowledged that. */
  readonly cut?: 'broken' | 'idle' | undefined;
}

/** The edges from the outbox to every consumer. */
function edgesOf(consumers: readonly string[], troubles: readonly PartTrouble[]): Edge[] {
  const cutBy = (part: string, ...where: readonly PartTrouble['stops'][]): Edge['cut'] => {
    const stopping = troubles.filter(({ is, stops }) => is !== 'look' && where.includes(stops));
    return troublesAt(stopping, part)[0]?.is as Edge['cut'];
  };
  const [stream, sweep] = [cutBy('stream relay', 'before', 'at'), cutBy('sweep', 'before', 'at')];
  const relay = stream === 'idle' ? sweep : sweep && stream;
  return [
    { name: 'commit', from: 'outbox', to: 'relay', cut: cutBy('table', 'before', 'at') ?? relay },
    { name: 'publish', from: 'relay', to: 'bus', cut: cutBy('bus', 'before', 'at') },
    ...consumers.map((consumer) => ({
      name: deliveryTo(consumer),
      from: 'bus',
      to: `consumer:${consumer}`,
      cut: cutBy('bus', 'before', 'at') ?? cutBy(consumer, 'before'),
    })),
  ];
}

interface EdgesProps {
  /** The diagram: the edges are drawn over the whole of it. */
  readonly ground: RefObject<HTMLDivElement | null>;
  readonly edges: readonly Edge[];
  readonly flow: Flow;
}

/** The shapes of the edges by their names. */
type Drawing = Readonly<Record<string, EdgeShape>>;

interface EdgeShape {
  readonly path: string;
  readonly middle: readonly [x: number, y: number];
}

/** The edges of the diagram, drawn where its parts are: to the right in a wide window, down in a narrow one. */
function Edges({ ground, edges, flow }: EdgesProps) {
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
  useMovingDots(svg, flow);
  return (
    <svg ref={svg} class="edges" aria-hidden="true">
      {edges.map(({ name, cut }) => {
        const shape = drawing[name];
        if (shape === undefined) return null;
        const [x, y] = shape.middle;
        return (
          <g key={name} class={cut === undefined ? 'edge' : `edge is-${cut}`}>
            <path data-edge={name} d={shape.path} />
            {cut !== undefined && (
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
    return box && new DOMRect(box.left - left, box.top - top, box.width, box.height);
  };
  const shapes = edges.flatMap(({ name, from, to }) => {
    const [start, end] = [boxOf(from), boxOf(to)];
    return start === undefined || end === undefined ? [] : [[name, shapeBetween(start, end)] as const];
  });
  return Object.fromEntries(shapes);
}

/** In a narrow window the parts are below each other, and the edges run along a rail at the left. */
const RAIL = 12;

/** There, the edge to a consumer enters it beside its title. */
const TITLE = 22;

function shapeBetween(from: DOMRect, to: DOMRect): EdgeShape {
  const end = Math.round(to.x);
  if (to.x >= from.right) {
    const x1 = Math.round(from.right);
    const y1 = Math.round(from.y + from.height / 2);
    const y2 = Math.round(to.y + to.height / 2);
    const bend = (x1 + end) / 2;
    return { path: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${end} ${y2}`, middle: [bend, (y1 + y2) / 2] };
  }
  const x = Math.round(from.x + RAIL);
  const y1 = Math.round(from.bottom);
  if (to.x > from.x) {
    const y2 = Math.round(to.y + TITLE);
    return { path: `M${x} ${y1}V${y2 - 8}Q${x} ${y2} ${x + 8} ${y2}H${end}`, middle: [(x + end) / 2, y2] };
  }
  const y2 = Math.round(to.y);
  return { path: `M${x} ${y1}V${y2}`, middle: [x, (y1 + y2) / 2] };
}
