import { Duration, Stack, Validations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { HEARTBEAT } from '../../lambdas/runtime/events/heartbeat-event.ts';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, type OutboxHeartbeatOptions } from '../../lib/index.ts';
import { alarm, alarmed } from './delivery-alarms-rig.ts';
import { resources, testApp } from './synth.ts';

function beating(heartbeat?: OutboxHeartbeatOptions) {
  const app = testApp();
  const stack = new Stack(app, 'Core');
  const mailroom = new Mailroom(stack, 'Mailroom', heartbeat === undefined ? {} : { heartbeat });
  return {
    app,
    stack,
    mailroom,
    get template() {
      return Template.fromStack(stack);
    },
  };
}

function resource(template: Template, type: string) {
  const found = Object.entries(resources(template, type)).filter(([id]) =>
    id.startsWith('MailroomHeartbeat'),
  );
  expect(found, type).toHaveLength(1);
  return found[0]?.[1].Properties;
}

describe('the scheduled heartbeat', () => {
  test('exists only if it is requested', () => {
    const { template, mailroom } = beating();
    expect(mailroom.heartbeat).toBeUndefined();
    expect(JSON.stringify(template.toJSON())).not.toMatch(/heartbeat/i);
  });

  test('a heartbeat is sent every 5 minutes by default and not retried', () => {
    const { template } = beating({});
    const rule = resource(template, 'AWS::Events::Rule');
    expect(rule).toMatchObject({ ScheduleExpression: 'rate(5 minutes)', State: 'ENABLED' });
    expect(rule.Targets[0].RetryPolicy.MaximumRetryAttempts).toBe(0);
    expect(resource(template, 'AWS::Lambda::Function').Environment.Variables).toMatchObject({
      MAILROOM_SERVICE: 'mailroom',
      MAILROOM_PUBLISHES: '["Heartbeat"]',
      MAILROOM_HEARTBEAT_EVERY_MS: '300000',
      POWERTOOLS_SERVICE_NAME: 'mailroom-heartbeat',
    });
  });

  test("the directory contains the heartbeat's interval", () => {
    const entry = JSON.stringify(
      Object.values(resources(beating({ every: Duration.minutes(2) }).template, 'AWS::SSM::Parameter')),
    );
    expect(entry).toMatch(/heartbeat.*function.*MailroomHeartbeatFunction.*rule.*everyMs.*120000/);
  });

  test('the heartbeat is deployed after the relay that publishes it', () => {
    const { template } = beating({});
    const [rule] = Object.entries(resources(template, 'AWS::Events::Rule')).filter(([id]) =>
      id.startsWith('MailroomHeartbeat'),
    );
    expect(rule?.[1].DependsOn).toEqual(
      expect.arrayContaining([expect.stringMatching(/^MailroomRelayStream/)]),
    );
  });

  test.each([
    [{ every: Duration.seconds(59) }, /every is 59 seconds, but must be from 1 minute to 1 hour/],
    [{ every: Duration.minutes(61) }, /every is 1 hour 1 minute, but must be from 1 minute to 1 hour/],
    [{ every: Duration.seconds(90) }, /every is 1 minute 30 seconds, but must be a whole number of minutes/],
  ])('refuses %j', (options, message) => {
    expect(() => beating(options)).toThrow(message);
  });

  test('passes cdk-nag without an exception', () => {
    const { app } = beating({});
    const { violations } = new AwsSolutionsChecks(app).validateScope(app);
    expect(violations).toEqual([]);
    const overlooked = app.node
      .findAll()
      .filter(({ node }) => node.path.startsWith('Core/Mailroom/Heartbeat'))
      .flatMap(({ node }) => node.metadata)
      .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
      .flatMap(({ data }) => Object.keys(data))
      .filter((rule) => rule.includes('AwsSolutions'));
    expect(overlooked).toEqual([]);
  });

  test('can put outbox rows and its state, read inboxes, and read the directory', () => {
    const { PolicyDocument } = resource(beating({}).template, 'AWS::IAM::ManagedPolicy');
    const granted = PolicyDocument.Statement.map(
      ({ Action, Condition }: Record<string, Record<string, Record<string, unknown>>>) => [
        Action,
        Condition?.['ForAllValues:StringLike']?.['dynamodb:LeadingKeys'],
      ],
    );
    expect(granted).toEqual([
      [['logs:CreateLogStream', 'logs:PutLogEvents'], undefined],
      ['dynamodb:PutItem', ['OUTBOX#*', 'MAILROOM#HEARTBEAT']],
      ['dynamodb:GetItem', ['MAILROOM#HEARTBEAT', 'INBOX#*']],
      ['ssm:GetParametersByPath', undefined],
    ]);
  });
});

