import { Duration } from 'aws-cdk-lib';
import { describe, expect, test } from 'vitest';
import type { DeliveryAlarmsProps } from '../../lib/index.ts';
import {
  alarm,
  alarmed,
  alarms,
  consumer,
  MINUTE,
  metric,
  over,
  ruleOf,
  topic,
} from './delivery-alarms-rig.ts';
import { resources } from './synth.ts';

describe('alarms of a Mailroom', () => {
  test('look as often as its sweep sends its gauges', () => {
    const { template } = alarmed({}, { relay: { sweepEvery: Duration.minutes(10) } });
    expect(alarm(template, 'OldestPending').Properties.Period).toBe(10 * MINUTE);
    const quick = alarmed({}, { relay: { sweepEvery: Duration.seconds(5) } });
    expect(alarm(quick.template, 'OldestPending').Properties.Period).toBe(MINUTE);
  });

  test('take their thresholds', () => {
    const { template } = alarmed({
      thresholds: {
        oldestPending: Duration.minutes(2),
        attemptsOverThree: 5,
        attemptsFailed: 50,
        deadFor: Duration.hours(2),
        deadPerHour: 100,
      },
    });
    expect(alarm(template, 'OldestPending').Properties.Threshold).toBe(120_000);
    expect(alarm(template, 'oneAttemptsOverThree').Properties.Threshold).toBe(5);
    expect(alarm(template, 'DeadEventsForLong').Properties.EvaluationPeriods).toBe(2);
    expect(alarm(template, 'DeadEventsGrow').Properties.Threshold).toBe(100);
    expect(alarm(template, 'oneDeadLettersGrow').Properties.Threshold).toBe(100);
    expect(alarm(template, 'oneFailing').Properties.Threshold).toBe(50);
  });

  const refusals: [string, DeliveryAlarmsProps['thresholds'], string][] = [
    [
      'an age that is never measured',
      { streamAge: Duration.hours(1) },
      'streamAge is 1 hour, but must be less',
    ],
    [
      'half an hour of death',
      { deadFor: Duration.minutes(90) },
      'deadFor is 1 hour 30 minutes, but must be a whole',
    ],
    ['a negative count', { throttles: -1 }, 'throttles is -1, but must be a whole number, at least 0'],
    [
      'no time to wait',
      { oldestPending: Duration.seconds(5) },
      'oldestPending is 5 seconds, but must be from',
    ],
  ];

  test.each(refusals)('refuse %s', (_what, thresholds, message) => {
    expect(() => alarmed({ thresholds })).toThrow(message);
  });

  test('cover a consumer without an SLO, and create a ticket when it is stalled, failing or fills its queues', () => {
    const { template } = alarmed({});
    for (const id of ['oneStalled', 'oneFailing', 'oneDeadLettersGrow'])
      expect(alarm(template, id).Properties.AlarmActions, id).toEqual([topic('Ticket')]);
    expect(alarms(template).filter(([id]) => id.includes('Slow'))).toEqual([]);
  });

  test('watch the percentile that is promised, and write a ticket where nothing critical is', () => {
    const { template } = alarmed({}, {}, { slo: { latency: Duration.minutes(1), percentile: 99.9 } });
    expect(alarm(template, 'oneSlowNow').Properties.ExtendedStatistic).toBe('p99.9');
    expect(alarm(template, 'oneSlow').Properties.AlarmActions).toEqual([topic('Ticket')]);
  });

  test('link to the page where its readers have it', () => {
    const { template } = alarmed({ runbook: 'https://example.com/operating.md' });
    for (const [, { Properties }] of alarms(template)) {
      expect(JSON.stringify(Properties.AlarmDescription)).toContain(' https://example.com/operating.md#');
    }
  });

  test('page when two of three runs of the audit found something, and miss a run that is not made', () => {
    const { template } = alarmed({}, { audit: { every: Duration.minutes(20) } });
    for (const id of ['EventsMissing', 'EventsDuplicated', 'RowsUnreadable']) {
      expect(alarm(template, id).Properties).toMatchObject({
        ...over(0),
        ...metric('Mailroom', id, 'Maximum', 20 * MINUTE),
        DatapointsToAlarm: 2,
        EvaluationPeriods: 3,
        Dimensions: [{ Name: 'service', Value: 'mailroom-audit' }, { Name: 'table' }],
      });
    }
    const [[, page] = []] = alarms(template, 'AWS::CloudWatch::CompositeAlarm');
    expect(ruleOf(page)).toEqual(expect.arrayContaining(['EventsMissing', 'EventsDuplicated']));
    // Nothing is known to be lost: a ticket.
    expect(alarm(template, 'RowsUnreadable').Properties.AlarmActions).toEqual([topic('Ticket')]);
    expect(alarm(template, 'AuditSilent').Properties).toMatchObject({
      ...metric('Mailroom', 'EventsMissing', 'SampleCount', 20 * MINUTE),
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
      AlarmActions: [topic('Ticket')],
    });
  });

  test.each([
    ['by default', {}, 2],
    ['where it runs seldom', { every: Duration.hours(6) }, 37],
  ])('say how far back the runs looked that an audit alarm is about, %s', (_when, audit, hours) => {
    const { template } = alarmed({}, { audit });
    const { AlarmDescription } = alarm(template, 'EventsMissing').Properties;
    expect(JSON.stringify(AlarmDescription)).toContain(`npx cdk-mailroom audit --since ${hours}h --region`);
  });

  test('alarms do not wait for the audit if it is off', () => {
    const { template } = alarmed({});
    expect(alarms(template).filter(([id]) => id.startsWith('Audit'))).toEqual([]);
  });

  test('may be made without a dashboard', () => {
    const { template } = alarmed({ dashboard: false });
    expect(resources(template, 'AWS::CloudWatch::Dashboard')).toEqual({});
  });

  test('refuse the app when a consumer is created after them: it would have no alarms', () => {
    const { app, stack, mailroom } = alarmed({});
    consumer(stack, mailroom, 'two');
    expect(() => app.synth()).toThrow(
      'The consumer Test/two was created after the alarms Test/Alarms, so it has no alarms.',
    );
  });

  test('page once for however many consumers: no rule is longer than CloudWatch takes, whatever its alarms are called', () => {
    const many = Array.from({ length: 20 }, (_, index) => `c${index}`);
    const critical = { slo: { latency: Duration.minutes(1), critical: true } };
    const { template } = alarmed({}, { audit: {} }, critical, many, true);
    const composites = new Map(alarms(template, 'AWS::CloudWatch::CompositeAlarm'));
    const [name, arn] = [255, 'arn:aws-us-gov:cloudwatch:us-gov-west-1:111122223333:alarm:'.length];
    for (const [id, { Properties }] of composites) {
      const [, parts]: [string, (string | object)[]] = Properties.AlarmRule['Fn::Join'];
      const length = parts.reduce(
        (sum, part) => sum + (typeof part === 'string' ? part.length : name + arn),
        0,
      );
      expect(length, id).toBeLessThanOrEqual(10_240);
    }
    const under = (id: string): string[] =>
      composites.has(id) && !id.endsWith('Slow') ? ruleOf(composites.get(id)).flatMap(under) : [id];
    // Five for the relay, two for the audit, and five per consumer: lost, growing dead letters, stalled, failing, slow.
    expect(new Set(under('Page')).size).toBe(5 + 2 + 5 * many.length);
    const telling = [...composites].filter(([, { Properties }]) => Properties.AlarmActions !== undefined);
    expect(telling.map(([id]) => id)).toEqual(['Page']);
  });
});

describe('a promise is refused', () => {
  test.each([
    [{ latency: Duration.millis(10) }, 'slo.latency is 10 millis, but must be from 1 second'],
    [
      { latency: Duration.seconds(9), percentile: 100 },
      'slo.percentile is 100, but must be above 0 and below',
    ],
  ])('%#', (slo, message) => {
    expect(() => alarmed({}, {}, { slo })).toThrow(message);
  });
});
