import type { ComponentChildren } from 'preact';
import type { NeighborStatus } from '../../../reports/status/bus-status.ts';
import { duration } from '../../../terminal/times.ts';
import type { ConsumerInfo, Flow } from '../../server/protocol.ts';
import { count, many, minuteRate, rate, roughly } from '../frame/format.ts';
import { Icon, State } from '../frame/state.tsx';
import type { PartTrouble } from './troubles.ts';

interface CardProps {
  readonly flow: Flow;
  readonly troubles: readonly PartTrouble[];
}

/** The outbox: the rate of commits, and the events that are not published. */
export function OutboxCard({ flow: { status, committedPerS }, troubles }: CardProps) {
  const pending = status?.outbox.pending ?? 0;
  return (
    <Part node="outbox" title="Outbox" isRead={status !== null} troubles={troubles}>
      <p>
        <span class="rate">{minuteRate(committedPerS)}</span> <span class="quiet-text">committed</span>
      </p>
      <Sparkline values={committedPerS} label="Events committed" />
      {status !== null && (
        <dl>
          <Metric name="Pending">
            {count(pending)}
            {status.atLeast.includes('outbox.pending') && '+'}
            {pending > 0 && (
              <span class="quiet-text">
                for{' '}
                {roughly(Math.max(status.outbox.oldestPendingMs, status.outbox.inDatabase.oldestPendingMs))}
              </span>
            )}
          </Metric>
          <Scheduled status={status} />
        </dl>
      )}
      {status !== null && status.outbox.unreadable > 0 && (
        <State is="broken">{count(status.outbox.unreadable)} unreadable</State>
      )}
    </Part>
  );
}

/** The scheduled events that are due soon or overdue, and when the next one is due; nothing if there are none. */
function Scheduled({ status: { at, atLeast, outbox } }: { readonly status: NonNullable<Flow['status']> }) {
  const { withinMs, due, nextDueAt, overdue } = outbox.scheduled;
  if (due + overdue === 0) return null;
  return (
    <Metric name={`Scheduled within ${duration(withinMs)}`}>
      {count(due)}
      {atLeast.includes('outbox.scheduled.due') && '+'}
      {nextDueAt !== null && <span class="quiet-text">next in {roughly(nextDueAt - at)}</span>}
      {overdue > 0 && <State is="broken">{count(overdue)} overdue</State>}
    </Metric>
  );
}

/** The relay: its last sweep, and the heartbeat that it publishes. */
export function RelayCard({ flow: { status }, troubles }: CardProps) {
  const { sweptAgoMs = null } = status?.outbox ?? {};
  const heartbeat = status?.heartbeat ?? null;
  return (
    <Part node="relay" title="Relay" isRead={status !== null} troubles={troubles}>
      {status !== null && (
        <dl>
          <Metric name="Last sweep">{sweptAgoMs === null ? 'never' : `${roughly(sweptAgoMs)} ago`}</Metric>
          {heartbeat !== null && (
            <Metric name="Heartbeat">
              {heartbeat.state}
              {heartbeat.sentAgoMs !== null && `, ${roughly(heartbeat.sentAgoMs)} ago`}
            </Metric>
          )}
        </dl>
      )}
    </Part>
  );
}

/** The bus. @param consumers - their number */
export function BusCard({ flow, troubles, consumers }: CardProps & { readonly consumers: number }) {
  return (
    <Part node="bus" title="Bus" isRead={flow.status !== null} troubles={troubles}>
      <p class="quiet-text">EventBridge, to {many(consumers, 'consumer')}</p>
    </Part>
  );
}

interface TroublesProps extends Pick<CardProps, 'troubles'> {
  /** Before the first status, a part is neither well nor in trouble. */
  readonly isRead: boolean;
}

interface PartProps extends TroublesProps {
  readonly node: string;
  readonly title: string;
  readonly children: ComponentChildren;
}

function Part({ node, title, children, ...state }: PartProps) {
  return (
    <section class="part" data-node={node}>
      <div class="row spread">
        <h3>{title}</h3>
        <Troubles {...state} />
      </div>
      {children}
    </section>
  );
}

