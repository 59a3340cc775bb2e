import { Duration, Stack } from 'aws-cdk-lib';
import { Match, Template } from 'aws-cdk-lib/assertions';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { describe, expect, test } from 'vitest';
import { rangeToSweep } from '../../lambdas/runtime/relay/sweep-range.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { Mailroom, MailroomBus, type MailroomProps, ServiceFunction } from '../../lib/index.ts';
import { resources, synthStage, testApp } from './synth.ts';

describe('the relay', () => {
  const { templates } = synthStage('prod');
  const template = templates.Mailroom;

  test('starts the sweep with an input that is not empty, and that the sweep takes for an ordinary pass', () => {
    const [rule] = Object.values(resources(template, 'AWS::Events::Rule'));
    const input = JSON.parse(rule?.Properties.Targets[0].Input);
    expect(Object.keys(input)).not.toEqual([]);
    expect(rangeToSweep(input, Date.now())).toBeUndefined();
  });

  test('gathers records for a batching window, and has more memory, if configured', () => {
    const mapped = relayTemplate({ relay: { batchingWindow: Duration.seconds(2), memoryMb: 1_769 } });
    const [mapping] = Object.values(resources(mapped, 'AWS::Lambda::EventSourceMapping'));
    expect(mapping?.Properties.MaximumBatchingWindowInSeconds).toBe(2);
    const functions = Object.values(resources(mapped, 'AWS::Lambda::Function'));
    expect(functions.map(({ Properties }) => Properties.MemorySize)).toEqual([1_769, 1_769]);
  });

  test('sweeps less often if configured, for as much longer', () => {
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

  test("the stream function's timeout has room for a stream lease and a claim", () => {
    const template = relayTemplate({
      streamLease: Duration.seconds(100),
      relay: { claimLease: Duration.seconds(50) },
    });
    const stream = Object.entries(resources(template, 'AWS::Lambda::Function')).find(([id]) =>
      id.includes('Stream'),
    );
    expect(stream?.[1].Properties.Timeout).toBe(180);
  });

  test('the relay is deployed before every function that writes events', () => {
    const { app } = synthStage('prod');
    for (const name of ['Orders', 'Payments', 'Inventory', 'Notifications']) {
      const stack = app.node.findChild(name) as Stack;
      expect(stack.dependencies.map((dependency) => dependency.node.id)).toContain('Mailroom');
    }
  });

  test('the relay is deployed before a producer of the same stack, too', () => {
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
      /^The producer Test\/Api has invalid settings:\n- service is "", but must be 1 to 256 letters.*\n- publishes is empty. List/,
    );
    const ofOthers = { service: 'orders', publishes: [{ source: 'payments', type: 'PaymentCaptured' }] };
    expect(() => mailroom.addProducer(producer, ofOthers)).toThrow(
      'publishes contains PaymentCaptured of "payments", but the service is "orders"',
    );
  });

  test('publishes the sources that are declared by the end of synth and those that are named, by its settings and by its role', () => {
    const stack = new Stack(testApp(), 'Test');
    const mailroom = new Mailroom(stack, 'Mailroom', { sources: ['shop', 'bank'] });
    mailroom.producerConfig('orders', [{ source: 'orders', type: 'OrderPlaced' }]);
    expect(declaredIn(Template.fromStack(stack))).toEqual(['bank', 'mailroom', 'orders', 'shop']);
  });

  test('publishes only heartbeats without declared sources', () => {
    const stack = new Stack(testApp(), 'Test');
    new Mailroom(stack, 'Mailroom');
    expect(declaredIn(Template.fromStack(stack))).toEqual(['mailroom']);
  });

  test('a publisher without sources can publish nothing', () => {
    const stack = new Stack(testApp(), 'Test');
    const role = new Role(stack, 'Publisher', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
    new MailroomBus(stack, 'Bus').grantPublish(role, () => []);
    Template.fromStack(stack).hasResourceProperties('AWS::IAM::Policy', {
      PolicyDocument: {
        Statement: [
          Match.objectLike({
            Condition: Match.objectLike({ 'ForAllValues:StringEquals': { 'events:source': ['(none)'] } }),
          }),
        ],
      },
    });
  });

  test('refuses an invalid source', () => {
    const stack = new Stack(testApp(), 'Test');
    expect(() => new Mailroom(stack, 'Mailroom', { sources: ['aws.s3'] })).toThrow(
      'an entry of sources is "aws.s3", but must be',
    );
  });

  test('refuses settings that cannot work, all at once', () => {
    expect(() => relayTemplate({ shards: 0, relay: { sweepEvery: Duration.seconds(90) } })).toThrow(
      /^The relay Test\/Mailroom\/Relay has invalid settings:\n- shards is 0, .*\n- sweepEvery is 1 minute 30 seconds, /,
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

/** The sources in the settings of both functions. Their roles have to allow the same ones. */
function declaredIn(template: Template): string[] {
  const relays = Object.entries(resources(template, 'AWS::Lambda::Function')).filter(([id]) =>
    /Relay(Stream|Sweep)/.test(id),
  );
  const texts = new Set(
    relays.map(([, { Properties }]) => Properties.Environment.Variables.MAILROOM_SOURCES),
  );
  expect([relays.length, texts.size]).toEqual([2, 1]);
  const sources = JSON.parse(String([...texts][0])) as string[];
  const statements = Object.values(resources(template, 'AWS::IAM::ManagedPolicy'))
    .flatMap(({ Properties }) => Properties.PolicyDocument.Statement)
    .filter(({ Action }) => Action === 'events:PutEvents');
  const condition = {
    'ForAllValues:StringEquals': { 'events:source': sources },
    Null: { 'events:source': 'false' },
  };
  expect(statements.map(({ Condition }) => Condition)).toEqual([condition, condition]);
  return sources;
}
