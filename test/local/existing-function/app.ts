import { fileURLToPath } from 'node:url';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { Alias, Runtime } from 'aws-cdk-lib/aws-lambda';
import { NodejsFunction } from 'aws-cdk-lib/aws-lambda-nodejs';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { InboxConsumer, Mailroom } from '../../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';

const removalPolicy = RemovalPolicy.DESTROY;

// A function as an app already has it, with an alias. It publishes, and consumes what it publishes.
const app = new App();
const env = { account: LOCAL_ACCOUNT, region: LOCAL_REGION };
const stack = new Stack(app, 'Mailroom', { env, stackName: 'existing-mailroom' });
const orders = new NodejsFunction(stack, 'Orders', {
  entry: fileURLToPath(new URL('orders.handler.ts', import.meta.url)),
  runtime: Runtime.NODEJS_24_X,
  timeout: Duration.seconds(30),
  bundling: { externalModules: [] },
});
const alias = new Alias(stack, 'Live', { aliasName: 'live', version: orders.currentVersion });
const mailroom = new Mailroom(stack, 'Mailroom', { removalPolicy });
mailroom.addProducer(orders, { service: 'orders', publishes: [OrderPlaced] });
new InboxConsumer(stack, 'Reservations', {
  mailroom,
  name: 'reservations',
  service: 'orders',
  events: [OrderPlaced],
  function: alias,
  domainKeys: ['RESERVATION#*'],
  removalPolicy,
});
new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
