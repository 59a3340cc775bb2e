import { jetstream } from '@nats-io/jetstream';
import { connect as connectToNats } from '@nats-io/transport-node';
import { connect as connectToRabbit } from 'amqplib';
import { Kafka, logLevel } from 'kafkajs';
import { dynamoTable, leased } from '../../../lambdas/runtime/index.ts';
import {
  consumeJetStream,
  consumeRabbit,
  createInboxProcessor,
  type InboxProcessor,
  kafkaRun,
} from '../../../lambdas/runtime/sources.ts';
import { memoryTelemetry } from '../../../testing/index.ts';
import { dynamoClient } from '../../support/aws.ts';
import { deadOf, EFFECTS, ParcelPacked, sourceConfig } from './parcels.ts';
import type { SourceProcess } from './source-process.ts';

const { place, endpoint, tableName, killedAfter }: SourceProcess = JSON.parse(process.argv[2] ?? '');
const table = dynamoTable({ client: dynamoClient(endpoint), tableName });

const processor = createInboxProcessor({
  config: { ...sourceConfig, tableName },
  table,
  telemetry: memoryTelemetry(),
  handlerTimeoutMs: 10_000,
});

let answers = 0;
const inbox: InboxProcessor = {
  ...processor,
  process: async (...given) => {
    const answer = await processor.process(...given);
    if (answer.kind === 'done') answers += 1;
    if (answers === killedAfter) process.kill(process.pid, 'SIGKILL');
    return answer;
  },
};

/** Counts the event in one row per event, in the transaction that sets its message PROCESSED. */
const handler = leased(ParcelPacked, async ({ eventId }, ctx) => {
  await ctx.commit({
    writes: [
      {
        Update: {
          Key: { PK: EFFECTS, SK: eventId },
          UpdateExpression: 'ADD n :one',
          ExpressionAttributeValues: { ':one': 1 },
        },
      },
    ],
  });
});

async function consume(): Promise<{ readonly ended: Promise<void>; readonly stop: () => Promise<void> }> {
  switch (place.kind) {
    case 'jet-stream': {
      const connection = await connectToNats(place.address);
      const stream = jetstream(connection);
      const consuming = await consumeJetStream({
        consumer: await stream.consumers.get(place.stream, 'worker'),
        inbox,
        handler,
        deadLetter: ({ id, message }) => stream.publish(deadOf(place.stream), message.data, { msgID: id }),
      });
      return { ended: consuming.ended, stop: async () => consuming.stop().then(() => connection.drain()) };
    }
    case 'kafka': {
      const kafka = new Kafka({ brokers: [place.address], logLevel: logLevel.NOTHING });
      const [producer, consumer] = [
        kafka.producer(),
        kafka.consumer({
          groupId: 'worker',
          sessionTimeout: 6_000,
          heartbeatInterval: 1_000,
          rebalanceTimeout: 6_000,
        }),
      ];
      await Promise.all([producer.connect(), consumer.connect()]);
      const run = kafkaRun({
        inbox,
        handler,
        deadLetter: ({ message: { message } }) =>
          producer.send({ topic: deadOf(place.topic), messages: [{ value: message.value }] }),
      });
      await consumer.subscribe({ topics: [place.topic], fromBeginning: true });
      await consumer.run({ ...run, partitionsConsumedConcurrently: 3 });
      const stop = async () => {
        await run.stop();
        await Promise.all([consumer.disconnect(), producer.disconnect()]);
      };
      return { ended: new Promise(() => {}), stop };
    }
    case 'rabbit': {
      const connection = await connectToRabbit(place.url);
      const channel = await connection.createChannel();
      await channel.prefetch(4);
      const consuming = await consumeRabbit({ channel, queue: place.queue, inbox, handler });
      return { ended: consuming.ended, stop: async () => consuming.stop().then(() => connection.close()) };
    }
  }
}

const consuming = await consume();
process.once('SIGTERM', () => void consuming.stop().then(() => process.exit()));
await consuming.ended;
