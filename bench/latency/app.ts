import { fileURLToPath } from 'node:url';
import { App, CfnOutput, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { InboxConsumer, Mailroom } from '../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../localstack/workspace.ts';
import { CONSUMER } from './producers.ts';

/** Each concurrent invocation is a separate process on a laptop. */
const CONSUMERS_AT_ONCE = 2;

const removalPolicy = RemovalPolicy.DESTROY;

// A Mailroom with its defaults, and one consumer that receives every order, however it was published.
const stack = new Stack(new App(), 'Latency', {
  env: { account: LOCAL_ACCOUNT, region: LOCAL_REGION },
  stackName: 'mailroom-latency',
});
const mailroom = new Mailroom(stack, 'Mailroom', { removalPolicy, sources: [OrderPlaced.source] });
new InboxConsumer(stack, 'Reservations', {
  mailroom,
  name: CONSUMER,
  service: 'inventory',
  events: [OrderPlaced],
  entry: fileURLToPath(new URL('reservations.handler.ts', import.meta.url)),
  domainKeys: ['RESERVATION#*'],
  maxConcurrency: CONSUMERS_AT_ONCE,
  removalPolicy,
});
new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
new CfnOutput(stack, 'EventBusName', { value: mailroom.bus.eventBusName });
