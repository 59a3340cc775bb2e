import type { ComponentChildren } from 'preact';
import { count } from '../frame/format.ts';
import { Icon } from '../frame/icon.tsx';

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
