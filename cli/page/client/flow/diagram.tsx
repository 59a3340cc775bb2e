import type { ComponentChildren, RefObject } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { Flow, FlowEvent, StatusDocument } from '../../server/protocol.ts';
import { many, rate } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { ConsumerCard, CountMetric, Metric, Sparkline, Troubles } from './cards.tsx';
import { deliveryTo, useMovingDots } from './moving-dots.ts';
import { type PartTrouble, troublesAt, troublesOf } from './troubles.ts';

/** From the commit to the effects: outbox, relay, bus, and each consumer. */
export function Diagram({ flow }: { readonly flow: Flow }) {
  const { info } = useMailroom();
  const ground = useRef<HTMLDivElement>(null);
  const { status } = flow;
  const troubles = useMemo(() => (status === null ? [] : troublesOf(status)), [status]);
  const consumers = info.consumers.map(({ name }) => name);
  const edges = edgesOf(consumers, cutEdges(consumers, troubles));
  return (
    <div class="diagram" ref={ground}>
      <Edges ground={ground} edges={edges} events={flow.events} now={flow.at} />
      <OutboxCard flow={flow} troubles={troublesAt(troubles, 'table')} />
      {status === null ? (
        <Part node="relay" title="Relay" />
      ) : (
        <RelayCard status={status} troubles={troublesAt(troubles, 'stream relay', 'sweep', 'heartbeat')} />
      )}
      <Part node="bus" title="Bus">
        <Troubles troubles={troublesAt(troubles, 'bus')} />
        <p class="quiet-text">EventBridge, to {many(consumers.length, 'consumer')}</p>
      </Part>
      <ul class="consumers" aria-label="Consumers">
        {info.consumers.map((consumer) => (
          <ConsumerCard
            key={consumer.name}
            consumer={consumer}
            flow={flow}
            troubles={troublesAt(troubles, consumer.name)}
          />
        ))}
      </ul>
    </div>
  );
}

interface PartProps {
  readonly node: string;
  readonly title: string;
  readonly children?: ComponentChildren;
}

function Part({ node, title, children }: PartProps) {
  return (
    <section class="part" data-node={node}>
      <h3>{title}</h3>
      {children}
    </section>
  );
}

function OutboxCard({ flow, troubles }: { readonly flow: Flow; readonly troubles: readonly PartTrouble[] }) {
  const { status, committedPerS } = flow;
  return (
    <Part node="outbox" title="Outbox">
      <Troubles troubles={troubles} />
      <p class="rate">
        <strong>{rate(committedPerS.at(-1) ?? 0)}</strong>
        <Sparkline values={committedPerS} label="Events committed" />
      </p>
      {status !== null && (
        <dl class="metrics">
          <Metric name="Pending">
            {status.outbox.pending}
            {status.atLeast.includes('outbox.pending') && '+'}
          </Metric>
          {status.outbox.pending > 0 && (
            <Metric name="Oldest">{duration(status.outbox.oldestPendingMs)}</Metric>
          )}
          <CountMetric
            name="DEAD"
            value={status.outbox.dead}
            above="broken"
            isAtLeast={status.atLeast.includes('outbox.dead')}
          />
          {status.outbox.unreadable > 0 && (
            <CountMetric name="Unreadable" value={status.outbox.unreadable} above="broken" />
          )}
        </dl>
      )}
    </Part>
  );
}

interface RelayProps {
  readonly status: StatusDocument;
  readonly troubles: readonly PartTrouble[];
}

function RelayCard({ status: { outbox, heartbeat }, troubles }: RelayProps) {
  return (
    <Part node="relay" title="Relay">
      <Troubles troubles={troubles} />
      <dl class="metrics">
        <Metric name="Last sweep">
          {outbox.sweptAgoMs === null ? 'never' : `${duration(outbox.sweptAgoMs)} ago`}
        </Metric>
        {heartbeat !== null && (
          <Metric name="Heartbeat" is={heartbeat.state === 'ok' ? undefined : 'look'}>
            {heartbeat.state}
            {heartbeat.sentAgoMs !== null && `, ${duration(heartbeat.sentAgoMs)} ago`}
          </Metric>
        )}
      </dl>
    </Part>
  );
}

/** The edges that no event passes, because of what they lead from or to. */
function cutEdges(consumers: readonly string[], troubles: readonly PartTrouble[]): ReadonlySet<string> {
  const broken = troubles.filter(({ is }) => is === 'broken');
  const isBroken = (part: string) => broken.some((trouble) => trouble.part === part);
  const cut = consumers.filter(
    (name) => isBroken('bus') || broken.some(({ part, isBefore }) => part === name && isBefore),
  );
  return new Set([
    ...(isBroken('table') || (isBroken('stream relay') && isBroken('sweep')) ? ['commit'] : []),
    ...(isBroken('bus') ? ['publish'] : []),
    ...cut.map(deliveryTo),
  ]);
}

/** An edge of the diagram between two of its elements with `data-node`. */
export interface Edge {
  readonly name: string;
  readonly from: string;
  readonly to: string;
  /** Events do not pass. */
  readonly isCut: boolean;
}

/** The edges from the outbox to every consumer. @param cut - the names of the edges that no event passes */
function edgesOf(consumers: readonly string[], cut: ReadonlySet<string>): Edge[] {
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
function Edges({ ground, edges, events, now }: EdgesProps) {
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
