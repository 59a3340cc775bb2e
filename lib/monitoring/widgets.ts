import {
  GraphWidget,
  type GraphWidgetProps,
  type IMetric,
  type IWidget,
  MathExpression,
  type Metric,
  Stats,
  TextWidget,
} from 'aws-cdk-lib/aws-cloudwatch';
import { COUNT_PERIOD } from './metrics.ts';

/** The width of a dashboard in columns. */
export const DASHBOARD_WIDTH = 24;

/** The axis starts at zero, so that a rise of 1 % does not look like a doubling. */
export const FROM_ZERO = { min: 0 };

/** A row of graphs that fills the width. */
export function graphs(row: readonly GraphWidgetProps[]): IWidget[] {
  return row.map(
    (props) =>
      new GraphWidget({ width: Math.floor(DASHBOARD_WIDTH / row.length), leftYAxis: FROM_ZERO, ...props }),
  );
}

/** A heading that fills the width. */
export function heading(text: string): TextWidget {
  return new TextWidget({ markdown: `## ${text}`, width: DASHBOARD_WIDTH, height: 1 });
}

/** A metric with its own label. */
export function named(metric: Metric, label: string): Metric {
  return metric.with({ label });
}

/** Names a metric that a consumer of an existing queue does not have. */
export function namedIfAny(metric: Metric | MathExpression | undefined, label: string): IMetric[] {
  return metric === undefined ? [] : [metric.with({ label })];
}

/** The median, a high percentile and the maximum of a latency. @param high - the high percentile @default 99 */
export function percentiles(latency: Metric, high = 99): Metric[] {
  return [
    ...[50, high].map((percentile) =>
      latency.with({ statistic: Stats.p(percentile), label: `p${percentile}` }),
    ),
    latency.with({ statistic: Stats.MAXIMUM, label: 'maximum' }),
  ];
}

/** Sums metrics under a label, which must be one lower-case word; none for no metrics. */
export function sum(label: string, metrics: readonly IMetric[]): MathExpression[] {
  if (metrics.length === 0) return [];
  const usingMetrics = Object.fromEntries(metrics.map((metric, index) => [`${label}${index}`, metric]));
  return [
    new MathExpression({
      expression: `SUM([${Object.keys(usingMetrics).join(', ')}])`,
      usingMetrics,
      label,
      period: COUNT_PERIOD,
    }),
  ];
}

/** Subtracts a metric, multiplied by a factor, under a label, which must be one lower-case word. */
export function minus(label: string, from: IMetric, subtracted: IMetric, factor: number): MathExpression {
  const [all, less] = [`${label}All`, `${label}Less`];
  return new MathExpression({
    expression: `${all} - ${factor} * FILL(${less}, 0)`,
    usingMetrics: { [all]: from, [less]: subtracted },
    label,
    period: COUNT_PERIOD,
  });
}
