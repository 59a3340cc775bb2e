import { fileURLToPath } from 'node:url';
import { App, CfnOutput, Duration, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { OrderPlaced } from '../../../lambdas/example/events.ts';
import { InboxConsumer, Mailroom } from '../../../lib/index.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../../localstack/workspace.ts';

const removalPolicy = RemovalPolicy.DESTROY;

// A Mailroom that sends heartbeats, and two consumers whose handlers must not run.
const app = new App();
const stack = new Stack(app, 'Mailroom', {
  env: { account: LOCAL_ACCOUNT, region: LOCAL_REGION },
  stackName: 'heartbeat-mailroom',
});
const mailroom = new Mailroom(stack, 'Mailroom', {
  removalPolicy,
  sources: [OrderPlaced.source],
  heartbeat: { every: Duration.minutes(1) },
});
for (const name of ['payments', 'shipping']) {
  new InboxConsumer(stack, name, {
    mailroom,
    name,
    service: name,
    events: [OrderPlaced],
    entry: fileURLToPath(new URL('idle.handler.ts', import.meta.url)),
    removalPolicy,
  });
}
new CfnOutput(stack, 'TableName', { value: mailroom.table.tableName });
