import { fileURLToPath } from 'node:url';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { SqsSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { InboxConsumer, Mailroom } from '../../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';
import { Charged, ObjectCreated } from './events.ts';

const removalPolicy = RemovalPolicy.DESTROY;
const entry = (name: string) => fileURLToPath(new URL(`${name}.handler.ts`, import.meta.url));

// One consumer of the default bus, and one of an existing queue, to which a topic also sends.
const app = new App();
const stack = new Stack(app, 'Mailroom', {
  env: { account: LOCAL_ACCOUNT, region: LOCAL_REGION },
  stackName: 'foreign-mailroom',
});
const mailroom = new Mailroom(stack, 'Mailroom', { removalPolicy });
new InboxConsumer(stack, 'Thumbnails', {
  mailroom,
  name: 'thumbnails',
  service: 'photos',
  events: [ObjectCreated],
  entry: entry('thumbnails'),
  domainKeys: ['RUNS#*'],
  removalPolicy,
});
const retentionPeriod = Duration.days(14);
const webhooks = new Queue(stack, 'Webhooks', {
  retentionPeriod,
  visibilityTimeout: Duration.seconds(30),
  deadLetterQueue: { queue: new Queue(stack, 'WebhooksDead', { retentionPeriod }), maxReceiveCount: 16 },
});
const topic = new Topic(stack, 'Topic');
topic.addSubscription(new SqsSubscription(webhooks));
new InboxConsumer(stack, 'Charges', {
  mailroom,
  name: 'charges',
  service: 'payments',
  events: [Charged],
  queue: webhooks,
  retry: { attempts: 1 },
  outageTolerance: Duration.seconds(0),
  entry: entry('charges'),
  domainKeys: ['RUNS#*'],
  removalPolicy,
});
new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
new CfnOutput(stack, 'QueueUrl', { value: webhooks.queueUrl });
new CfnOutput(stack, 'TopicArn', { value: topic.topicArn });
