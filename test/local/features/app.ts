import { fileURLToPath } from 'node:url';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Stream, StreamMode } from 'aws-cdk-lib/aws-kinesis';
import { Alias, Runtime } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { SqsSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import {
  DefinitionBody,
  IntegrationPattern,
  JsonPath,
  StateMachine,
  TaskInput,
} from 'aws-cdk-lib/aws-stepfunctions';
import { LambdaInvoke, SqsSendMessage } from 'aws-cdk-lib/aws-stepfunctions-tasks';
import { OrderPlaced, StockReserved } from '../../../lambdas/example/events.ts';
import { strict } from '../../../lambdas/runtime/index.ts';
import { bridgeTo, InboxConsumer, Mailroom, ServiceFunction } from '../../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';
import { Booked } from './booked.ts';
import { CallRequested } from './call-requested.ts';
import { Charged, ObjectCreated } from './external-events.ts';
import { Packed, PackingRequested } from './packing.ts';
import { ReportMade } from './report-made.ts';

const removalPolicy = RemovalPolicy.DESTROY;
const entry = (name: string) => fileURLToPath(new URL(`${name}.handler.ts`, import.meta.url));

// What the order system does not use: an existing function, producers that publish at once, heartbeats and external events.
const app = new App();
const env = { account: LOCAL_ACCOUNT, region: LOCAL_REGION };
const stack = new Stack(app, 'Mailroom', { env, stackName: 'features' });

// A function as an app already has it, with an alias. It publishes, and consumes what it publishes.
const orders = new NodejsFunction(stack, 'Orders', {
  entry: entry('orders'),
  runtime: Runtime.NODEJS_24_X,
  timeout: Duration.seconds(30),
  bundling: { externalModules: [] },
});
const live = new Alias(stack, 'Live', { aliasName: 'live', version: orders.currentVersion });
const mailroom = new Mailroom(stack, 'Mailroom', {
  removalPolicy,
  sources: [
    OrderPlaced.source,
    StockReserved.source,
    Booked.source,
    PackingRequested.source,
    CallRequested.source,
  ],
  // So seldom that the tests alone send them.
  heartbeat: { every: Duration.hours(1) },
  payloads: { above: '8 KB', inline: [StockReserved] },
});
mailroom.addProducer(orders, { service: 'orders', publishes: [OrderPlaced] });
new InboxConsumer(stack, 'Reservations', {
  mailroom,
  name: 'reservations',
  service: 'orders',
  events: [OrderPlaced],
  function: { existing: live },
  domainKeys: ['RESERVATION#*'],
  removalPolicy,
});

// A consumer that receives heartbeats and nothing else.
new InboxConsumer(stack, 'Shipping', {
  mailroom,
  name: 'shipping',
  service: 'shipping',
  events: [StockReserved],
  queue: { fairBy: '$.detail.data.orderId' },
  entry: entry('shipping'),
  removalPolicy,
});

// Two producers that publish at once: one that reaches the bus, and one whose bus refuses the connection.
const producers = new Stack(app, 'Producers', { env, stackName: 'features-producers' });
for (const [id, environment] of [
  ['Api', {}],
  ['CutOff', { AWS_ENDPOINT_URL_EVENTBRIDGE: 'http://127.0.0.1:9' }],
] as const) {
  const producer = new ServiceFunction(producers, id, {
    entry: entry('place'),
    service: 'orders',
    environment,
    logRemovalPolicy: removalPolicy,
  });
  const publishAtOnce = { timeout: Duration.seconds(5) };
  mailroom.addProducer(producer, { service: 'orders', publishes: [OrderPlaced], publishAtOnce });
  new CfnOutput(producers, `${id}Function`, { value: producer.functionName });
}

// A consumer of the default bus, and one of an existing queue, to which a topic also sends.
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
  queue: { existing: webhooks },
  retry: { maxAttempts: 1, outageTolerance: Duration.seconds(0) },
  entry: entry('charges'),
  domainKeys: ['RUNS#*'],
  removalPolicy,
});

