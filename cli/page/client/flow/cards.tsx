import type { ComponentChildren } from 'preact';
import type { ConsumerInfo, Flow } from '../../server/protocol.ts';
import { count, rate } from '../frame/format.ts';
import { routeTo } from '../frame/route.ts';
import { Icon, State } from '../frame/state.tsx';
import { deadLettersOf, type PartTrouble } from './troubles.ts';

interface ConsumerProps {
  readonly consumer: ConsumerInfo;
  readonly flow: Flow;
  readonly troubles: readonly PartTrouble[];
}

/** A consumer: its queue, its messages that need time or help, and the rate at which it processes. */
export function ConsumerCard({ consumer: { name, events }, flow, troubles }: ConsumerProps) {
  const { status } = flow;
  const counts = status?.consumers[name];
  const processed = flow.processedPerS[name] ?? [];
  const isAtLeast = (what: string) => status?.atLeast.includes(`consumers.${name}.${what}`) ?? false;
  const dead = status === null ? 0 : deadLettersOf(status, name);
  return (
    <li class="part consumer" data-node={`consumer:${name}`}>
      <div class="consumer-head">
        <h3 title={`Receives ${events.join(', ')}`}>{name}</h3>
        <Troubles troubles={[...troubles, ...deadTrouble(dead)]} />
      </div>
      <dl class="metrics">
        <Queue name={name} flow={flow} />
        <CountMetric name="Failed" value={counts?.failed ?? 0} above="look" isAtLeast={isAtLeast('failed')} />
        <CountMetric
          name="Rejected"
          value={counts?.rejected ?? 0}
          above="broken"
          isAtLeast={isAtLeast('rejected')}
        />
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

function deadTrouble(dead: number): readonly PartTrouble[] {
  return dead === 0 ? [] : [{ part: '', is: 'broken', text: 'Dead letters', isBefore: false }];
}

function Queue({ name, flow }: { readonly name: string; readonly flow: Flow }) {
  const queue = flow.queues[name];
  if (queue === null) {
    return (
      <Metric name="Queue" is="broken">
        not readable
      </Metric>
    );
  }
  const queued = queue?.queued ?? flow.status?.consumers[name]?.queued ?? 0;
  const inFlight = queue?.inFlight ?? flow.status?.consumers[name]?.inFlight ?? 0;
  return (
    <>
      <Metric name="Queue">
        {count(queued)}
        {queue !== undefined && (queued > 0 || queue.trend !== 'level') && (
          <span class={`trend is-${queue.trend}`} title={queue.trend}>
            <Icon name={queue.trend} />
            <span class="unseen">{queue.trend}</span>
          </span>
        )}
      </Metric>
      <Metric name="In flight">{count(inFlight)}</Metric>
    </>
  );
}

interface MetricProps {
  readonly name: string;
  readonly children: ComponentChildren;
  /** Above 0 it is trouble: bold, with a symbol. */
  readonly is?: 'broken' | 'look' | undefined;
}

/** A named value of a part. */
export function Metric({ name, children, is }: MetricProps) {
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
  /** It is a lower bound, because reading stopped at a limit. */
  readonly isAtLeast?: boolean;
}

/** A count that should be 0. */
export function CountMetric({ name, value, above, isAtLeast = false }: CountMetricProps) {
  return (
    <Metric name={name} is={value > 0 ? above : undefined}>
      {count(value)}
      {isAtLeast && '+'}
    </Metric>
  );
}

const WIDTH = 90;
const HEIGHT = 24;

/** The end of a rate over the last minute, as bars; nothing if every rate is 0. @param label - names it, e.g. `Committed per second` */
export function Sparkline({ values, label }: { readonly values: readonly number[]; readonly label: string }) {
  const peak = Math.max(...values, 0);
  if (peak === 0) return null;
  const step = WIDTH / Math.max(values.length, 1);
  return (
    <svg
      class="spark"
      viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
      width={WIDTH}
      height={HEIGHT}
      role="img"
      aria-label={`${label}: now ${rate(values.at(-1) ?? 0)}, at most ${rate(peak)} in the last minute`}
    >
      <path class="spark-ground" d={`M0 ${HEIGHT - 0.5}H${WIDTH}`} />
      {values.map((value, index) => {
        const height = (value / peak) * (HEIGHT - 2);
        return value === 0 ? null : (
          <rect key={index} x={index * step + 0.5} y={HEIGHT - 1 - height} width={step - 1} height={height} />
        );
      })}
    </svg>
  );
}

/** The state of a part in the diagram: its troubles in words, or that it has none. */
export function Troubles({ troubles }: { readonly troubles: readonly PartTrouble[] }) {
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
