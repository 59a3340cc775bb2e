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
import { kafkaClient } from '../clients/kafka-client.ts';
import { natsClient } from '../clients/nats-client.ts';
import { rabbitClient } from '../clients/rabbit-client.ts';
import { startKafka } from '../servers/kafka-broker.ts';
import { type NatsBroker, startNats } from '../servers/nats-broker.ts';
import { startRabbit } from '../servers/rabbit-broker.ts';
import { awsClients } from '../targets/aws-clients.ts';
import { recordOf } from '../targets/bridge-invocation.ts';
import { type DocumentedApp, documentedApp, packed } from './documented-app.ts';

const debian = inject('debian');
const jars = inject('kafka');
const endpoint = inject('endpoint');
const client = dynamoClient(endpoint);
const tableName = `documented-${randomUUID()}`;
const table = dynamoTable({ client, tableName });

/** Calls a bridge with one message, to a target of docs/queues.md. */
const BRIDGE = `
import { bridge } from 'cdk-mailroom/bridge';
import { lambdaConsumer } from 'cdk-mailroom/runtime';
import { OrderPlaced } from './src/events';
import * as targets from './src/targets';

const { TARGET = '', RECORD = '', MAILROOM_CONSUMER: name } = process.env;
const handler = lambdaConsumer(bridge({ to: targets[TARGET as keyof typeof targets], events: [OrderPlaced] }));
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

/** The variables that docs/sources.md requires, and those of the local AWS. */
const variablesOf = (consumer: string) => ({
  AWS_ENDPOINT_URL: endpoint,
  AWS_REGION: 'us-east-1',
  AWS_ACCESS_KEY_ID: 'test',
  AWS_SECRET_ACCESS_KEY: 'test',
  MAILROOM_CONSUMER: consumer,
  MAILROOM_SERVICE: consumer,
  MAILROOM_TABLE: tableName,
});

/** The further variables of a consumer's function, which `InboxConsumer` sets. */
const FUNCTION_VARIABLES = {
  MAILROOM_QUEUE_URL: 'http://queue',
  MAILROOM_VISIBILITY_TIMEOUT_MS: '60000',
  MAILROOM_SHARDS: '1',
  MAILROOM_BORN_LEASE_MS: '30000',
  MAILROOM_PUBLISHES: '[]',
  MAILROOM_LEASE_MS: '30000',
  MAILROOM_MAX_ATTEMPTS: '10',
  MAILROOM_RETRY_FIRST_MS: '2000',
  MAILROOM_RETRY_LONGEST_MS: '900000',
  MAILROOM_INBOX_RETENTION_DAYS: '35',
};

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

/** A broker, as the operator of a documented worker has prepared it. */
interface Prepared {
  /** The variable by which the worker finds it. */
  readonly variables: Readonly<Record<string, string>>;
  readonly publish: (body: string) => Promise<unknown>;
  readonly deadLetters: () => Promise<string[]>;
  readonly close: () => Promise<unknown>;
}

const addressOf = ({ user, pass, servers }: NatsBroker['address']) => `nats://${user}:${pass}@${servers}`;

async function preparedNats(): Promise<Prepared> {
  const broker = await startNats(debian?.natsServer ?? '', 'documented');
  const nats = await natsClient(broker.address);
  await nats.createStream({ name: 'ORDERS', subjects: ['orders.>'] });
  await nats.createStream({ name: 'DEAD', subjects: ['dead.>'] });
  const explicit = { ack_policy: AckPolicy.Explicit, max_deliver: -1 };
  await nats.manager.consumers.add('ORDERS', { durable_name: 'payments', ...explicit });
  return {
    variables: { NATS: addressOf(broker.address) },
    publish: (body) => nats.publish('orders.OrderPlaced', body),
    deadLetters: async () => bodiesOf(await nats.arrived('DEAD')),
    close: async () => {
      await nats.close();
      await broker.close();
    },
  };
}

async function preparedRabbit(): Promise<Prepared> {
  if (debian === undefined) throw new Error('The tests are skipped.');
  const broker = await startRabbit(debian, 'documented');
  const rabbit = await rabbitClient(broker);
  await rabbit.createQueue('dead');
  await rabbit.createQueue('payments', { deadLetterExchange: 'dead' });
  const dead: string[] = [];
  return {
    variables: { RABBIT: broker.url },
    publish: (body) => rabbit.publish('payments', body),
    deadLetters: async () => {
      dead.push(...bodiesOf(await rabbit.arrived('dead')));
      return dead;
    },
    close: async () => {
      await rabbit.close();
      await broker.close();
    },
  };
}

