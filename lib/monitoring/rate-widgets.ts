import { GraphWidget, type IWidget, MathExpression, SingleValueWidget } from 'aws-cdk-lib/aws-cloudwatch';
import { type IInboxConsumer, SLO_PERCENTILE } from '../mailroom/consumer-interface.ts';
import type { DeliveryCounts } from './metrics.ts';
import { DASHBOARD_WIDTH } from './widgets.ts';

/** A consumer and its deliveries. */
interface AuditedConsumer {
  readonly consumer: IInboxConsumer;
  /** Absent unless an audit is scheduled. */
  readonly deliveries?: DeliveryCounts | undefined;
}

/** The share of deliveries on the last day, and the error budgets of a month; empty without a scheduled audit. */
export function deliveryRow(consumers: readonly AuditedConsumer[]): IWidget[] {
  const audited = consumers.flatMap(({ consumer, deliveries }) =>
    deliveries === undefined ? [] : [{ consumer, deliveries }],
  );
  if (audited.length === 0) return [];
  const percentile = (consumer: IInboxConsumer) =>
    consumer.slo && (consumer.slo.percentile ?? SLO_PERCENTILE);
  const budgets = audited.flatMap(({ consumer, deliveries }, index) => {
    const target = percentile(consumer);
    return target === undefined ? [] : [errorBudget(index, consumer.name, target, deliveries)];
  });
  return [
    new SingleValueWidget({
      title: 'Processed of what was published, 24 hours, %',
      start: '-P1D',
      metrics: audited.map(({ consumer, deliveries }, index) =>
        deliveryRate(index, consumer.name, deliveries),
      ),
      width: DASHBOARD_WIDTH / 2,
      height: 6,
    }),
    ...(budgets.length === 0
      ? []
      : [
          new GraphWidget({
            title: 'Error budget left of 30 days, events',
            start: '-P30D',
            left: budgets,
            width: DASHBOARD_WIDTH / 2,
          }),
        ]),
  ];
}

/** The processed share of a consumer's published events since the start of the graph, in percent. @param index - unique in its widget */
function deliveryRate(
  index: number,
  label: string,
  { published, processed }: DeliveryCounts,
): MathExpression {
  return new MathExpression({
    expression: `100 * RUNNING_SUM(processed${index}) / RUNNING_SUM(published${index})`,
    usingMetrics: { [`processed${index}`]: processed, [`published${index}`]: published },
    label,
    period: published.period,
  });
}

/**
 * The events that may still miss a consumer's SLO: those that it allows to miss it since the start of the graph, less those that did.
 * Events from before the consumer had an SLO do not count.
 *
 * @param index - unique in its widget
 */
function errorBudget(
  index: number,
  label: string,
  percentile: number,
  { published, withinSlo }: DeliveryCounts,
): MathExpression {
  return new MathExpression({
    expression: `RUNNING_SUM(within${index}) - ${percentile / 100} * RUNNING_SUM(IF(FILL(within${index}, -1) >= 0, published${index}, 0))`,
    usingMetrics: { [`within${index}`]: withinSlo, [`published${index}`]: published },
    label,
    period: published.period,
  });
}
