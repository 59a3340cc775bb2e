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
import { COUNT_PERIOD } from './delivery-metrics.ts';

/** How many columns a dashboard has. */
export const DASHBOARD_WIDTH = 24;

/** An axis from zero: a line that goes up by a hundredth must not look like one that doubles. */
export const FROM_ZERO = { min: 0 };

/** A row of graphs beside each other, over the whole width. */
export function graphs(row: readonly GraphWidgetProps[]): IWidget[] {
  return row.map(
    (props) => new GraphWidget({ width: DASHBOARD_WIDTH / row.length, leftYAxis: FROM_ZERO, ...props }),
  );
}

/** A heading over the whole width. */
export function heading(text: string): TextWidget {
  return new TextWidget({ markdown: `## ${text}`, width: DASHBOARD_WIDTH, height: 1 });
}

/** A metric under a name of its own. */
export function named(metric: Metric, label: string): Metric {
  return metric.with({ label });
}

/** Half of a latency's values, and nearly all. @param high - of how many in a hundred @default 99 */
export function percentiles(latency: Metric, high = 99): Metric[] {
  return [50, high].map((percentile) =>
    latency.with({ statistic: Stats.p(percentile), label: `p${percentile}` }),
  );
}

/** The sum of metrics under a label, a word in lower case; of none, nothing. */
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
