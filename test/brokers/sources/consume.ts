import { jetstream } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect as connectRabbit } from 'amqplib';
import { Kafka, logLevel } from 'kafkajs';
import type { Handler } from '../../../lambdas/runtime/index.ts';
import {
  consumeJetStream,
  consumeRabbit,
  type InboxProcessor,
  kafkaRun,
} from '../../../lambdas/runtime/sources.ts';
import { CONSUMER, deadOf } from '../places/places.ts';
import type { TargetPlace } from '../targets/target-of.ts';

/** What to consume, and how. */
interface Consumption<P extends TargetPlace = TargetPlace> {
  readonly name: string;
  readonly place: P;
  readonly inbox: InboxProcessor;
  readonly handler: Handler;
  /** Called before a message is acknowledged. */
  readonly beforeAck: () => void;
}

interface Consumed {
  readonly stop: () => Promise<void>;
  /** Rejects if the source ends. */
  readonly ended: Promise<void>;
}

/** Consumes as the documentation shows. */
export async function consume(consumption: Consumption): Promise<Consumed> {
  const { place } = consumption;
  switch (place.kind) {
    case 'kafka':
      return await consumeKafka({ ...consumption, place });
    case 'jet-stream':
      return await consumeStream({ ...consumption, place });
    case 'rabbit':
      return await consumeQueue({ ...consumption, place });
    default:
      throw new Error(`The test consumes nothing from ${place.kind}.`);
  }
}

type PlaceOf<K extends TargetPlace['kind']> = Extract<TargetPlace, { kind: K }>;

async function consumeKafka(of: Consumption<PlaceOf<'kafka'>>): Promise<Consumed> {
  const { name, place, inbox, handler, beforeAck } = of;
  const kafka = new Kafka({ brokers: [place.brokers], logLevel: logLevel.NOTHING });
  const producer = kafka.producer();
  // The group notices after this time that a member was killed.
  const consumer = kafka.consumer({ groupId: name, sessionTimeout: 6_000 });
  await Promise.all([producer.connect(), consumer.connect()]);
  await consumer.subscribe({ topics: [name], fromBeginning: true });
  const run = kafkaRun({
    consumer,
    inbox,
    handler,
    deadLetter: ({ message: { message } }) => producer.send({ topic: deadOf(name), messages: [message] }),
  });
  await consumer.run({
    ...run,
    eachBatch: (payload) => {
      const resolveOffset = (offset: string) => {
        beforeAck();
        payload.resolveOffset(offset);
      };
      return run.eachBatch({ ...payload, resolveOffset });
    },
  });
  const stop = async () => {
    await run.stop();
    await consumer.disconnect();
    await producer.disconnect();
  };
  return { stop, ended: run.ended };
}

async function consumeStream(of: Consumption<PlaceOf<'jet-stream'>>): Promise<Consumed> {
  const { name, place, inbox, handler, beforeAck } = of;
  const { servers, user, pass } = place;
  const connection = await connectNats({
    servers,
    user,
    pass,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 100,
  });
  const stream = jetstream(connection);
  const consumer = await stream.consumers.get(name, CONSUMER);
  const consuming = await consumeJetStream({
    consumer,
    inbox: acknowledging(inbox, beforeAck),
    handler,
    deadLetter: ({ id, message }) => stream.publish(`${deadOf(name)}.kept`, message.data, { msgID: id }),
  });
  const stop = async () => {
    await consuming.stop();
    await connection.drain();
  };
  return { stop, ended: consuming.ended };
}

async function consumeQueue(of: Consumption<PlaceOf<'rabbit'>>): Promise<Consumed> {
  const { name, place, inbox, handler, beforeAck } = of;
  const connection = await connectRabbit(place.url);
  const consuming = await consumeRabbit({
    connection,
    queue: name,
    retryQueue: `${name}-retry`,
    inbox: acknowledging(inbox, beforeAck),
    handler,
  });
  const stop = async () => {
    await consuming.stop();
    await connection.close();
  };
  return { stop, ended: consuming.ended };
}

/** The inbox has recorded the message, and its source does not know it yet. */
function acknowledging(inbox: InboxProcessor, beforeAck: () => void): InboxProcessor {
  return {
    ...inbox,
    process: async (...message) => {
      const answer = await inbox.process(...message);
      if (answer.kind === 'done') beforeAck();
      return answer;
    },
  };
}