/** A consumer: its troubles, its backlog, and the rate at which it processes. */
export function ConsumerRow({
  consumer: { name, events, forwardsTo },
  flow,
  troubles,
}: CardProps & { readonly consumer: ConsumerInfo }) {
  const processed = flow.processedPerS[name] ?? [];
  const oldestMs = flow.status?.consumers[name]?.oldestUnprocessedMs ?? 0;
  return (
    <li class="consumer" data-node={`consumer:${name}`}>
      <h3 title={`Receives ${events.join(', ')}`}>
        {name}
        {forwardsTo !== null && <span class="quiet-text"> to {forwardsTo}</span>}
      </h3>
      <Troubles isRead={flow.status !== null} troubles={troubles} />
      <dl class="metrics">
        <Metric name="Backlog">
          <Backlog name={name} flow={flow} />
        </Metric>
        <Metric name="Oldest">{oldestMs > 0 ? roughly(oldestMs) : '–'}</Metric>
        <Metric name="Processed">
          <span>{flow.status !== null && processed.length === 0 ? rate(0) : minuteRate(processed)}</span>
          <Sparkline values={processed} label={`Messages processed by ${name}`} />
        </Metric>
      </dl>
    </li>
  );
}

/** The consumers of another Mailroom on the bus, with the command that shows its findings. */
export function NeighborGroup({ neighbor }: { readonly neighbor: NeighborStatus }) {
  const { parameter, state, code, error, consumers, next } = neighbor;
  const stack = neighbor.stack ?? parameter;
  return (
    <section class="neighbor" aria-label={`Consumers of ${stack}`}>
      <h3>
        {stack} <State is={state ?? 'broken'}>{state ?? `unread: ${code}: ${error}`}</State>
      </h3>
      <ul>
        {Object.entries(consumers).map(([name, { backlog, deadLetters }]) => (
          <li key={name} class="consumer">
            <h3>{name}</h3>
            <State is={deadLetters > 0 ? 'broken' : 'ok'}>{count(deadLetters)} dead letters</State>
            <dl class="metrics">
              <Metric name="Backlog">{count(backlog)}</Metric>
            </dl>
          </li>
        ))}
      </ul>
      {state !== 'ok' && <code>{next}</code>}
    </section>
  );
}

/** The number of messages in the queue of a consumer, and its trend. */
function Backlog({ name, flow }: { readonly name: string; readonly flow: Flow }) {
  const now = flow.queues[name];
  if (now === null) return <State is="broken">unread</State>;
  const depth = now ?? flow.status?.consumers[name];
  if (depth === undefined) return <>–</>;
  const { queued = 0, inFlight = 0 } = depth;
  return (
    <>
      {count(queued + inFlight)}
      {now !== undefined && now.trend !== 'level' && (
        <span title={now.trend}>
          <Icon name={now.trend} />
          <span class="unseen">{now.trend}</span>
        </span>
      )}
    </>
  );
}

/** The state of a part: its troubles in words, or that it has none. */
function Troubles({ isRead, troubles }: TroublesProps) {
  if (!isRead) return <State is="busy">reading</State>;
  if (troubles.length === 0) return <State is="ok">ok</State>;
  return (
    <span class="troubles">
      {troubles.map(({ is, text, route }) => (
        <State key={text} is={is}>
          {route === undefined ? text : <a href={route}>{text}</a>}
          {is === 'idle' && ', acknowledged'}
        </State>
      ))}
    </span>
  );
}

/** A named value of a part. */
function Metric({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <div class="metric">
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

const SPARK_WIDTH = 90;
const SPARK_HEIGHT = 24;

/** A rate over the last minute, as bars; nothing if every rate is 0. @param label - names it, e.g. `Events committed` */
function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const peak = Math.max(...values, 0);
  if (peak === 0) return null;
  const step = SPARK_WIDTH / values.length;
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${SPARK_WIDTH} ${SPARK_HEIGHT}`}
      width={SPARK_WIDTH}
      height={SPARK_HEIGHT}
      preserveAspectRatio="none"
      role="img"
      aria-label={`${label}: now ${rate(values.at(-1) ?? 0)}, at most ${rate(peak)} in the last minute`}
    >
      <path d={`M0 ${SPARK_HEIGHT - 0.5}H${SPARK_WIDTH}`} />
      {values.map((value, index) => {
        const height = (value / peak) * (SPARK_HEIGHT - 2);
        const y = SPARK_HEIGHT - 1 - height;
        return (
          value > 0 && <rect key={index} x={index * step + 0.5} y={y} width={step - 1} height={height} />
        );
      })}
    </svg>
  );
}