// Bridges, each to a target of another kind, and a producer that numbers its events.
const partner = new Queue(stack, 'Partner', { fifo: true });
const news = new Topic(stack, 'News');
const subscribed = new Queue(stack, 'Subscribed');
news.addSubscription(new SqsSubscription(subscribed));
const stream = new Stream(stack, 'Stream', { streamMode: StreamMode.PROVISIONED, shardCount: 1 });
for (const [id, name, forwardsTo] of [
  ['ToQueue', 'to-queue', bridgeTo.queue(partner)],
  ['ToTopic', 'to-topic', bridgeTo.topic(news)],
  ['ToStream', 'to-stream', bridgeTo.stream(stream)],
] as const) {
  new InboxConsumer(stack, id, {
    mailroom,
    name,
    service: 'bridge',
    events: [Booked],
    order: strict(),
    forwardsTo,
    entry: entry('bridge'),
    function: { environment: { BRIDGE: name } },
    retry: { first: Duration.seconds(1), longest: Duration.seconds(4) },
    removalPolicy,
  });
}
const book = new ServiceFunction(stack, 'Book', {
  entry: entry('book'),
  service: 'ledger',
  logRemovalPolicy: removalPolicy,
});
mailroom.addProducer(book, { service: 'ledger', publishes: [Booked] });
new CfnOutput(stack, 'BookFunction', { value: book.functionName });
new CfnOutput(stack, 'PartnerUrl', { value: partner.queueUrl });
new CfnOutput(stack, 'SubscribedUrl', { value: subscribed.queueUrl });
new CfnOutput(stack, 'StreamName', { value: stream.streamName });

// An execution waits for a person, and its last step commits the result.
const packed = new ServiceFunction(stack, 'Packed', {
  entry: entry('packed'),
  service: PackingRequested.source,
  logRemovalPolicy: removalPolicy,
});
mailroom.addProducer(packed, {
  service: PackingRequested.source,
  publishes: [PackingRequested, Packed],
  domainKeys: ['PACKING#*'],
});
const desk = new Queue(stack, 'Desk');
const pack = new SqsSendMessage(stack, 'Pack', {
  queue: desk,
  integrationPattern: IntegrationPattern.WAIT_FOR_TASK_TOKEN,
  messageBody: TaskInput.fromObject({
    token: JsonPath.taskToken,
    eventId: JsonPath.stringAt('$.eventId'),
    attempt: JsonPath.numberAt('$.attempt'),
  }),
  resultPath: JsonPath.DISCARD,
});
const commit = new LambdaInvoke(stack, 'Commit', {
  lambdaFunction: packed,
  payload: TaskInput.fromObject({
    parcel: JsonPath.stringAt('$.parcel'),
    eventId: JsonPath.stringAt('$.eventId'),
    correlationId: JsonPath.stringAt('$.correlationId'),
    outcome: 'packed',
  }),
}).addRetry({ interval: Duration.seconds(1), maxAttempts: 2 });
const machine = new StateMachine(stack, 'Packing', {
  definitionBody: DefinitionBody.fromChainable(pack.next(commit)),
});
const packing = new InboxConsumer(stack, 'StartPacking', {
  mailroom,
  name: 'packing',
  service: PackingRequested.source,
  events: [PackingRequested],
  entry: entry('start-packing'),
  // A crash in an effect delays its message until the function has certainly ended.
  function: { environment: { STATE_MACHINE_ARN: machine.stateMachineArn }, timeout: Duration.seconds(10) },
  queue: { visibilityTimeout: Duration.seconds(12) },
  retry: { maxAttempts: 3, outageTolerance: Duration.seconds(0) },
  removalPolicy,
});
machine.grantStartExecution(packing.function);
new CfnOutput(stack, 'PackedFunction', { value: packed.functionName });
new CfnOutput(stack, 'StateMachineArn', { value: machine.stateMachineArn });
new CfnOutput(stack, 'DeskUrl', { value: desk.queueUrl });

new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
new CfnOutput(stack, 'QueueUrl', { value: webhooks.queueUrl });
new CfnOutput(stack, 'TopicArn', { value: topic.topicArn });

// Reports whose payloads can be objects in S3.
const report = new ServiceFunction(stack, 'Report', {
  entry: entry('report'),
  service: ReportMade.source,
  logRemovalPolicy: removalPolicy,
});
mailroom.addProducer(report, { service: ReportMade.source, publishes: [ReportMade] });
new InboxConsumer(stack, 'Reports', {
  mailroom,
  name: 'reports',
  service: ReportMade.source,
  events: [ReportMade],
  entry: entry('reports'),
  domainKeys: ['REPORT#*'],
  retry: { maxAttempts: 1, outageTolerance: Duration.seconds(0) },
  removalPolicy,
});
new CfnOutput(stack, 'ReportFunction', { value: report.functionName });
new CfnOutput(stack, 'PayloadBucket', { value: mailroom.payloadBucket?.bucketName ?? '' });

// Calls of which a provider takes two at a time.
new InboxConsumer(stack, 'Calls', {
  mailroom,
  name: 'calls',
  service: CallRequested.source,
  events: [CallRequested],
  entry: entry('calls'),
  domainKeys: ['CALL#*'],
  // A crash keeps its place until the function has certainly ended.
  function: { timeout: Duration.seconds(10) },
  queue: { visibilityTimeout: Duration.seconds(12) },
  retry: { maxAttempts: 3, outageTolerance: Duration.minutes(15) },
  removalPolicy,
});