describe('the reserved source', () => {
  const { source, type } = HEARTBEAT;
  const reserved = /is "mailroom", which is reserved for Mailroom's own events\. Choose a name like "orders"/;

  test.each<[string, (one: ReturnType<typeof beating>) => unknown]>([
    ['a source of another app', ({ app }) => new Mailroom(new Stack(app, 'O'), 'M', { sources: [source] })],
    ['a producer', ({ mailroom }) => mailroom.producerEnvironment(source, [{ source, type }])],
    ['a consumer', (one) => consumer(one, source, { source: 'orders', type: 'OrderPlaced' })],
    ['a subscription', (one) => consumer(one, 'payments', { source, type })],
  ])('is refused as %s', (_what, make) => {
    expect(() => make(beating())).toThrow(reserved);
  });

  test('cannot hold rows of a service', () => {
    const { mailroom, stack } = beating({});
    const grantee = mailroom.heartbeat?.function ?? stack.node.root;
    expect(() => mailroom.table.grantDomain(grantee as never, ['MAILROOM#*'])).toThrow(
      /"MAILROOM#\*" matches Mailroom's own rows/,
    );
  });
});

describe('the alarms on heartbeats', () => {
  const minutes = (count: number) => count * 60;

  test('exist only if heartbeats are sent', () => {
    expect(JSON.stringify(alarmed({}).template.toJSON())).not.toMatch(/HeartbeatLate|HeartbeatSilent/);
  });

  test('refuse a consumer that waits for messages as long as they are apart', () => {
    const waiting = (batchingWindow: Duration) => () =>
      alarmed({}, { heartbeat: {} }, { queue: { batchingWindow, visibilityTimeout: Duration.minutes(30) } });
    expect(waiting(Duration.seconds(299))).not.toThrow();
    expect(waiting(Duration.minutes(5))).toThrow(
      /queue\.batchingWindow is 5 minutes, but must be shorter than the interval between heartbeats, 5 minutes/,
    );
  });

  test('alarms still notice a consumer that acknowledges heartbeats while its handlers hang', () => {
    const stalled = (heartbeat?: OutboxHeartbeatOptions) =>
      JSON.stringify(
        alarm(alarmed({}, heartbeat && { heartbeat }).template, 'oneStalled').Properties.Metrics,
      );
    expect(stalled()).toContain('FILL(deleted, 0) == 0');
    expect(stalled({})).toContain('FILL(deleted, 0) <= FILL(heartbeats, 0) AND FILL(processed, 0) == 0');
    expect(stalled({})).toContain('SampleCount');
  });

  test('open a ticket when a consumer did not acknowledge two of three, and when none is sent', () => {
    const { template } = alarmed({}, { heartbeat: { every: Duration.minutes(10) } });
    const gauge = {
      MetricName: 'HeartbeatsLate',
      Dimensions: [{ Name: 'service', Value: 'mailroom-heartbeat' }, { Name: 'table' }],
      Period: minutes(10),
      EvaluationPeriods: 3,
    };
    expect(alarm(template, 'HeartbeatLate').Properties).toMatchObject({
      ...gauge,
      Statistic: 'Maximum',
      DatapointsToAlarm: 2,
      Threshold: 0,
      ComparisonOperator: 'GreaterThanThreshold',
      // A first deployment has sent none yet.
      TreatMissingData: 'notBreaching',
    });
    expect(alarm(template, 'HeartbeatSilent').Properties).toMatchObject({
      ...gauge,
      Statistic: 'SampleCount',
      DatapointsToAlarm: 3,
      Threshold: 1,
      ComparisonOperator: 'LessThanThreshold',
      TreatMissingData: 'breaching',
    });
  });

  test('the dashboard shows them, and subtracts heartbeats from what relay and rules count', () => {
    const { template } = alarmed({}, { heartbeat: {} }, {}, ['one', 'two']);
    const board = JSON.stringify(resources(template, 'AWS::CloudWatch::Dashboard'));
    expect(board).toContain('consumers that are late');
    expect(board).toContain('publishedAll - 1 * FILL(publishedLess, 0)');
    expect(board).toContain('deliveredAll - 2 * FILL(deliveredLess, 0)');
    expect(JSON.stringify(alarmed({}).template.toJSON())).not.toContain('publishedLess');
  });
});

function consumer(
  { stack, mailroom }: ReturnType<typeof beating>,
  service: string,
  event: { readonly source: string; readonly type: string },
) {
  const entry = lambdaEntry('example/bank/handler');
  return new InboxConsumer(stack, 'One', { mailroom, name: 'one', service, events: [event], entry });
}
