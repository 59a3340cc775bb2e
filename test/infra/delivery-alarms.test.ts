import { Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { describe, expect, test } from 'vitest';
import { DeliveryAlarms, type DeliveryAlarmsProps, InboxConsumer, Mailroom } from '../../lib/index.ts';
import type { MailroomProps } from '../../lib/mailroom.ts';
import { lambdaEntry } from '../../lib/service-function.ts';
import { type Resource, resources, synthStage, testApp } from './synth.ts';

const MINUTE = 60;
const HOUR = 3_600;

describe('the alarms of the order system', () => {
  const template = synthStage('prod').templates.Operations;

  const intents: [string, string, object][] = [
    [
      'an event waits for over 5 minutes in 3 of 5, or the sweep is silent',
      'OldestPending',
      {
        ...over(5 * MINUTE * 1_000),
        ...metric('Mailroom', 'OldestPendingAge', 'Maximum', MINUTE),
        DatapointsToAlarm: 3,
        EvaluationPeriods: 5,
        TreatMissingData: 'breaching',
      },
    ],
    [
      'the first dead letter is deleted in under 24 hours, and what could not be looked at changes nothing',
      'DeadLetterExpiry',
      {
        ...metric('Mailroom', 'FirstDeadLetterExpiry', 'Minimum', MINUTE),
        Threshold: 24 * HOUR * 1_000,
        ComparisonOperator: 'LessThanThreshold',
        TreatMissingData: 'ignore',
      },
    ],
    [
      'events are DEAD for eight hours on end',
      'DeadEventsForLong',
      { ...over(0), ...metric('Mailroom', 'DeadEvents', 'Maximum', HOUR), ...times(8) },
    ],
    [
      'letters are dead for eight hours on end',
      'DeadLettersForLong',
      { ...over(0), ...metric('Mailroom', 'DeadLetters', 'Maximum', HOUR), ...times(8) },
    ],
    [
      'an event is DEAD',
      'DeadEvents',
      { ...over(0), ...metric('Mailroom', 'DeadEvents', 'Maximum', MINUTE) },
    ],
    ['the stream gave up', 'StreamFailures', { ...over(0), ...letters() }],
    [
      'the sweep rescues events for 15 minutes',
      'Rescued',
      { ...over(0), ...metric('Mailroom', 'EventsRescued'), ...times(3) },
    ],
    [
      'the stream is half an hour behind',
      'StreamAge',
      { ...over(HOUR * 500), ...metric('AWS/Lambda', 'IteratorAge', 'Maximum') },
    ],
    [
      'the bus fails for 15 minutes',
      'BusFailures',
      { ...over(0), ...metric('Mailroom', 'BusFailures'), ...times(3) },
    ],
    ['the watch is blind', 'WatchFailures', { ...over(0), ...metric('Mailroom', 'WatchFailures') }],
    [
      'a clock is off by over a minute',
      'ClockDifference',
      { ...over(MINUTE * 1_000), ...metric('Mailroom', 'ClockDifference', 'Maximum') },
    ],
    ['the sweep dies', 'SweepErrors', { ...over(0), ...metric('AWS/Lambda', 'Errors'), ...times(3) }],
    [
      'the stream function dies',
      'StreamErrors',
      { ...over(0), ...metric('AWS/Lambda', 'Errors'), ...times(3) },
    ],
    [
      'a function of the relay is throttled',
      'SweepThrottles',
      { ...over(0), ...metric('AWS/Lambda', 'Throttles'), ...times(3) },
    ],
    [
      'the table is throttled',
      'TableWriteThrottles',
      { ...over(0), ...metric('AWS/DynamoDB', 'WriteThrottleEvents'), ...times(3) },
    ],
    [
      'an event is lost between rule and queues',
      'paymentsLost',
      { ...over(0), ...metric('AWS/Events', 'InvocationsFailedToBeSentToDlq') },
    ],
    ['a message is dead', 'paymentsDeadLetters', { ...over(0), ...letters() }],
    ['an event is not delivered', 'paymentsUndelivered', { ...over(0), ...letters() }],
    ['a rule fails', 'paymentsRuleFailures', { ...over(0), ...metric('AWS/Events', 'FailedInvocations') }],
    [
      'a message needs a fourth attempt',
      'paymentsAttemptsOverThree',
      { ...over(0), ...metric('Mailroom', 'AttemptsOverThree') },
    ],
    [
      'a fence refused a write',
      'paymentsFenceRefused',
      { ...over(0), ...metric('Mailroom', 'FenceRefused') },
    ],
    [
      'a consumer is throttled',
      'paymentsThrottles',
      { ...over(0), ...metric('AWS/Lambda', 'Throttles'), ...times(3) },
    ],
    ['a consumer stands still for 15 minutes', 'paymentsStandsStill', { ...over(0), ...times(3) }],
    [
      'a promise is broken over five minutes',
      'paymentsSlowNow',
      { ...over(30_000), MetricName: 'ProcessLatency', ExtendedStatistic: 'p99', Period: 5 * MINUTE },
    ],
    [
      'a promise is broken over an hour',
      'paymentsSlowForLong',
      { ...over(30_000), MetricName: 'ProcessLatency', ExtendedStatistic: 'p99', Period: HOUR },
    ],
  ];

  test.each(intents)('tell when %s', (_what, id, properties) => {
    expect(alarm(template, id).Properties).toMatchObject(properties);
  });

  test('call a silent metric fine, except where silence is the failure or says nothing', () => {
    const others = alarms(template).filter(
      ([, { Properties }]) => Properties.TreatMissingData !== 'notBreaching',
    );
    expect(others.map(([id, { Properties }]) => [id, Properties.TreatMissingData])).toEqual([
      ['OldestPending', 'breaching'],
      ['DeadLetterExpiry', 'ignore'],
      ['DeadEventsForLong', 'ignore'],
      ['DeadLettersForLong', 'ignore'],
      ['DeadEvents', 'ignore'],
      ['AuditSilent', 'breaching'],
    ]);
  });

  test('watch each consumer, and every place where something can be dead', () => {
    const queues = alarms(template)
      .filter(([, { Properties }]) => Properties.MetricName === 'ApproximateNumberOfMessagesVisible')
      .map(([id]) => id);
    const consumers = ['orderstatus', 'payments', 'inventory', 'notifications'];
    expect(queues).toEqual([
      'StreamFailures',
      ...consumers.flatMap((name) => [`${name}DeadLetters`, `${name}Undelivered`]),
    ]);
  });

  test('use no metric of SQS that leaves out what is dead: sends to a DLQ, the age of the oldest message', () => {
    const names = JSON.stringify(Object.fromEntries(alarms(template)));
    expect(names).not.toMatch(/NumberOfMessagesSent|ApproximateAgeOfOldestMessage/);
  });

  test('can each go off: the stream gives a record up before it is as old as an alarm would wait for', () => {
    const [mapping] = Object.values(
      resources(synthStage('prod').templates.Mailroom, 'AWS::Lambda::EventSourceMapping'),
    );
    const { Threshold } = alarm(template, 'StreamAge').Properties;
    expect(Threshold).toBeLessThan(mapping?.Properties.MaximumRecordAgeInSeconds * 1_000);
  });

  test('find a rule of a custom bus under both its dimensions, by its own name', () => {
    const { Dimensions } = alarm(template, 'paymentsLost').Properties;
    expect(Dimensions).toEqual([
      { Name: 'EventBusName', Value: { 'Fn::ImportValue': expect.stringContaining('RefMailroomBus') } },
      {
        Name: 'RuleName',
        Value: {
          'Fn::Select': [
            2,
            { 'Fn::Split': ['/', { 'Fn::ImportValue': expect.stringMatching(/GetAttPaymentsRule.*Arn/) }] },
          ],
        },
      },
    ]);
  });

  test('find the metrics of the functions under the dimensions that these send', () => {
    const names = (id: string) =>
      alarm(template, id).Properties.Dimensions.map(({ Name, Value }: { Name: string; Value: unknown }) => [
        Name,
        typeof Value === 'string' ? Value : '…',
      ]);
    expect(names('OldestPending')).toEqual([
      ['service', 'mailroom-relay'],
      ['table', '…'],
    ]);
    expect(names('orderstatusFenceRefused')).toEqual([
      ['consumer', 'order-status'],
      ['service', 'orders'],
      ['table', '…'],
    ]);
  });

  test('page once for one incident: a composite of all pages has the action, and they have none', () => {
    const paging = alarms(template, 'AWS::CloudWatch::CompositeAlarm').filter(
      ([, { Properties }]) => Properties.AlarmActions !== undefined,
    );
    expect(paging.map(([id]) => id)).toEqual(['Page']);
    const [[, page] = []] = paging;
    expect(page?.Properties.AlarmActions).toEqual([topic('Page')]);
    expect(ruleOf(page)).toEqual([
      'OldestPending',
      'DeadLetterExpiry',
      'DeadEventsForLong',
      'DeadLettersForLong',
      'EventsMissing',
      'EventsDoubled',
      'orderstatusLost',
      'paymentsLost',
      'paymentsStandsStill',
      'paymentsSlow',
      'inventoryLost',
      'notificationsLost',
    ]);
    for (const id of ruleOf(page)) expect(alarm(template, id).Properties.AlarmActions, id).toBeUndefined();
  });

  test('write a ticket for everything else', () => {
    const [[, page] = []] = alarms(template, 'AWS::CloudWatch::CompositeAlarm').filter(
      ([id]) => id === 'Page',
    );
    const windows = ['paymentsSlowNow', 'paymentsSlowForLong'];
    const tickets = alarms(template).filter(([id]) => ![...ruleOf(page), ...windows].includes(id));
    expect(tickets.length).toBeGreaterThan(30);
    for (const [id, { Properties }] of tickets)
      expect(Properties.AlarmActions, id).toEqual([topic('Ticket')]);
  });

  test('tell of a broken promise only when both of its windows break', () => {
    expect(ruleOf(alarm(template, 'paymentsSlow'))).toEqual(['paymentsSlowNow', 'paymentsSlowForLong']);
    expect(JSON.stringify(alarm(template, 'paymentsSlow').Properties.AlarmRule)).toContain(' AND ');
  });

  test('have no name that another stage has too', () => {
    const names = (stage: 'dev' | 'prod') =>
      alarms(synthStage(stage).templates.Operations, 'AWS::CloudWatch::CompositeAlarm').map(
        ([, { Properties }]) => Properties.AlarmName,
      );
    expect(new Set([...names('dev'), ...names('prod')]).size).toBe(4);
  });
});

describe('the topics', () => {
  const template = synthStage('prod').templates.Operations;

  test('take messages from alarms of this account, and over TLS only', () => {
    for (const { Properties } of Object.values(resources(template, 'AWS::SNS::TopicPolicy'))) {
      const [deny, allow] = Properties.PolicyDocument.Statement;
      expect(deny).toMatchObject({ Effect: 'Deny', Condition: { Bool: { 'aws:SecureTransport': 'false' } } });
      expect(allow).toMatchObject({
        Effect: 'Allow',
        Action: 'sns:Publish',
        Principal: { Service: 'cloudwatch.amazonaws.com' },
      });
      expect(JSON.stringify(allow.Condition.ArnLike['aws:SourceArn'])).toContain(':alarm:*');
    }
  });

  test('are encrypted with a key that CloudWatch may use, which the one of AWS would not be', () => {
    const topics = Object.values(resources(template, 'AWS::SNS::Topic'));
    expect(topics).toHaveLength(2);
    for (const { Properties } of topics) {
      expect(Properties.KmsMasterKeyId).toEqual({ 'Fn::GetAtt': [expect.stringMatching(/^Key/), 'Arn'] });
    }
    const [key] = Object.values(resources(template, 'AWS::KMS::Key'));
    expect(key?.Properties.EnableKeyRotation).toBe(true);
    expect(key?.Properties.KeyPolicy.Statement).toContainEqual(
      expect.objectContaining({
        Action: ['kms:Decrypt', 'kms:GenerateDataKey*'],
        Principal: { Service: 'cloudwatch.amazonaws.com' },
      }),
    );
  });

  test('have no subscriber unless the context names one', () => {
    expect(Object.keys(resources(template, 'AWS::SNS::Subscription'))).toEqual([]);
    const named = synthStage('prod', { pageEmail: 'oncall@example.com', ticketEmail: 'team@example.com' });
    const subscriptions = Object.values(resources(named.templates.Operations, 'AWS::SNS::Subscription'));
    expect(subscriptions.map(({ Properties }) => [Properties.Protocol, Properties.Endpoint])).toEqual([
      ['email', 'oncall@example.com'],
      ['email', 'team@example.com'],
    ]);
  });
});

describe('where there are no composite alarms', () => {
  const template = synthStage('local').templates.Operations;

  test('no alarm is made that such an engine refuses', () => {
    expect(alarms(template).filter(([, { Properties }]) => Properties.Metrics !== undefined)).toEqual([]);
    expect(alarms(template).filter(([id]) => id.endsWith('StandsStill'))).toEqual([]);
  });

  test('each page pages, and a promise over its long window', () => {
    expect(alarms(template, 'AWS::CloudWatch::CompositeAlarm')).toEqual([]);
    const paging = alarms(template).filter(([, { Properties }]) =>
      /^Page/.test(Properties.AlarmActions?.[0].Ref),
    );
    expect(paging.map(([id]) => id)).toContain('paymentsSlowForLong');
    expect(paging).toHaveLength(11);
    expect(alarm(template, 'paymentsSlowNow').Properties.AlarmActions).toBeUndefined();
  });
});

describe('alarms of a Mailroom', () => {
  test('look as often as its sweep sends its gauges', () => {
    const { template } = alarmed({}, { relay: { sweepEvery: Duration.minutes(10) } });
    expect(alarm(template, 'OldestPending').Properties.Period).toBe(10 * MINUTE);
    const quick = alarmed({}, { relay: { sweepEvery: Duration.seconds(5) } });
    expect(alarm(quick.template, 'OldestPending').Properties.Period).toBe(MINUTE);
  });

  test('take their thresholds', () => {
    const { template } = alarmed({
      thresholds: { oldestPending: Duration.minutes(2), attemptsOverThree: 5, deadFor: Duration.hours(2) },
    });
    expect(alarm(template, 'OldestPending').Properties.Threshold).toBe(120_000);
    expect(alarm(template, 'oneAttemptsOverThree').Properties.Threshold).toBe(5);
    expect(alarm(template, 'DeadEventsForLong').Properties.EvaluationPeriods).toBe(2);
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
    ['a count below none', { throttles: -1 }, 'throttles is -1, but must be a whole number from 0'],
    [
      'no time to wait',
      { oldestPending: Duration.seconds(5) },
      'oldestPending is 5 seconds, but must be from',
    ],
  ];

  test.each(refusals)('refuse %s', (_what, thresholds, message) => {
    expect(() => alarmed({ thresholds })).toThrow(message);
  });

  test('cover a consumer without a promise, and write a ticket when it stands still', () => {
    const { template } = alarmed({});
    expect(alarm(template, 'oneStandsStill').Properties.AlarmActions).toEqual([topic('Ticket')]);
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
    for (const id of ['EventsMissing', 'EventsDoubled']) {
      expect(alarm(template, id).Properties).toMatchObject({
        ...over(0),
        ...metric('Mailroom', id, 'Maximum', 20 * MINUTE),
        DatapointsToAlarm: 2,
        EvaluationPeriods: 3,
        Dimensions: [{ Name: 'service', Value: 'mailroom-audit' }, { Name: 'table' }],
      });
    }
    const [[, page] = []] = alarms(template, 'AWS::CloudWatch::CompositeAlarm');
    expect(ruleOf(page)).toEqual(expect.arrayContaining(['EventsMissing', 'EventsDoubled']));
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
    ['where it runs seldom', { every: Duration.hours(6) }, 31],
  ])('say how far back the runs looked that an audit alarm is about, %s', (_when, audit, hours) => {
    const { template } = alarmed({}, { audit });
    const { AlarmDescription } = alarm(template, 'EventsMissing').Properties;
    expect(JSON.stringify(AlarmDescription)).toContain(`npx mailroom audit --since ${hours}h --region`);
  });

  test('do not wait for an audit that there is not', () => {
    const { template } = alarmed({});
    expect(alarms(template).filter(([id]) => id.startsWith('Audit'))).toEqual([]);
  });

  test('may be made without a dashboard', () => {
    const { template } = alarmed({ dashboard: false });
    expect(resources(template, 'AWS::CloudWatch::Dashboard')).toEqual({});
  });

  test('refuse the app when a consumer is made after them: nobody would hear of it', () => {
    const { app, stack, mailroom } = alarmed({});
    consumer(stack, mailroom, 'two');
    expect(() => app.synth()).toThrow(
      'The consumer Test/two was made after the alarms Test/Alarms, so nobody would be told when it fails.',
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
    // Four of the relay, two of the audit, and of each consumer: lost, stands still, slow.
    expect(new Set(under('Page')).size).toBe(4 + 2 + 3 * many.length);
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

/** A Mailroom with consumers and alarms, all in one stack, or each consumer in one of its own. */
function alarmed(
  props: Partial<DeliveryAlarmsProps>,
  mailroomProps: MailroomProps = {},
  consumerProps: Partial<InboxConsumer> = {},
  names: readonly string[] = ['one'],
  apart = false,
) {
  const app = testApp();
  const stack = new Stack(app, 'Test');
  const shared = apart ? new Stack(app, 'Shared') : stack;
  const mailroom = new Mailroom(shared, 'Mailroom', mailroomProps);
  for (const name of names)
    consumer(apart ? new Stack(app, `Of-${name}`) : stack, mailroom, name, consumerProps);
  new DeliveryAlarms(stack, 'Alarms', {
    mailroom,
    alarms: { page: new Topic(stack, 'Page'), ticket: new Topic(stack, 'Ticket') },
    ...props,
  });
  return {
    app,
    stack,
    mailroom,
    get template() {
      return Template.fromStack(stack);
    },
  };
}

function consumer(stack: Stack, mailroom: Mailroom, name: string, props: Partial<InboxConsumer> = {}) {
  return new InboxConsumer(stack, name, {
    mailroom,
    name,
    service: 'orders',
    from: ['orders'],
    events: [{ type: 'OrderPlaced' }],
    entry: lambdaEntry('example/inventory/handler'),
    slo: props.slo,
  });
}

/** The alarms of a template by their place in the construct tree, in its order. */
function alarms(template: Template, type = 'AWS::CloudWatch::Alarm'): [string, Resource][] {
  return Object.entries(resources(template, type)).map(([id, resource]) => [shortId(id), resource]);
}

function alarm(template: Template, id: string): Resource {
  const all = [...alarms(template), ...alarms(template, 'AWS::CloudWatch::CompositeAlarm')];
  const found = all.find(([each]) => each === id);
  if (found === undefined) throw new Error(`No alarm ${id} among ${all.map(([each]) => each).join(', ')}`);
  return found[1];
}

function shortId(logicalId: string): string {
  return logicalId.replace(/^Alarms/, '').replace(/[0-9A-F]{8}$/, '');
}

/** The alarms that a composite alarm is made of. */
function ruleOf(composite: Resource | undefined): string[] {
  const [, parts] = composite?.Properties.AlarmRule['Fn::Join'] ?? [];
  return (parts as (string | Record<string, string[]>)[]).flatMap((part) =>
    typeof part === 'string' ? [] : [shortId(part['Fn::GetAtt']?.[0] ?? '')],
  );
}

function topic(id: string) {
  return { Ref: expect.stringMatching(new RegExp(`^${id}[0-9A-F]{8}$`)) };
}

function over(threshold: number) {
  return { Threshold: threshold, ComparisonOperator: 'GreaterThanThreshold' };
}

function metric(namespace: string, name: string, statistic = 'Sum', period = 5 * MINUTE) {
  return { Namespace: namespace, MetricName: name, Statistic: statistic, Period: period };
}

function letters() {
  return metric('AWS/SQS', 'ApproximateNumberOfMessagesVisible', 'Maximum');
}

function times(periods: number) {
  return { DatapointsToAlarm: periods, EvaluationPeriods: periods };
}
