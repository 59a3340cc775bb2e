import { AckPolicy, jetstreamManager } from '@nats-io/jetstream';
import { connect as connectNats } from '@nats-io/transport-node';
import { connect as connectRabbit } from 'amqplib';
import { kafkaClient } from '../../test/brokers/clients/kafka-client.ts';
import { removeLeftovers } from '../../test/brokers/servers/broker-files.ts';
import { debianPrograms, whyNoDebian } from '../../test/brokers/servers/debian-packages.ts';
import { startKafka } from '../../test/brokers/servers/kafka-broker.ts';
import { kafkaJars, whyNoKafka } from '../../test/brokers/servers/kafka-jars.ts';
import { startNats } from '../../test/brokers/servers/nats-broker.ts';
import { startRabbit } from '../../test/brokers/servers/rabbit-broker.ts';
import { type BrokerPlace, CONSUMER } from './broker-link.ts';
import { PARTITIONS } from './kafka-link.ts';

/** A broker on this machine. */
export interface RunningBroker {
  /** Creates an empty stream, queue or topic, with what its consumer needs. */
  readonly create: (name: string) => Promise<BrokerPlace>;
  /** The number of messages that it has received and still has. */
  readonly stored: (name: string) => Promise<number>;
  readonly remove: (name: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** A broker that can be started here, or the reason why not. */
export interface InstallableBroker {
  readonly broker: BrokerPlace['broker'];
  readonly whyNot: () => Promise<string | undefined>;
  /** Downloads it, only the first time, and starts it. */
  readonly start: () => Promise<RunningBroker>;
}

export const BROKERS: readonly InstallableBroker[] = [
  { broker: 'JetStream', whyNot: whyNoDebian, start: startJetStream },
  { broker: 'RabbitMQ', whyNot: whyNoDebian, start: startQueues },
  { broker: 'Kafka', whyNot: whyNoKafka, start: startTopics },
];

async function startJetStream(): Promise<RunningBroker> {
  removeLeftovers();
  const { address, close } = await startNats((await debianPrograms()).natsServer, 'bench-nats');
  const connection = await connectNats({ ...address });
  const { streams, consumers } = await jetstreamManager(connection);
  return {
    create: async (name) => {
      await streams.add({ name, subjects: [`${name}.>`] });
      await consumers.add(name, { durable_name: CONSUMER, ack_policy: AckPolicy.Explicit });
      return { broker: 'JetStream', name, address };
    },
    stored: async (name) => (await streams.info(name)).state.messages,
    remove: async (name) => void (await streams.delete(name)),
    close: async () => {
      await connection.close();
      await close();
    },
  };
}

async function startQueues(): Promise<RunningBroker> {
  removeLeftovers();
  const { url, close } = await startRabbit(await debianPrograms(), 'bench-rabbit');
  const connection = await connectRabbit(url);
  const channel = await connection.createChannel();
  return {
    create: async (name) => {
      await channel.assertExchange(name, 'topic', { durable: true });
      await channel.assertQueue(name, { durable: true });
      await channel.bindQueue(name, name, '#');
      return { broker: 'RabbitMQ', name, url };
    },
    stored: async (name) => (await channel.checkQueue(name)).messageCount,
    remove: async (name) => {
      await channel.deleteQueue(name);
      await channel.deleteExchange(name);
    },
    close: async () => {
      await connection.close();
      await close();
    },
  };
}

async function startTopics(): Promise<RunningBroker> {
  removeLeftovers();
  const broker = await startKafka(await kafkaJars(), 'bench-kafka');
  const { address } = broker;
  const client = await kafkaClient(broker);
  return {
    create: async (name) => {
      await client.createTopic(name, PARTITIONS);
      return { broker: 'Kafka', name, address };
    },
    stored: async (name) => {
      const ends = await client.endsOf(name);
      return ends.reduce((sum, { high }) => sum + Number(high), 0);
    },
    remove: (name) => client.admin.deleteTopics({ topics: [name] }),
    close: async () => {
      await client.close();
      await broker.close();
    },
  };
}
