import { Duration, Stack, Validations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { AwsSolutionsChecks } from 'cdk-nag';
import { describe, expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom, type OutboxAuditOptions } from '../../lib/index.ts';
import { resources, testApp } from './synth.ts';

/** A Mailroom with an audit in one stack, and a consumer in another. */
function audited(audit?: OutboxAuditOptions) {
  const app = testApp();
  const core = new Stack(app, 'Core');
  const mailroom = new Mailroom(core, 'Mailroom', audit === undefined ? {} : { audit });
  const service = new Stack(app, 'Service');
  new InboxConsumer(service, 'Payments', {
    mailroom,
    name: 'payments',
    service: 'payments',
    events: [{ source: 'orders', type: 'OrderPlaced' }],
    entry: lambdaEntry('example/bank/handler'),
  });
  const [coreTemplate, serviceTemplate] = [core, service].map((stack) => Template.fromStack(stack));
  if (coreTemplate === undefined || serviceTemplate === undefined) throw new Error('There are no templates');
  return { app, mailroom, core: coreTemplate, service: serviceTemplate };
}

function resource(template: Template, type: string, prefix: string) {
  const found = Object.entries(resources(template, type)).filter(([id]) => id.startsWith(prefix));
  expect(found, `${type} ${prefix}…`).toHaveLength(1);
  return found[0]?.[1].Properties;
}

interface RawStatement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Resource: unknown;
  readonly Condition?: unknown;
  readonly Principal?: unknown;
}

describe('the scheduled audit', () => {
  test('exists only if it is requested', () => {
    const { core, service, mailroom } = audited();
    expect(mailroom.audit).toBeUndefined();
    expect(JSON.stringify(core.toJSON())).not.toMatch(/audit/i);
    expect(JSON.stringify(service.toJSON())).not.toContain('TheAuditLooks');
  });

  test('runs every 15 minutes over the last hour, and ends before the next run', () => {
    const { core, mailroom } = audited({});
    expect(mailroom.audit?.every.toMinutes()).toBe(15);
    const rule = resource(core, 'AWS::Events::Rule', 'MailroomAudit');
    expect(rule).toMatchObject({ ScheduleExpression: 'rate(15 minutes)', State: 'ENABLED' });
    expect(rule.Targets[0].RetryPolicy.MaximumRetryAttempts).toBe(0);
    const audit = resource(core, 'AWS::Lambda::Function', 'MailroomAudit');
    expect(audit.Timeout).toBe(840);
    expect(audit.Environment.Variables).toMatchObject({
      MAILROOM_AUDIT_SINCE_MS: '3600000',
      POWERTOOLS_SERVICE_NAME: 'mailroom-audit',
    });
  });

  test("the audit's schedule sends an input that is not empty", () => {
    const rule = resource(audited({}).core, 'AWS::Events::Rule', 'MailroomAudit');
    expect(Object.keys(JSON.parse(rule.Targets[0].Input))).not.toEqual([]);
  });

  test('looks far enough back that two runs see each event, also if one is left out', () => {
    const { core } = audited({ every: Duration.hours(2) });
    const audit = resource(core, 'AWS::Lambda::Function', 'MailroomAudit');
    expect(audit.Environment.Variables.MAILROOM_AUDIT_SINCE_MS).toBe(String((6 * 60 + 5) * 60_000));
    const often = audited({ every: Duration.minutes(5) }).core;
    expect(resource(often, 'AWS::Lambda::Function', 'MailroomAudit').Timeout).toBe(295);
  });

  test.each([
    [{ every: Duration.minutes(4) }, /every is 4 minutes, but must be from 5 minutes to 6 hours/],
    [{ every: Duration.hours(7) }, /every is 7 hours, but must be from 5 minutes to 6 hours/],
    [
      { every: Duration.seconds(330) },
      /every is 5 minutes 30 seconds, but must be a whole number of minutes/,
    ],
    [
      { since: Duration.minutes(34) },
      /since is 34 minutes, but must be at least 35 minutes, twice every plus the 5 minutes/,
    ],
    [
      { since: Duration.hours(25) },
      /since is .*, but must be from 1 minute to 1 day\. .*npx cdk-mailroom audit/,
    ],
  ])('refuses %j', (options, message) => {
    expect(() => audited(options)).toThrow(message);
  });

  test('passes cdk-nag, except for the entries of consumers, the rules of its bus and an action without resource-level permissions', () => {
    const { app } = audited({});
    const { violations } = new AwsSolutionsChecks(app).validateScope(app);
    expect(violations).toEqual([]);
    const overlooked = app.node
      .findAll()
      .filter(({ node }) => node.path.startsWith('Core/Mailroom/Audit'))
      .flatMap(({ node }) => node.metadata)
      .filter(({ type }) => type === Validations.ACKNOWLEDGED_RULES_METADATA_KEY)
      .flatMap(({ data }) => Object.keys(data))
      .filter((rule) => rule.includes('AwsSolutions'));
    expect(overlooked).toEqual([
      expect.stringMatching(
        /IAM5\[Resource::arn:<AWS::Partition>:ssm:.*:parameter\/mailroom\/<MailroomTable\w+>\/consumers\/\*\]$/,
      ),
      expect.stringMatching(/IAM5\[Resource::arn:<AWS::Partition>:events:.*:rule\/<MailroomBus\w+>\/\*\]$/),
      expect.stringMatching(/IAM5\[Resource::\*\]$/),
    ]);
  });
});

