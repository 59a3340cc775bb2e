import { Duration } from 'aws-cdk-lib';
import { strict } from '../../lambdas/runtime/base/order.ts';
import { say } from '../../lib/checks/refusal.ts';
import { headingIds } from '../docs/links.ts';
import { alarm, alarmed, alarms, ruleOf } from './delivery-alarms-rig.ts';
import type { Resource } from './synth.ts';

/** One alarm with default thresholds, as its template has it. */
interface AlarmFacts {
  readonly id: string;
  /** The heading of docs/operating.md that it links to. */
  readonly anchor: string;
  readonly severity: 'Page' | 'Ticket';
  /** The metric, and the rest of the condition: alarms with the same rest share a sentence. */
  readonly metric: string;
  readonly rest: string;
}

const COMPOSITE = 'AWS::CloudWatch::CompositeAlarm';

/** Metrics that are times, and their units in milliseconds. The others are counts. */
const UNITS_MS: Readonly<Record<string, number | undefined>> = {
  ApproximateAgeOfOldestMessage: 1_000,
  ClockDifference: 1,
  FirstDeadLetterExpiry: 1,
  IteratorAge: 1,
  OldestPendingAge: 1,
};

/**
 * Puts the severity and the condition of its alarms below each heading of the runbook, from the templates.
 *
 * @param page - the text of docs/operating.md
 */
export function withAlarmLines(page: string): string {
  const lines = alarmLines();
  return page.replaceAll(/^(### .*\n\n)(?:\*\*(?:Page|Ticket)\b.*\n\n)?/gm, (found, heading: string) => {
    const line = lines.get(headingIds(heading)[0] ?? '');
    return line === undefined ? found : `${heading}${line}\n\n`;
  });
}

/** The line of each heading, by its anchor. */
function alarmLines(): Map<string, string> {
  const [critical, others] = [facts(true), facts(false)];
  const severityOf = ({ id, severity }: AlarmFacts) =>
    others.some((other) => other.id === id && other.severity !== severity)
      ? 'Page if `critical`, else ticket'
      : severity;
  const byAnchor = groupsOf(critical, ({ anchor }) => anchor);
  return new Map(
    [...byAnchor].map(([anchor, found]) => [
      anchor,
      [...groupsOf(found, severityOf)]
        .map(([severity, same]) => `**${severity}:** ${conditions(same)}.`)
        .join(' '),
    ]),
  );
}

function conditions(found: readonly AlarmFacts[]): string {
  return [...groupsOf(found, ({ rest }) => rest)]
    .map(([rest, same]) => `${[...new Set(same.map(({ metric }) => metric))].join(' or ')} ${rest}`)
    .join(', or ');
}

function facts(critical: boolean): AlarmFacts[] {
  const slo = { latency: Duration.seconds(30), critical };
  const numbered = { source: 'orders', type: 'OrderPlaced', aggregateType: 'Order', sequence: true };
  const { template } = alarmed(
    {},
    { audit: {}, heartbeat: {} },
    { slo, events: [numbered], order: strict() },
  );
  const pages = ruleOf(alarm(template, 'Page'));
  const both = alarms(template, COMPOSITE).filter(([id]) => id !== 'Page');
  const windows = both.flatMap(([, composite]) => ruleOf(composite));
  const single = alarms(template).filter(([id]) => !windows.includes(id));
  return [...single, ...both].map(([id, { Properties }]) => ({
    id,
    anchor: /#([a-z0-9-]+)"/.exec(JSON.stringify(Properties.AlarmDescription))?.[1] ?? '',
    severity: pages.includes(id) ? 'Page' : 'Ticket',
    ...(both.some(([each]) => each === id)
      ? { metric: '`ProcessLatency`', rest: 'above the SLO in both 5 minutes and 1 hour' }
      : condition(Properties)),
  }));
}

/** What an alarm compares, in words. */
function condition(properties: Resource['Properties']): Pick<AlarmFacts, 'metric' | 'rest'> {
  const { MetricName: name, Threshold: threshold, ComparisonOperator } = properties;
  const [math, source] = properties.Metrics ?? [];
  const metric = name === undefined ? `*${math.Label}*` : `\`${name}\``;
  const period = say(Duration.seconds(properties.Period ?? source.MetricStat.Period));
  const { DatapointsToAlarm: breaches, EvaluationPeriods: among } = properties;
  const when =
    among === 1 ? period : `${among === breaches ? among : `${breaches} of ${among}`} periods of ${period}`;
  if (properties.Statistic === 'SampleCount') return { metric, rest: `not reported in ${when}` };
  const compared = ComparisonOperator === 'LessThanThreshold' ? 'below' : 'above';
  const missing = properties.TreatMissingData === 'breaching' ? ', or not reported' : '';
  const unitMs = UNITS_MS[name ?? ''];
  if (unitMs === undefined && among === 1 && threshold === 0) return { metric, rest: 'above 0' };
  if (unitMs === undefined) return { metric, rest: `${compared} ${threshold} in ${when}${missing}` };
  const limit = `${compared} ${say(Duration.millis(threshold * unitMs))}`;
  return { metric, rest: among === 1 ? limit : `${limit} in ${when}${missing}` };
}

function groupsOf<Key, Item>(items: readonly Item[], keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
}
