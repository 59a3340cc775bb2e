import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { latest, strict } from '../../lambdas/runtime/base/order.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import {
  alarm,
  alarmed,
  alarms,
  HOUR,
  letters,
  MINUTE,
  metric,
  over,
  ruleOf,
  times,
  topic,
} from './delivery-alarms-rig.ts';
import { resources, synthStage } from './synth.ts';

interface MetricStat {
  readonly Metric: { readonly MetricName: string };
  readonly Stat: string;
  readonly Period: number;
}

test('events of a strict consumer that wait for an earlier one for 15 minutes create a ticket; no other consumer has that alarm', () => {
  const Booked = defineEvent({
    source: 'ledger',
    type: 'AmountBooked',
    version: 1,
    aggregateType: 'Account',
    schema: z.object({}),
    sequence: true,
  });
  const { template } = alarmed({}, {}, { events: [Booked], order: strict() });
  expect(alarm(template, 'oneOutOfOrder').Properties).toMatchObject({
    ...over(0),
    ...metric('Mailroom', 'MessagesOutOfOrder'),
    ...times(3),
    TreatMissingData: 'notBreaching',
    AlarmActions: [topic('Ticket')],
  });
  expect(JSON.stringify(alarm(template, 'oneOutOfOrder').Properties.AlarmDescription)).toContain(
    'npx cdk-mailroom order show one --region ',
  );
  for (const order of [latest(), undefined]) {
    const others = alarms(alarmed({}, {}, { events: [Booked], order }).template).map(([id]) => id);
    expect(others).not.toContain('oneOutOfOrder');
    expect(others).toContain('oneDeadLetters');
  }
});

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
      'dead letters wait for eight hours',
      'DeadLettersForLong',
      { ...over(0), ...metric('Mailroom', 'DeadLetters', 'Maximum', HOUR), ...times(8) },
    ],
    [
      'more than ten events become DEAD in an hour, whether or not others were DEAD before',
      'DeadEventsGrow',
      { ...over(10), ...metric('Mailroom', 'EventsDead', 'Sum', HOUR) },
    ],
    [
      'an event is DEAD',
      'DeadEvents',
      { ...over(0), ...metric('Mailroom', 'DeadEvents', 'Maximum', MINUTE) },
    ],
    [
      'an event of an undeclared source waits, and a pass that says nothing changes nothing',
      'UndeclaredEvents',
      {
        ...over(0),
        ...metric('Mailroom', 'UndeclaredEvents', 'Maximum', MINUTE),
        TreatMissingData: 'ignore',
      },
    ],
    ['the stream stopped retrying', 'StreamFailures', { ...over(0), ...letters() }],
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
    [
      'a dead-letter queue cannot be read',
      'WatchFailures',
      { ...over(0), ...metric('Mailroom', 'WatchFailures') },
    ],
    [
      'a clock is off by over a minute',
      'ClockDifference',
      { ...over(MINUTE * 1_000), ...metric('Mailroom', 'ClockDifference', 'Maximum') },
    ],
    ['the sweep dies', 'SweepErrors', { ...over(0), ...metric('AWS/Lambda', 'Errors'), ...times(3) }],
    [
      'steps of the sweep fail for 15 minutes',
      'SweepFailures',
      { ...over(0), ...metric('Mailroom', 'SweepFailures'), ...times(3) },
    ],
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
      'an effect has no stable name',
      'paymentsUnstableEffects',
      { ...over(0), ...metric('Mailroom', 'UnstableEffects') },
    ],
    [
      'a consumer is throttled',
      'paymentsThrottles',
      { ...over(0), ...metric('AWS/Lambda', 'Throttles'), ...times(3) },
    ],
    [
      'more than ten messages become dead letters in an hour, whether or not others were before',
      'paymentsDeadLettersGrow',
      over(10),
    ],
    ['every attempt of a consumer fails for half an hour', 'paymentsFailing', { ...over(0), ...times(2) }],
    [
      'the oldest message of a consumer waits for over 15 minutes',
      'paymentsBehind',
      { ...over(15 * MINUTE), ...metric('AWS/SQS', 'ApproximateAgeOfOldestMessage', 'Maximum') },
    ],
    [
      'an effect began and has no result',
      'paymentsEffectsInDoubt',
      { ...over(0), ...metric('Mailroom', 'EffectsInDoubt') },
    ],
    ['a consumer stalls for 15 minutes', 'paymentsStalled', { ...over(0), ...times(3) }],
    [
      'a promise is broken over five minutes',
      'paymentsSlowNow',
      { ...over(30_000), MetricName: 'ProcessLatency', ExtendedStatistic: 'p99', Period: 5 * MINUTE },
    ],
    [
      'the stream relay is throttled',
      'StreamThrottles',
      { ...over(0), ...metric('AWS/Lambda', 'Throttles'), ...times(3) },
    ],
    [
      'reads of the table are throttled',
      'TableReadThrottles',
      { ...over(0), ...metric('AWS/DynamoDB', 'ReadThrottleEvents'), ...times(3) },
    ],
    ...['EventsMissing', 'EventsDuplicated', 'RowsUnreadable'].map((id): [string, string, object] => [
      `two of three audits find ${id}`,
      id,
      { ...over(0), ...metric('Mailroom', id, 'Maximum', 900), DatapointsToAlarm: 2, EvaluationPeriods: 3 },
    ]),
    [
      'three audits in a row do not run',
      'AuditSilent',
      {
        ...metric('Mailroom', 'EventsMissing', 'SampleCount', 900),
        ...times(3),
        Threshold: 1,
        ComparisonOperator: 'LessThanThreshold',
        TreatMissingData: 'breaching',
      },
    ],
    [
      'two of three heartbeats are late',
      'HeartbeatLate',
      {
        ...over(0),
        ...metric('Mailroom', 'HeartbeatsLate', 'Maximum'),
        DatapointsToAlarm: 2,
        EvaluationPeriods: 3,
      },
    ],
    [
      'three heartbeats in a row are not sent',
      'HeartbeatSilent',
      {
        ...metric('Mailroom', 'HeartbeatsLate', 'SampleCount'),
        ...times(3),
        Threshold: 1,
        ComparisonOperator: 'LessThanThreshold',
        TreatMissingData: 'breaching',
      },
    ],
    [
      'a consumer fails at its table in two of six periods',
      'paymentsTableFailures',
      { ...over(0), ...metric('Mailroom', 'TableFailures'), DatapointsToAlarm: 2, EvaluationPeriods: 6 },
    ],
    [
      'an SLO is missed over an hour',
      'paymentsSlowForLong',
      { ...over(30_000), MetricName: 'ProcessLatency', ExtendedStatistic: 'p99', Period: HOUR },
    ],
  ];

  test('each have an intent here, those of one consumer for all', () => {
    const others = ['Page', /^(?:orderstatus|inventory|notifications)/];
    const named = alarms(template)
      .map(([id]) => id)
      .filter((id) => !others.some((other) => (typeof other === 'string' ? id === other : other.test(id))));
    const known = new Set([...intents.map(([, id]) => id), 'paymentsSlow']); // the two windows of a composite alarm have theirs
    expect(named.filter((id) => !known.has(id))).toEqual([]);
  });

  test.each(intents)('tell when %s', (_what, id, properties) => {
    expect(alarm(template, id).Properties).toMatchObject(properties);
  });

  test('treat missing data as fine, unless it is the failure or proves nothing', () => {
    const others = alarms(template).filter(
      ([, { Properties }]) => Properties.TreatMissingData !== 'notBreaching',
    );
    expect(others.map(([id, { Properties }]) => [id, Properties.TreatMissingData])).toEqual([
      ['OldestPending', 'breaching'],
      ['DeadLetterExpiry', 'ignore'],
      ['DeadEventsForLong', 'ignore'],
      ['DeadLettersForLong', 'ignore'],
      ['DeadEvents', 'ignore'],
      ['UndeclaredEvents', 'ignore'],
      ['AuditSilent', 'breaching'],
      ['HeartbeatSilent', 'breaching'],
    ]);
  });

  test.each([
    [
      'paymentsDeadLettersGrow',
      'MAX([DIFF(dead), DIFF(undelivered)])',
      [
        ['dead', 'ApproximateNumberOfMessagesVisible', 'Maximum'],
        ['undelivered', 'ApproximateNumberOfMessagesVisible', 'Maximum'],
      ],
      HOUR,
    ],
    [
      'paymentsFailing',
      'IF(FILL(processed, 0) == 0, SUM([failed, rejected, errors]), 0)',
      [
        ['processed', 'MessagesProcessed', 'Sum'],
        ['failed', 'MessagesFailed', 'Sum'],
        ['rejected', 'MessagesRejected', 'Sum'],
        ['errors', 'Errors', 'Sum'],
      ],
      15 * MINUTE,
    ],
  ])('compute %s from %s', (id, expression, sources, period) => {
    const [math, ...metrics] = alarm(template, id).Properties.Metrics;
    expect(math.Expression).toBe(expression);
    expect(
      metrics.map(({ Id, MetricStat }: { Id: string; MetricStat: MetricStat }) => [
        Id,
        MetricStat.Metric.MetricName,
        MetricStat.Stat,
        MetricStat.Period,
      ]),
    ).toEqual(sources.map((source) => [...source, period]));
  });

  test('watch each consumer and every dead-letter source', () => {
    const queues = alarms(template)
      .filter(([, { Properties }]) => Properties.MetricName === 'ApproximateNumberOfMessagesVisible')
      .map(([id]) => id);
    const consumers = ['orderstatus', 'payments', 'inventory', 'notifications'];
    expect(queues).toEqual([
      'StreamFailures',
      ...consumers.flatMap((name) => [`${name}DeadLetters`, `${name}Undelivered`]),
    ]);
  });

  test('use no SQS metric that omits dead letters: sends to a DLQ, the age of the oldest message', () => {
    // Behind is about messages that wait. The age omits failing ones, which have alarms of their own.
    const [behind, others] = [true, false].map((isBehind) =>
      alarms(template).filter(([id]) => id.endsWith('Behind') === isBehind),
    );
    expect(JSON.stringify(others)).not.toMatch(/NumberOfMessagesSent|ApproximateAgeOfOldestMessage/);
    expect(behind?.map(([id]) => id)).toEqual([
      'orderstatusBehind',
      'paymentsBehind',
      'inventoryBehind',
      'notificationsBehind',
    ]);
    expect(JSON.stringify(behind)).not.toMatch(/Undelivered|DeadLetters/);
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
      'DeadEventsGrow',
      'EventsMissing',
      'EventsDuplicated',
      'orderstatusLost',
      'paymentsLost',
      'paymentsDeadLettersGrow',
      'paymentsStalled',
      'paymentsFailing',
      'paymentsSlow',
      'inventoryLost',
      'notificationsLost',
    ]);
    for (const id of ruleOf(page)) expect(alarm(template, id).Properties.AlarmActions, id).toBeUndefined();
  });

  test('create a ticket for everything else', () => {
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

  test('alarms of two stages have different names', () => {
    const names = (stage: 'dev' | 'prod') =>
      alarms(synthStage(stage).templates.Operations, 'AWS::CloudWatch::CompositeAlarm').map(
        ([, { Properties }]) => Properties.AlarmName,
      );
    expect(new Set([...names('dev'), ...names('prod')]).size).toBe(4);
  });
});
