import { Duration, Stack } from 'aws-cdk-lib';
import { Annotations, Match } from 'aws-cdk-lib/assertions';
import { ArnPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { externalEvent } from '../../lambdas/runtime/index.ts';
import { bridgeTo, DeliveryAlarms, InboxConsumer, Mailroom } from '../../lib/index.ts';
import { testApp } from './synth.ts';

const ACCOUNT = '111111111111';
const KEY_ARN = `arn:aws:kms:eu-west-1:${ACCOUNT}:key/00000000-0000-0000-0000-000000000000`;
const OrderPlaced = { source: 'orders', type: 'OrderPlaced' };
const Hook = externalEvent({
  source: 'provider',
  type: 'Hook',
  id: 'id',
  schema: z.object({ id: z.string() }),
});

function rig() {
  const stack = new Stack(testApp(), 'Core', { env: { account: ACCOUNT, region: 'eu-west-1' } });
  return { stack, mailroom: new Mailroom(stack, 'Mailroom') };
}

function newFunction(stack: Stack, id: string, role?: Role | ReturnType<typeof Role.fromRoleArn>) {
  return new LambdaFunction(stack, id, {
    code: Code.fromInline('exports.handler = async () => {}'),
    handler: 'index.handler',
    runtime: Runtime.NODEJS_24_X,
    timeout: Duration.seconds(30),
    role,
  });
}

/** The statements of the warnings about permissions, as JSON. */
function missing(stack: Stack): string[] {
  const found = Annotations.fromStack(stack).findWarning('*', Match.stringLikeRegexp('to its policy: '));
  return found.map(({ entry }) => String(entry.data));
}

/** A consumer of an existing queue. @param makeKey - the key of its dead-letter queue */
function consumeExisting(
  stack: Stack,
  mailroom: Mailroom,
  makeKey: (stack: Stack) => Key | ReturnType<typeof Key.fromKeyArn>,
) {
  const kept = { retentionPeriod: Duration.days(14), enforceSSL: true };
  const encryption = { encryption: QueueEncryption.KMS, encryptionMasterKey: makeKey(stack) };
  const dead = new Queue(stack, 'Dead', { ...kept, ...encryption });
  const queue = new Queue(stack, 'Queue', {
    ...kept,
    visibilityTimeout: Duration.minutes(3),
    deadLetterQueue: { queue: dead, maxReceiveCount: 105 },
  });
  const props = { mailroom, name: 'hooks', service: 'payments', events: [Hook], queue: { existing: queue } };
  new InboxConsumer(stack, 'Hooks', { ...props, function: { existing: newFunction(stack, 'Function') } });
}

describe('a permission that this app cannot give is in a warning: ', () => {
  test('the sweep and an imported key of the dead-letter queue of an existing queue', () => {
    const { stack, mailroom } = rig();
    consumeExisting(stack, mailroom, () => Key.fromKeyArn(stack, 'Key', KEY_ARN));
    expect(missing(stack)).toEqual([
      expect.stringMatching(
        /^Core\/Key \(arn:aws:kms:.*\) is imported.*the sweep cannot read the dead letters of Core\/Dead\..*"kms:Decrypt".*"<ARN of MailroomRelaySweepRole\w+>"/,
      ),
    ]);
  });

  test('a producer whose role may not be changed', () => {
    const { stack, mailroom } = rig();
    const arn = `arn:aws:iam::${ACCOUNT}:role/api`;
    const role = Role.fromRoleArn(stack, 'Role', arn, { mutable: false });
    mailroom.addProducer(newFunction(stack, 'Api', role), {
      service: 'orders',
      publishes: [OrderPlaced],
      domainKeys: ['ORDER#*'],
    });
    expect(missing(stack).join()).toMatch(
      /^Core\/Role cannot be given permissions.*dynamodb:PutItem.*ORDER#/s,
    );
  });

  test('a principal that has no policies', () => {
    const { stack, mailroom } = rig();
    mailroom.table.grantOutbox(new ArnPrincipal(`arn:aws:iam::${ACCOUNT}:user/job`));
    expect(missing(stack).join()).toMatch(/user\/job.* cannot be given permissions by this app/);
  });

  test('a bridge to a queue of another account', () => {
    const { stack, mailroom } = rig();
    const queue = Queue.fromQueueArn(stack, 'Partner', 'arn:aws:sqs:eu-west-1:222222222222:partner');
    const consumer = {
      mailroom,
      name: 'partner',
      service: 'payments',
      events: [OrderPlaced],
    };
    new InboxConsumer(stack, 'Bridge', {
      ...consumer,
      function: { existing: newFunction(stack, 'Function') },
      forwardsTo: bridgeTo.queue(queue),
    });
    expect(missing(stack)).toEqual([
      expect.stringMatching(
        /^Core\/Partner is in the account 222222222222.*sqs:SendMessage.*<ARN of FunctionServiceRole/,
      ),
    ]);
  });

  test('alarms and an imported topic', () => {
    const { stack, mailroom } = rig();
    const topic = Topic.fromTopicArn(stack, 'Topic', `arn:aws:sns:eu-west-1:${ACCOUNT}:oncall`);
    new DeliveryAlarms(stack, 'Alarms', { mailroom, alarms: { page: topic, ticket: topic } });
    expect(missing(stack)).toEqual([expect.stringMatching(/^Core\/Topic .*is imported.*AlarmsPublish/)]);
  });
});

test('permissions that are given cause no warning: roles and keys of this app, and an imported role that may be changed', () => {
  const { stack, mailroom } = rig();
  consumeExisting(stack, mailroom, (scope) => new Key(scope, 'Key'));
  const role = Role.fromRoleArn(stack, 'Role', `arn:aws:iam::${ACCOUNT}:role/api`);
  mailroom.addProducer(newFunction(stack, 'Api', role), {
    service: 'orders',
    publishes: [OrderPlaced],
    domainKeys: ['ORDER#*'],
  });
  mailroom.addProducer(newFunction(stack, 'Own'), {
    service: 'orders',
    publishes: [OrderPlaced],
    domainKeys: ['ORDER#*'],
  });
  expect(missing(stack)).toEqual([]);
});
