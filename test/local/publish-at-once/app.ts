import { fileURLToPath } from 'node:url';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CONSUMER } from '../../../bench/latency/producers.ts';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { InboxConsumer, Mailroom, ServiceFunction } from '../../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';

const removalPolicy = RemovalPolicy.DESTROY;

const file = (path: string) => fileURLToPath(new URL(path, import.meta.url));

// Two producers that publish at once: one that reaches the bus, and one whose bus refuses the connection.
const app = new App();
const env = { account: LOCAL_ACCOUNT, region: LOCAL_REGION };
const stack = new Stack(app, 'Mailroom', { env, stackName: 'at-once-mailroom' });
const mailroom = new Mailroom(stack, 'Mailroom', { removalPolicy });
new InboxConsumer(stack, 'Reservations', {
  mailroom,
  name: CONSUMER,
  service: 'inventory',
  events: [OrderPlaced],
  entry: file('../../../bench/latency/reservations.handler.ts'),
  domainKeys: ['RESERVATION#*'],
  removalPolicy,
});
const producers = new Stack(app, 'Producers', { env, stackName: 'at-once-producers' });
for (const [id, environment] of [
  ['Api', {}],
  ['CutOff', { AWS_ENDPOINT_URL_EVENTBRIDGE: 'http://127.0.0.1:9' }],
] as const) {
  const producer = new ServiceFunction(producers, id, {
    entry: file('place.handler.ts'),
    service: 'orders',
    environment,
    logRemovalPolicy: removalPolicy,
  });
  const publishAtOnce = { timeout: Duration.seconds(5) };
  mailroom.addProducer(producer, { service: 'orders', publishes: [OrderPlaced], publishAtOnce });
  new CfnOutput(producers, `${id}Function`, { value: producer.functionName });
}
new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
