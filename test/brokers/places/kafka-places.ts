import { kafkaClient } from '../clients/kafka-client.ts';
import { type KafkaBroker, startKafka } from '../servers/kafka-broker.ts';
import { deadOf, MESSAGE_MAX_BYTES, type Places } from './places.ts';

/** The number of partitions of a topic. */
const PARTITIONS = 3;

/** @param name - names the broker's folder and log */
export async function startKafkaPlaces(classPath: string, name: string): Promise<Places & KafkaBroker> {
  const broker = await startKafka(classPath, name);
  const { address, saslAddress, user } = broker;
  const client = await kafkaClient(broker);
  const { admin } = client;
  const create = (topic: string) =>
    client.createTopic(topic, PARTITIONS, { 'max.message.bytes': String(MESSAGE_MAX_BYTES) });
  return {
    ...broker,
    close: async () => {
      await client.close();
      await broker.close();
    },
    create,
    createSource: async (topic) => {
      await create(topic);
      await create(deadOf(topic));
    },
    placeOf: (topic) => ({ kind: 'kafka', brokers: address, topic }),
    deniedPlaceOf: (topic) => ({
      kind: 'kafka',
      brokers: saslAddress,
      topic,
      user: { ...user, password: 'wrong' },
    }),
    publish: client.publish,
    arrived: client.arrived,
    waiting: async (topic) => {
      const ends = await client.endsOf(topic);
      const [group] = await admin.fetchOffsets({ groupId: topic, topics: [topic] });
      const committed = new Map(
        group?.partitions.map(({ partition, offset }) => [partition, Number(offset)]),
      );
      return ends.reduce(
        (sum, { partition, high }) => sum + Number(high) - Math.max(0, committed.get(partition) ?? 0),
        0,
      );
    },
  };
}
