import { inject } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { kafkaClient } from '../clients/kafka-client.ts';
import { startKafka } from '../servers/kafka-broker.ts';
import { deadOf } from './parcels.ts';
import { describeSource, type SourceBroker } from './source-tests.ts';

const jars = inject('kafka');

async function start(): Promise<SourceBroker> {
  const broker = await startKafka(jars ?? '', 'kafka-source');
  const { admin, createTopic, publish, arrived, close } = await kafkaClient(broker);
  return {
    ...broker,
    close: async () => {
      await close();
      await broker.close();
    },
    create: async (topic) => {
      await createTopic(topic, 3);
      await createTopic(deadOf(topic));
      return { kind: 'kafka', address: broker.address, topic };
    },
    publish,
    dead: async (topic) => bodiesOf(await arrived(deadOf(topic))),
    left: async (topic) => {
      const ends = await admin.fetchTopicOffsets(topic);
      const [group] = await admin.fetchOffsets({ groupId: 'worker', topics: [topic] });
      const committed = new Map(
        group?.partitions.map(({ partition, offset }) => [partition, Number(offset)]),
      );
      return ends.reduce((sum, { partition, high }) => {
        return sum + Number(high) - Math.max(0, committed.get(partition) ?? 0);
      }, 0);
    },
  };
}

describeSource({ broker: 'Kafka', isMissing: jars === undefined, start });
