import type { ConsumerInfo, Flow } from '../../server/protocol.ts';
import { count, rate } from '../frame/format.ts';
import { Icon } from '../frame/icon.tsx';
import { routeTo } from '../frame/route.ts';
import { CountMetric, Metric } from './metric.tsx';
import { deadLettersOf, type PartTrouble } from './parts.ts';
import { Sparkline } from './sparkline.tsx';
import { Troubles } from './troubles.tsx';

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
