import { randomUUID } from 'node:crypto';
import { type Admin, type EachMessagePayload, Kafka, logLevel, type Producer } from 'kafkajs';
import { poll } from '../../../localstack/health.ts';
import type { KafkaBroker } from '../servers/kafka-broker.ts';
import type { Arrived } from './arrived.ts';

/** A partition has its leader a moment after it was created, or its broker was started. */
const LED_DEADLINE_MS = 60_000;

/** A client of Kafka for tests. */
export interface KafkaClient {
  readonly kafka: Kafka;
  readonly admin: Admin;
  /** The first and the next offset of each partition, once each has its leader. */
  readonly endsOf: (topic: string) => ReturnType<Admin['fetchTopicOffsets']>;
  /** @param settings - of the topic, such as `max.message.bytes` */
  readonly createTopic: (
    topic: string,
    partitions?: number,
    settings?: Record<string, string>,
  ) => Promise<void>;
  /** Publishes to a topic and waits until the broker has it. @param at - the time of the record @default now */
  readonly publish: (topic: string, body: string, at?: number) => Promise<void>;
  /** Every record of a topic, in the order of each partition. */
  readonly arrived: (topic: string) => Promise<Arrived[]>;
  readonly close: () => Promise<void>;
}

/** Connects, and again after every restart. */
export async function kafkaClient({ address }: Pick<KafkaBroker, 'address'>): Promise<KafkaClient> {
  // A restart takes Kafka some ten seconds.
  const retry = { initialRetryTime: 100, maxRetryTime: 1_000, retries: 100 };
  const kafka = new Kafka({ brokers: [address], logLevel: logLevel.NOTHING, retry });
  const admin = kafka.admin();
  const producer: Producer = kafka.producer({ allowAutoTopicCreation: false });
  await Promise.all([admin.connect(), producer.connect()]);
  const endsOf = async (topic: string) => {
    const ends = await poll(LED_DEADLINE_MS, () => admin.fetchTopicOffsets(topic).catch(() => undefined));
    if (ends === undefined) throw new Error(`Topic ${topic} has a partition without a leader.`);
    return ends;
  };
  return {
    kafka,
    admin,
    endsOf,
    createTopic: async (topic, numPartitions = 1, settings = {}) => {
      const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
      await admin.createTopics({ topics: [{ topic, numPartitions, configEntries }], waitForLeaders: false });
      // kafkajs's own wait fails if the broker does not know the topic yet, and ends before each partition has its leader.
      await endsOf(topic);
    },
    publish: async (topic, value, at = Date.now()) => {
      await producer.send({ topic, acks: -1, messages: [{ value, timestamp: String(at) }] });
    },
    arrived: async (topic) => {
      const ends = await endsOf(topic);
      const isFull = ends.filter(({ high, low }) => high !== low);
      return isFull.length === 0 ? [] : await readUpTo(kafka, topic, isFull);
    },
    close: async () => {
      await Promise.all([admin.disconnect(), producer.disconnect()]);
    },
  };
}

interface End {
  readonly partition: number;
  /** The offset after the last record. */
  readonly high: string;
}

async function readUpTo(kafka: Kafka, topic: string, ends: readonly End[]): Promise<Arrived[]> {
  const consumer = kafka.consumer({ groupId: randomUUID() });
  const open = new Map(ends.map(({ partition, high }) => [partition, Number(high)]));
  const messages: Arrived[] = [];
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  await new Promise<void>((resolve, reject) => {
    const eachMessage = async ({ partition, message }: EachMessagePayload): Promise<void> => {
      const headers = Object.entries(message.headers ?? {}).map(([key, value]) => [key, String(value)]);
      const key = String(message.key ?? '');
      messages.push({ body: String(message.value), headers: Object.fromEntries(headers), key });
      if (Number(message.offset) + 1 >= (open.get(partition) ?? 0)) open.delete(partition);
      if (open.size === 0) resolve();
    };
    consumer.run({ eachMessage }).catch(reject);
  });
  await consumer.disconnect();
  return messages;
}
