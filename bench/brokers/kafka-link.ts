import { randomUUID } from 'node:crypto';
import { Kafka, logLevel, type Producer } from 'kafkajs';
import { kafkaTarget } from '../../lambdas/runtime/bridge.ts';
import { kafkaRun } from '../../lambdas/runtime/sources.ts';
import { type BrokerLink, type BrokerPlace, CONCURRENCY, noDeadLetter } from './broker-link.ts';

/** The partitions of a topic, which a consumer reads side by side. */
export const PARTITIONS = 3;

/** A topic of Kafka. */
export function kafkaLink({ name, address }: Extract<BrokerPlace, { broker: 'Kafka' }>): BrokerLink {
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING });
  const subscribed = async () => {
    const consumer = kafka.consumer({ groupId: randomUUID() });
    await consumer.connect();
    await consumer.subscribe({ topics: [name], fromBeginning: true });
    return consumer;
  };
  return {
    sender: async () => {
      const producer = kafka.producer();
      await producer.connect();
      return {
        send: (messages) =>
          producer.send({
            topic: name,
            acks: -1,
            messages: messages.map(({ key, body }) => ({ key, value: body })),
          }),
        close: () => producer.disconnect(),
      };
    },
    target: () => {
      const producers: Producer[] = [];
      const client = () => ({
        producer: (options: Parameters<Kafka['producer']>[0]) => {
          const producer = kafka.producer(options);
          producers.push(producer);
          return producer;
        },
      });
      const to = kafkaTarget({ client, topic: name, brokers: address });
      return { to, close: async () => void (await Promise.all(producers.map((each) => each.disconnect()))) };
    },
    consume: async (arrived) => {
      const consumer = await subscribed();
      await consumer.run({ partitionsConsumedConcurrently: PARTITIONS, eachMessage: async () => arrived() });
      return () => consumer.disconnect();
    },
    loop: async (inbox, handler) => {
      const consumer = await subscribed();
      const run = kafkaRun({
        consumer,
        inbox,
        handler,
        deadLetter: noDeadLetter,
        concurrency: CONCURRENCY,
      });
      await consumer.run({ ...run, partitionsConsumedConcurrently: PARTITIONS });
      return async () => {
        await run.stop();
        await consumer.disconnect();
      };
    },
  };
}