async function preparedKafka(): Promise<Prepared> {
  const broker = await startKafka(jars ?? '', 'documented');
  const kafka = await kafkaClient(broker);
  await kafka.createTopic('orders', 3);
  await kafka.createTopic('dead.payments');
  return {
    variables: { BROKERS: broker.address },
    publish: (body) => kafka.publish('orders', body),
    deadLetters: async () => bodiesOf(await kafka.arrived('dead.payments')),
    close: async () => {
      await kafka.close();
      await broker.close();
    },
  };
}

/** Each worker that docs/sources.md shows. */
const WORKERS = [
  ['src/worker.ts', debian === undefined, preparedNats],
  ['src/rabbit-worker.ts', debian === undefined, preparedRabbit],
  ['src/kafka-worker.ts', jars === undefined, preparedKafka],
] as const;

describe('docs/sources.md', () => {
  for (const [file, isMissing, prepare] of WORKERS) {
    test.skipIf(isMissing)(
      `${file} processes an event, keeps a dead letter, and stops when it is asked to`,
      async () => {
        const { variables, publish, deadLetters, close } = await prepare();
        try {
          const app = await documentedApp(folder, 'docs/sources.md');
          const consumer = file.replaceAll(/\W/g, '-');
          const worker = spawn(process.execPath, app.argsOf(file), {
            env: { ...process.env, ...variablesOf(consumer), ...variables },
            stdio: ['ignore', 'inherit', 'inherit'],
          });
          const ended = once(worker, 'exit');
          const { eventId, envelope } = placed();
          await publish(envelope);
          await publish('no JSON');
          await isProcessed(consumer, eventId);
          await eventually(async () => expect(await deadLetters()).toEqual(['no JSON']), 60_000);
          worker.kill('SIGTERM');
          expect(await ended).toEqual([0, null]);
        } finally {
          await close();
        }
      },
    );
  }
});

describe('docs/queues.md', () => {
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
      ...FUNCTION_VARIABLES,
      TARGET: target,
      RECORD,
      ...variables,
    });
    expect(JSON.parse(printed.trim().split('\n').at(-1) ?? '')).toEqual({ batchItemFailures: [] });
    await isProcessed(`to-${target}`, eventId);
    return envelope;
  };

  test.skipIf(debian === undefined)('the target of NATS stores the event', async () => {
    const broker = await startNats(debian?.natsServer ?? '', 'documented-target');
    try {
      const nats = await natsClient(broker.address);
      await nats.createStream({ name: 'ORDERS', subjects: ['orders.>'] });
      const sent = await forwarded('nats', { MAILROOM_BRIDGE_TO: addressOf(broker.address) });
      expect(bodiesOf(await nats.arrived('ORDERS'))).toEqual([sent]);
      await nats.close();
    } finally {
      await broker.close();
    }
  });

  test.skipIf(debian === undefined)('the target of RabbitMQ stores the event', async () => {
    if (debian === undefined) throw new Error('The tests are skipped.');
    const broker = await startRabbit(debian, 'documented-target');
    try {
      const rabbit = await rabbitClient(broker);
      await rabbit.createQueue('orders');
      const sent = await forwarded('rabbit', { MAILROOM_BRIDGE_TO: broker.url });
      expect(bodiesOf(await rabbit.arrived('orders'))).toEqual([sent]);
      await rabbit.close();
    } finally {
      await broker.close();
    }
  });

  test.skipIf(jars === undefined)(
    'the target of Kafka stores the event, without the TLS of the page',
    async () => {
      const broker = await startKafka(jars ?? '', 'documented-target');
      try {
        const kafka = await kafkaClient(broker);
        await kafka.createTopic('orders');
        await app.change('src/targets.ts', (text) => text.replace(', ssl: true', ''));
        const sent = await forwarded('kafka', { MAILROOM_BRIDGE_TO: broker.address });
        expect(bodiesOf(await kafka.arrived('orders'))).toEqual([sent]);
        await kafka.close();
      } finally {
        await broker.close();
      }
    },
  );

  test('the targets of SNS and Kinesis store the event', async () => {
    const { sns, kinesis } = awsClients(endpoint);
    const { TopicArn = '' } = await sns.createTopic({ Name: 'documented' });
    await forwarded('topic', { MAILROOM_BRIDGE_TO: TopicArn });
    await kinesis.createStream({ StreamName: 'documented', ShardCount: 1 });
    await forwarded('stream', { MAILROOM_BRIDGE_TO: 'documented' });
  });
});
