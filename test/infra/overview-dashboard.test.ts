import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { expect, test } from 'vitest';
import { OverviewDashboard } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

test('the overview finds the metrics of every Mailroom and consumer by their dimensions', () => {
  const stack = new Stack(testApp(), 'Test');
  new OverviewDashboard(stack, 'Overview', { dashboardName: 'mailrooms' });
  const [dashboard] = Object.values(resources(Template.fromStack(stack), 'AWS::CloudWatch::Dashboard'));
  expect(dashboard?.Properties.DashboardName).toBe('mailrooms');
  const text = JSON.stringify(dashboard?.Properties.DashboardBody);
  const found = [
    ...text.matchAll(/SEARCH\('\{Mailroom,([a-z,]+)\} MetricName=\\+"(\w+)\\+"', 'Maximum', (\d+)\)/g),
  ];
  expect(found.map(([, dimensions, name, period]) => `${name} ${dimensions} ${period}`)).toEqual([
    'OldestPendingAge service,table 60',
    'PendingEvents service,table 60',
    'DeadEvents service,table 60',
    'DeadLetters service,table 60',
    'EventsMissing service,table 300',
    'HeartbeatsLate service,table 300',
    'Backlog consumer,service,table 300',
    'OldestUnprocessedAge consumer,service,table 300',
  ]);
  expect(text).toContain(`\${PROP('Dim.table')} \${PROP('Dim.consumer')}`);
});
