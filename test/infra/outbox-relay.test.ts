import { Duration, Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { rangeToSweep } from '../../lambdas/runtime/relay/sweep-range.ts';
import { Mailroom, type MailroomProps, ServiceFunction } from '../../lib/index.ts';
import { lambdaEntry } from '../../lib/service-function.ts';
import { resources, synthStage, testApp } from './synth.ts';

describe('the relay', () => {
  const { templates } = synthStage('prod');
  const template = templates.Mailroom;

  test('follows only new outbox rows: marks, deletes and other rows never start the function', () => {
    const [mapping] = Object.values(resources(template, 'AWS::Lambda::EventSourceMapping'));
    const patterns = mapping?.Properties.FilterCriteria.Filters.map((filter: { Pattern: string }) =>
      JSON.parse(filter.Pattern),
    );
    expect(patterns).toEqual([
      { eventName: ['INSERT'], dynamodb: { Keys: { PK: { S: [{ prefix: 'OUTBOX#' }] } } } },
    ]);
  });

  test('cannot be held up by a record: bisect, partial failures, bounded retries and age, a failure queue', () => {
    const [mapping] = Object.values(resources(template, 'AWS::Lambda::EventSourceMapping'));
    expect(mapping?.Properties).toMatchObject({
      StartingPosition: 'TRIM_HORIZON',
      BatchSize: 100,
      BisectBatchOnFunctionError: true,
      FunctionResponseTypes: ['ReportBatchItemFailures'],
      MaximumRetryAttempts: 10,
      MaximumRecordAgeInSeconds: 3600,
      DestinationConfig: {
        OnFailure: { Destination: { 'Fn::GetAtt': [expect.stringContaining('Failures'), 'Arn'] } },
      },
    });
  });

  test('sweeps each minute, ends before the next sweep, and repeats none that failed', () => {
    const [rule] = Object.values(resources(template, 'AWS::Events::Rule'));
    expect(rule?.Properties.ScheduleExpression).toBe('rate(1 minute)');
    expect(rule?.Properties.Targets[0].RetryPolicy.MaximumRetryAttempts).toBe(0);
    const [invoke] = Object.values(resources(template, 'AWS::Lambda::EventInvokeConfig'));
    expect(invoke?.Properties.MaximumRetryAttempts).toBe(0);
    expect(sweep(template)?.Properties.Timeout).toBe(55);
  });

  test('starts the sweep with an input that is not empty, and that the sweep takes for an ordinary pass', () => {
    const [rule] = Object.values(resources(template, 'AWS::Events::Rule'));
    const input = JSON.parse(rule?.Properties.Targets[0].Input);
    expect(Object.keys(input)).not.toEqual([]);
    expect(rangeToSweep(input, Date.now())).toBeUndefined();
  });

  test('sweeps less often when told to, for as much longer', () => {
    const slow = relayTemplate({ relay: { sweepEvery: Duration.minutes(5) } });
    const [rule] = Object.values(resources(slow, 'AWS::Events::Rule'));
    expect(rule?.Properties.ScheduleExpression).toBe('rate(5 minutes)');
    expect(sweep(slow)?.Properties.Timeout).toBe(295);
  });

  test('sweeps more often inside one scheduled minute', () => {
    const quick = relayTemplate({ relay: { sweepEvery: Duration.seconds(5) } });
    const [rule] = Object.values(resources(quick, 'AWS::Events::Rule'));
    expect(rule?.Properties.ScheduleExpression).toBe('rate(1 minute)');
    expect(sweep(quick)?.Properties.Environment.Variables.MAILROOM_SWEEP_EVERY_MS).toBe('5000');
  });

  test('has room in the stream function for a born lease and a claim', () => {
    const template = relayTemplate({
      bornLease: Duration.seconds(100),
      relay: { claimLease: Duration.seconds(50) },
    });
    const stream = Object.entries(resources(template, 'AWS::Lambda::Function')).find(([id]) =>
      id.includes('Stream'),
    );
    expect(stream?.[1].Properties.Timeout).toBe(180);
  });

  test('reserves no concurrency, of which a new account has none to spare', () => {
    for (const fn of Object.values(resources(template, 'AWS::Lambda::Function'))) {
      expect(fn.Properties).not.toHaveProperty('ReservedConcurrentExecutions');
    }
  });

  test('is in place before whoever writes events', () => {
    const { app } = synthStage('prod');
    for (const name of ['Orders', 'Payments', 'Inventory', 'Notifications']) {
      const stack = app.node.findChild(name) as Stack;
      expect(stack.dependencies.map((dependency) => dependency.node.id)).toContain('Mailroom');
    }
  });

  test('is in place before a producer of the same stack, too', () => {
    const stack = new Stack(testApp(), 'Test');
    const mailroom = new Mailroom(stack, 'Mailroom');
    const producer = new ServiceFunction(stack, 'Api', {
      entry: lambdaEntry('example/bank/handler'),
      service: 'orders',
    });
    mailroom.addProducer(producer, {
      service: 'orders',
      publishes: [{ source: 'orders', type: 'OrderPlaced' }],
    });
    const functions = Object.entries(resources(Template.fromStack(stack), 'AWS::Lambda::Function'));
    const api = functions.find(([id]) => id.startsWith('Api'))?.[1];
    expect(api?.DependsOn).toEqual(
      expect.arrayContaining([expect.stringMatching(/EventSource/), expect.stringMatching(/RelaySchedule/)]),
    );
    expect(() => mailroom.addProducer(producer, { service: '', publishes: [] })).toThrow(
      'The producer Test/Api cannot work: service is "", but must have 1 to 256 letters',
    );
  });

  test('refuses settings that cannot work, all at once', () => {
    expect(() => relayTemplate({ shards: 0, relay: { sweepEvery: Duration.seconds(90) } })).toThrow(
      /^The relay Test\/Mailroom\/Relay cannot work:\n- shards is 0, .*\n- sweepEvery is 1 minute 30 seconds, /,
    );
  });
});

function relayTemplate(props: MailroomProps): Template {
  const stack = new Stack(testApp(), 'Test');
  new Mailroom(stack, 'Mailroom', props);
  return Template.fromStack(stack);
}

function sweep(template: Template) {
  return Object.entries(resources(template, 'AWS::Lambda::Function')).find(([id]) =>
    id.includes('Sweep'),
  )?.[1];
}
