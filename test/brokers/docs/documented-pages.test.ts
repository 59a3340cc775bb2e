import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rm } from 'node:fs/promises';
import { AckPolicy } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { dynamoTable } from '../../../lambdas/runtime/index.ts';
import { mintEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../../../lambdas/runtime/store/keys.ts';
import { eventually } from '../../local/support/eventually.ts';
import { packageFolder } from '../../package/tarball.ts';
import { createTable, dynamoClient } from '../../support/aws.ts';
import { bodiesOf } from '../clients/arrived.ts';
import { natsClient } from '../clients/nats-client.ts';
import { rabbitClient } from '../clients/rabbit-client.ts';
import { type NatsBroker, startNats } from '../servers/nats-broker.ts';
import { startRabbit } from '../servers/rabbit-broker.ts';
import { recordOf } from '../targets/bridge-invocation.ts';
import { type DocumentedApp, documentedApp, packed } from './documented-app.ts';

const debian = inject('debian');
const endpoint = inject('endpoint');
const client = dynamoClient(endpoint);
const tableName = `documented-${randomUUID()}`;
const table = dynamoTable({ client, tableName });

/** Calls a bridge with one message, to a target of docs/queues.md. */
const BRIDGE = `
import { forward } from 'cdk-mailroom/forward';
import { lambdaConsumer } from 'cdk-mailroom/runtime';
import { OrderPlaced } from './src/events';
import * as targets from './src/targets';

const { TARGET = '', RECORD = '', MAILROOM_CONSUMER: name } = process.env;
const handler = lambdaConsumer(forward({ to: targets[TARGET as keyof typeof targets], events: [OrderPlaced] }));
const context = { awsRequestId: 'request', functionName: name, getRemainingTimeInMillis: () => 60_000 };
console.log(JSON.stringify(await handler({ Records: [JSON.parse(RECORD)] }, context as never)));
process.exit();
`;

let folder = '';
beforeAll(async () => {
  folder = await packageFolder();
  await Promise.all([packed(folder), createTable(client, tableName)]);
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

/** The variables of a consumer. */
const variablesOf = (consumer: string) => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  MAILROOM_CONSUMER: consumer,
  MAILROOM_SERVICE: consumer,
  MAILROOM_TABLE: tableName,
  MAILROOM_SHARDS: '1',
  MAILROOM_BORN_LEASE_MS: '30000',
  MAILROOM_PUBLISHES: '[]',
  MAILROOM_LEASE_MS: '30000',
  MAILROOM_MAX_ATTEMPTS: '10',
  MAILROOM_RETRY_FIRST_MS: '2000',
  MAILROOM_RETRY_LONGEST_MS: '900000',
  MAILROOM_INBOX_RETENTION_DAYS: '35',
});

/** An event of docs/getting-started.md, as a bridge forwards it. */
function placed() {
  const eventId = mintEventId(Date.now(), 1);
  const data = { orderId: '42', totalCents: 4_200 };
  const named = { eventId, type: 'OrderPlaced', version: 1, aggregateType: 'Order', aggregateId: '42' };
  return {
    eventId,
    envelope: JSON.stringify({ ...named, occurredAt: Date.now(), correlationId: eventId, data }),
  };
}

const isProcessed = (consumer: string, eventId: string) =>
  eventually(async () => {
    expect(await table.get(inboxKey(consumer, eventId), { consistent: true })).toMatchObject({
      status: 'PROCESSED',
    });
  }, 60_000);

describe.skipIf(debian === undefined)('docs/sources.md', () => {
  let broker: NatsBroker;
  beforeAll(async () => {
    broker = await startNats(debian?.natsServer ?? '', 'documented');
  });
  afterAll(async () => await broker?.close());

  test('the worker processes an event, keeps a dead letter, and stops when it is asked to', async () => {
    const nats = await natsClient(broker.address);
    await nats.createStream({ name: 'ORDERS', subjects: ['orders.>'] });
    await nats.createStream({ name: 'DEAD', subjects: ['dead.>'] });
    await nats.manager.consumers.add('ORDERS', {
      durable_name: 'payments',
      ack_policy: AckPolicy.Explicit,
      max_ack_pending: 10,
      max_deliver: -1,
    });
    const app = await documentedApp(folder, 'docs/sources.md');
    const { user, pass, servers } = broker.address;
    const NATS = `nats://${user}:${pass}@${servers}`;
    const worker = spawn(process.execPath, app.argsOf('src/worker.ts'), {
      env: { ...process.env, ...variablesOf('payments'), NATS },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    const ended = once(worker, 'exit');
    const { eventId, envelope } = placed();
    await nats.publish('orders.OrderPlaced', envelope);
    await nats.publish('orders.OrderPlaced', 'no JSON');
    await isProcessed('payments', eventId);
    await eventually(async () => expect(bodiesOf(await nats.arrived('DEAD'))).toEqual(['no JSON']), 60_000);
    worker.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    await nats.close();
  });
});

describe.skipIf(debian === undefined)('docs/queues.md', () => {
  let app: DocumentedApp;
  beforeAll(async () => {
    app = await documentedApp(folder, 'docs/queues.md', { 'bridge.ts': BRIDGE });
  });
  const forwarded = async (target: string, variables: Readonly<Record<string, string>>) => {
    const { eventId, envelope } = placed();
    const detail = JSON.parse(envelope);
    const body = JSON.stringify({ source: 'orders', 'detail-type': 'OrderPlaced', detail });
    const RECORD = JSON.stringify(recordOf(body, 1));
    const printed = await app.run('bridge.ts', {
      ...variablesOf(`to-${target}`),
      MAILROOM_QUEUE_URL: 'http://queue',
      MAILROOM_VISIBILITY_TIMEOUT_MS: '60000',
      TARGET: target,
      RECORD,
      ...variables,
    });
    expect(JSON.parse(printed.trim().split('\n').at(-1) ?? '')).toEqual({ batchItemFailures: [] });
    await isProcessed(`to-${target}`, eventId);
    return envelope;
  };

  test('the target of NATS stores the event', async () => {
    const broker = await startNats(debian?.natsServer ?? '', 'documented-target');
    try {
      const nats = await natsClient(broker.address);
      await nats.createStream({ name: 'ORDERS', subjects: ['orders.>'] });
      const { user, pass, servers } = broker.address;
      const sent = await forwarded('nats', { MAILROOM_FORWARD_TO: `nats://${user}:${pass}@${servers}` });
      expect(bodiesOf(await nats.arrived('ORDERS'))).toEqual([sent]);
      await nats.close();
    } finally {
      await broker.close();
    }
  });

  test('the target of RabbitMQ stores the event', async () => {
    if (debian === undefined) throw new Error('The tests are skipped.');
    const broker = await startRabbit(debian, 'documented-target');
    try {
      const rabbit = await rabbitClient(broker);
      await rabbit.createQueue('orders');
      const sent = await forwarded('rabbit', { MAILROOM_FORWARD_TO: broker.url });
      expect(bodiesOf(await rabbit.arrived('orders'))).toEqual([sent]);
      await rabbit.close();
    } finally {
      await broker.close();
    }
  });
});
