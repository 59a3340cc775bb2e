import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { latest, strict } from '../../lambdas/runtime/base/order.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { alarm, alarmed, alarms, metric, over, ruleOf, times, topic } from './delivery-alarms-rig.ts';
import { resources, synthStage } from './synth.ts';

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
