import { Duration } from 'aws-cdk-lib';
import { Dashboard, GraphWidget, type IWidget, MathExpression, TextWidget } from 'aws-cdk-lib/aws-cloudwatch';
import type { Construct } from 'constructs';
import type { PropNames } from '../lambdas/runtime/base/given-names.ts';
import type { MetricName } from '../lambdas/runtime/observe/telemetry.ts';
import { refuseNames } from './checks/refusal.ts';
import { SCHEDULE_MIN } from './checks/timings.ts';
import { COUNT_PERIOD } from './monitoring/metrics.ts';
import { DASHBOARD_WIDTH, FROM_ZERO } from './monitoring/widgets.ts';

/** Properties of an {@link OverviewDashboard}. */
export interface OverviewDashboardProps {
  /** The name of the dashboard. @default a name that CloudFormation generates */
  readonly dashboardName?: string;
}

/** The dimensions of a metric: those of a table, or of each consumer of a table. */
type Dimensions = 'service,table' | 'consumer,service,table';

const NAMES: PropNames<OverviewDashboardProps> = { dashboardName: 'optional' };

/**
 * One dashboard of all Mailrooms of an account and region, whichever app deploys them, also in PostgreSQL and MySQL: it searches their metrics by name. A
 * Mailroom appears when it has sent its first metric. Each line is labeled with its table, and its consumer.
 *
 * It has no alarms: `DeliveryAlarms` has those of one Mailroom.
 *
 * @example
 * ```ts
 * new OverviewDashboard(this, 'Overview', { dashboardName: 'mailrooms' });
 * ```
 */
export class OverviewDashboard extends Dashboard {
  constructor(scope: Construct, id: string, props: OverviewDashboardProps = {}) {
    refuseNames(`The dashboard ${scope.node.path}/${id}`, props, NAMES);
    const row = (...widgets: readonly [string, Dimensions, MetricName, Duration?][]): IWidget[] =>
      widgets.map(
        ([title, dimensions, name, period = SCHEDULE_MIN]) =>
          new GraphWidget({
            title,
            left: [found(name, dimensions, period)],
            leftYAxis: FROM_ZERO,
            width: DASHBOARD_WIDTH / widgets.length,
          }),
      );
    super(scope, id, {
      dashboardName: props.dashboardName,
      defaultInterval: Duration.hours(6),
      widgets: [
        [
          new TextWidget({
            markdown:
              'All Mailrooms of this account and region, by table. `npx cdk-mailroom status` names what requires action, with commands.',
            width: DASHBOARD_WIDTH,
            height: 1,
          }),
        ],
        row(
          ['Oldest pending event (ms)', 'service,table', 'OldestPendingAge'],
          ['Pending events', 'service,table', 'PendingEvents'],
          ['DEAD events', 'service,table', 'DeadEvents'],
        ),
        row(
          ['Dead letters', 'service,table', 'DeadLetters'],
          ['Missing events', 'service,table', 'EventsMissing', COUNT_PERIOD],
          ['Late heartbeats', 'service,table', 'HeartbeatsLate', COUNT_PERIOD],
        ),
        row(
          ['Backlog by consumer', 'consumer,service,table', 'Backlog', COUNT_PERIOD],
          [
            'Oldest unprocessed event by consumer (ms)',
            'consumer,service,table',
            'OldestUnprocessedAge',
            COUNT_PERIOD,
          ],
        ),
      ],
    });
  }
}

/** Every metric of a name, with its highest value per period. */
function found(name: MetricName, dimensions: Dimensions, period: Duration): MathExpression {
  const parts = dimensions.startsWith('consumer') ? ['table', 'consumer'] : ['table'];
  return new MathExpression({
    expression: `SEARCH('{Mailroom,${dimensions}} MetricName="${name}"', 'Maximum', ${period.toSeconds()})`,
    label: parts.map((part) => `\${PROP('Dim.${part}')}`).join(' '),
    period,
    usingMetrics: {},
  });
}