describe('the role of the audit', () => {
  const { core, service } = audited({});
  const policy = resource(core, 'AWS::IAM::ManagedPolicy', 'MailroomAudit');
  const statements: readonly RawStatement[] = policy.PolicyDocument.Statement;
  const log = ['logs:CreateLogStream', 'logs:PutLogEvents'];

  test('can write nothing but its log', () => {
    const actions = statements.flatMap(({ Action }) => Action);
    expect(actions.filter((action) => !log.includes(action)).sort()).toEqual([
      'cloudwatch:GetMetricData',
      'dynamodb:BatchGetItem',
      'dynamodb:GetItem',
      'dynamodb:Query',
      'events:DescribeRule',
      'events:ListTargetsByRule',
      'ssm:GetParameterHistory',
      'ssm:GetParametersByPath',
    ]);
    expect(statements.every(({ Effect }) => Effect === 'Allow')).toBe(true);
    const role = resource(core, 'AWS::IAM::Role', 'MailroomAudit');
    expect(role).not.toHaveProperty('ManagedPolicyArns');
  });

  test('can read outbox, inbox and the state of the sweep, and no domain row', () => {
    const rows = statements
      .filter(({ Action }) => String(Action).startsWith('dynamodb:'))
      .map(({ Action, Condition }) => [Action, Condition]);
    const keys = (...keys: string[]) => {
      const LeadingKeys = keys.length === 1 ? [keys[0]] : keys;
      return {
        'ForAllValues:StringLike': { 'dynamodb:LeadingKeys': LeadingKeys },
        Null: { 'dynamodb:LeadingKeys': 'false' },
      };
    };
    expect(rows).toEqual([
      ['dynamodb:Query', keys('OUTBOX#*')],
      [['dynamodb:BatchGetItem', 'dynamodb:GetItem'], keys('INBOX#*', 'SWEEP')],
    ]);
  });

  test('can describe the rules of its own bus only', () => {
    const [rules] = statements.filter(({ Action }) => Action.includes('events:DescribeRule'));
    expect(JSON.stringify(rules?.Resource)).toMatch(/:rule\/.*MailroomBus.*\/\*/);
  });

  test('may look at the queues of a consumer, and receive from the dead ones alone', () => {
    const allowed = Object.values(resources(service, 'AWS::SQS::QueuePolicy')).flatMap(({ Properties }) => {
      const own: RawStatement[] = Properties.PolicyDocument.Statement;
      const queue = JSON.stringify(Properties.Queues).match(/Payments(DeadLetters|Undelivered|Queue)/)?.[1];
      return own
        .filter(({ Sid }) => Sid === 'TheAuditLooks')
        .map(({ Action, Principal }) => ({ queue, Action, Principal }));
    });
    const dead = ['sqs:ChangeMessageVisibility', 'sqs:GetQueueAttributes', 'sqs:ReceiveMessage'];
    expect(allowed.map(({ queue, Action }) => [queue, Action]).sort()).toEqual([
      ['DeadLetters', dead],
      ['Queue', 'sqs:GetQueueAttributes'],
      ['Undelivered', dead],
    ]);
    for (const { Principal } of allowed) expect(JSON.stringify(Principal)).toContain('MailroomAudit');
  });
});
