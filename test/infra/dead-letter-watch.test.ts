import { Stack } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { lambdaEntry } from '../../lib/functions/service-function.ts';
import { InboxConsumer, Mailroom } from '../../lib/index.ts';
import { keysFor, statementsOf } from './policies.ts';
import { resources, synthStage, testApp } from './synth.ts';

interface RawStatement {
  readonly Sid?: string;
  readonly Effect: string;
  readonly Action: string | readonly string[];
  readonly Principal?: unknown;
  readonly Resource: unknown;
}

const LOOKING = ['sqs:GetQueueAttributes', 'sqs:ReceiveMessage'];

describe('the sweep may look after dead letters', () => {
  const { templates } = synthStage('prod');
  const ofRole = rawStatements(templates.Mailroom, 'AWS::IAM::ManagedPolicy', /^MailroomRelaySweepRole/);

  test('the sweep may look into every dead-letter queue of a consumer, not into its source queue', () => {
    for (const stack of ['Payments', 'Inventory', 'Notifications', 'Orders'] as const) {
      const template = templates[stack];
      for (const queue of [/DeadLettersPolicy/, /UndeliveredPolicy/]) {
        expect(looking(rawStatements(template, 'AWS::SQS::QueuePolicy', queue))).toEqual([
          expect.objectContaining({
            Effect: 'Allow',
            Action: LOOKING,
            Principal: { AWS: { 'Fn::ImportValue': expect.stringContaining('SweepRole') } },
          }),
        ]);
      }
      expect(looking(rawStatements(template, 'AWS::SQS::QueuePolicy', /QueuePolicy/))).toEqual([]);
    }
  });

  test('the sweep may look into its own failure queue, and its policy names no queue of another stack', () => {
    const queues = ofRole.filter(({ Action }) => [Action].flat().some((action) => action.startsWith('sqs:')));
    expect(queues).toEqual([
      {
        Effect: 'Allow',
        Action: LOOKING,
        Resource: { 'Fn::GetAtt': [expect.stringContaining('RelayFailures'), 'Arn'] },
      },
    ]);
  });

  test('the sweep may read only the directory of its own Mailroom', () => {
    const [directory, ...others] = ofRole.filter(({ Action }) => [Action].flat().join().startsWith('ssm:'));
    expect(others).toEqual([]);
    expect(directory?.Action).toBe('ssm:GetParametersByPath');
    expect(JSON.stringify(directory?.Resource)).toMatch(
      /:parameter\/mailroom\/",\{"Ref":"MailroomTable\w+"\}\]\]\}$/,
    );
  });

  test('the sweep may only read the pointers of rejected messages', () => {
    const statements = statementsOf(templates.Mailroom, 'MailroomRelaySweepRole');
    const rejected = statements.filter(({ keys }) => keys?.some((key) => key.startsWith('REJECTED#')));
    expect(rejected.flatMap(({ actions }) => actions)).toEqual(['dynamodb:Query']);
    expect(keysFor(statements, 'dynamodb:Query')).toContain('REJECTED#*');
  });

  test('the sweep may look into dead-letter queues of a consumer in its own stack', () => {
    const stack = new Stack(testApp(), 'Test');
    const mailroom = new Mailroom(stack, 'Mailroom');
    new InboxConsumer(stack, 'Consumer', {
      mailroom,
      name: 'one',
      service: 'orders',
      events: [{ source: 'orders', type: 'OrderPlaced' }],
      entry: lambdaEntry('example/inventory/handler'),
    });
    const policies = rawStatements(Template.fromStack(stack), 'AWS::SQS::QueuePolicy', /^Consumer/);
    expect(looking(policies)).toHaveLength(2);
  });
});

test('the stream relay may not: it has no use for it', () => {
  const { templates } = synthStage('prod');
  const statements = rawStatements(templates.Mailroom, 'AWS::IAM::ManagedPolicy', /^MailroomRelayStreamRole/);
  const actions = statements.flatMap(({ Action }) => Action);
  expect(actions).not.toContain('sqs:ReceiveMessage');
  expect(actions).not.toContain('ssm:GetParametersByPath');
});

function rawStatements(template: Template, type: string, id: RegExp): RawStatement[] {
  return Object.entries(resources(template, type))
    .filter(([logicalId]) => id.test(logicalId))
    .flatMap(([, policy]) => policy.Properties.PolicyDocument.Statement as RawStatement[]);
}

function looking(statements: readonly RawStatement[]): RawStatement[] {
  return statements.filter(({ Sid }) => Sid === 'TheSweepLooksAtDeadLetters');
}
