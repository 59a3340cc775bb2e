import type { ComponentChildren } from 'preact';
import { useMemo, useRef } from 'preact/hooks';
import { duration } from '../../../terminal/times.ts';
import type { Flow, StatusDocument } from '../../server/protocol.ts';
import { many, rate } from '../frame/format.ts';
import { useMailroom } from '../frame/mailroom.ts';
import { ConsumerCard } from './consumer-card.tsx';
import { Edges, edgesOf } from './edges.tsx';
import { CountMetric, Metric } from './metric.tsx';
import { deliveryTo } from './moves.ts';
import { type PartTrouble, troublesAt, troublesOf } from './parts.ts';
import { Sparkline } from './sparkline.tsx';
import { Troubles } from './troubles.tsx';

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
