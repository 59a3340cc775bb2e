import type { ComponentChildren } from 'preact';
import { duration } from '../../../terminal/times.ts';
import type { ConsumerInfo, Flow } from '../../server/protocol.ts';
import { count, many, rate } from '../frame/format.ts';
import { routeTo } from '../frame/route.ts';
import { Icon, State } from '../frame/state.tsx';
import { deadLettersOf, type PartTrouble } from './troubles.ts';

interface CardProps {
  readonly flow: Flow;
  readonly troubles: readonly PartTrouble[];
}

/** The outbox: the rate of commits, and the events that are not published. */
export function OutboxCard({ flow: { status, committedPerS }, troubles }: CardProps) {
  const isAtLeast = (what: string) => status?.atLeast.includes(`outbox.${what}`);
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
            {isAtLeast('pending') && '+'}
          </Metric>
          {status.outbox.pending > 0 && (
            <Metric name="Oldest">{duration(status.outbox.oldestPendingMs)}</Metric>
          )}
          <CountMetric name="DEAD" value={status.outbox.dead} above="broken" isAtLeast={isAtLeast('dead')} />
          {status.outbox.unreadable > 0 && (
            <CountMetric name="Unreadable" value={status.outbox.unreadable} above="broken" />
          )}
        </dl>
      )}
    </Part>
  );
}

/** The relay: its last sweep, and the heartbeat that it publishes. */
export function RelayCard({ flow: { status }, troubles }: CardProps) {
  if (status === null) return <Part node="relay" title="Relay" />;
  const { outbox, heartbeat } = status;
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

/** The bus. @param consumers - their number */
export function BusCard({
  troubles,
  consumers,
}: Pick<CardProps, 'troubles'> & { readonly consumers: number }) {
  return (
    <Part node="bus" title="Bus">
      <Troubles troubles={troubles} />
      <p class="quiet-text">EventBridge, to {many(consumers, 'consumer')}</p>
    </Part>
  );
}

/** A consumer: its backlog, its messages that need time or help, and the rate at which it processes. */
export function ConsumerCard({
  consumer: { name, events },
  flow,
  troubles,
}: CardProps & { readonly consumer: ConsumerInfo }) {
  const { status } = flow;
  const { failed = 0, rejected = 0 } = status?.consumers[name] ?? {};
  const processed = flow.processedPerS[name] ?? [];
  const isAtLeast = (what: string) => status?.atLeast.includes(`consumers.${name}.${what}`);
  const dead = status === null ? 0 : deadLettersOf(status, name);
  return (
    <li class="part consumer" data-node={`consumer:${name}`}>
      <div class="consumer-head">
        <h3 title={`Receives ${events.join(', ')}`}>{name}</h3>
        <Troubles troubles={dead === 0 ? troubles : [...troubles, { is: 'broken', text: 'Dead letters' }]} />
      </div>
      <dl class="metrics">
        <Backlog name={name} flow={flow} />
        <CountMetric name="Failed" value={failed} above="look" isAtLeast={isAtLeast('failed')} />
        <CountMetric name="Rejected" value={rejected} above="broken" isAtLeast={isAtLeast('rejected')} />
        <Metric name="Dead letters" is={dead > 0 ? 'broken' : undefined}>
          {dead > 0 ? <a href={routeTo('dead-letters')}>{count(dead)}</a> : 0}
        </Metric>
        <Metric name="Processed">
          {rate(processed.at(-1) ?? 0)}
          <Sparkline values={processed} label={`Messages processed by ${name}`} />
        </Metric>
      </dl>
    </li>
  );
}

/** The messages in the queue of a consumer, and the age of its oldest unprocessed event. */
function Backlog({ name, flow }: { readonly name: string; readonly flow: Flow }) {
  const now = flow.queues[name];
  const status = flow.status?.consumers[name];
  const { queued = 0, inFlight = 0 } = now ?? status ?? {};
  const backlog = queued + inFlight;
  const oldestMs = status?.oldestUnprocessedMs ?? 0;
  return (
    <>
      {now === null ? (
        <Metric name="Backlog" is="broken">
          not readable
        </Metric>
      ) : (
        <Metric name="Backlog">
          {count(backlog)}
          {now !== undefined && (backlog > 0 || now.trend !== 'level') && (
            <span class={`trend is-${now.trend}`} title={now.trend}>
              <Icon name={now.trend} />
              <span class="unseen">{now.trend}</span>
            </span>
          )}
        </Metric>
      )}
      <Metric name="Oldest">{oldestMs > 0 ? duration(oldestMs) : '-'}</Metric>
    </>
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

/** The state of a part: its troubles in words, or that it has none. */
function Troubles({ troubles }: { readonly troubles: readonly Pick<PartTrouble, 'is' | 'text'>[] }) {
  if (troubles.length === 0) return <State is="ok">ok</State>;
  return (
    <span class="troubles">
      {troubles.map(({ is, text }) => (
        <State key={text} is={is}>
          {text}
        </State>
      ))}
    </span>
  );
}

interface MetricProps {
  readonly name: string;
  readonly children: ComponentChildren;
  /** It is trouble: bold, with a symbol. */
  readonly is?: 'broken' | 'look' | undefined;
}

/** A named value of a part. */
function Metric({ name, children, is }: MetricProps) {
  return (
    <div class={is === undefined ? 'metric' : `metric is-${is}`}>
      <dt>{name}</dt>
      <dd>
        {is !== undefined && <Icon name={is} />}
        {children}
      </dd>
    </div>
  );
}

interface CountMetricProps {
  readonly name: string;
  readonly value: number;
  /** The meaning of a count above 0. */
  readonly above: 'broken' | 'look';
  /** It is a lower bound, because reading stopped at a limit. @default false */
  readonly isAtLeast?: boolean | undefined;
}

/** A count that should be 0. */
function CountMetric({ name, value, above, isAtLeast }: CountMetricProps) {
  return (
    <Metric name={name} is={value > 0 ? above : undefined}>
      {count(value)}
      {isAtLeast && '+'}
    </Metric>
  );
}

const SPARK_WIDTH = 90;
const SPARK_HEIGHT = 24;

/** A rate over the last minute, as bars; nothing if every rate is 0. @param label - names it, e.g. `Committed per second` */
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
