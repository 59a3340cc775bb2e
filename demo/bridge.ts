import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import type { Arrived } from '../test/brokers/clients/arrived.ts';
import { kafkaClient } from '../test/brokers/clients/kafka-client.ts';
import { natsClient } from '../test/brokers/clients/nats-client.ts';
import { rabbitClient } from '../test/brokers/clients/rabbit-client.ts';
import { removeLeftovers } from '../test/brokers/servers/broker-files.ts';
import { debianPrograms, whyNoDebian } from '../test/brokers/servers/debian-packages.ts';
import { startKafka } from '../test/brokers/servers/kafka-broker.ts';
import { kafkaJars, whyNoKafka } from '../test/brokers/servers/kafka-jars.ts';
import { startNats } from '../test/brokers/servers/nats-broker.ts';
import { startRabbit } from '../test/brokers/servers/rabbit-broker.ts';

/** The brokers of `--bridge`. */
export type BridgeKind = 'jetstream' | 'kafka' | 'rabbitmq';

/** The stream, topic or exchange, which the handlers of the bridge name, too. */
const PLACE = 'orders';

const PARTITIONS = 3;

/** A started broker, and what the bridge has sent to it. */
export interface DemoBridge {
  /** The target, as the receipt names it. */
  readonly target: string;
  /** The context values with which the order system has the bridge. */
  readonly context: Readonly<Record<string, string>>;
  /** Every message at the target. */
  readonly arrived: () => Promise<Arrived[]>;
  /** Stops the broker and removes its data. */
  readonly close: () => Promise<void>;
}

/**
 * Starts a broker on the loopback address. It ends with this process, however that ends.
 *
 * @throws `NO_BROKER` if it cannot run on this machine
 */
export async function startBridge(
  kind: BridgeKind,
  { step }: Pick<StepPrinter, 'step'>,
): Promise<DemoBridge> {
  const { title, reason, start } = BROKERS[kind];
  const why = await reason();
  if (why !== undefined)
    throw new MailroomError(
      'NO_BROKER',
      `--bridge is "${kind}", but ${title} cannot be started: ${why}. Run the demo without --bridge, or choose another broker.`,
    );
  step(`Starting ${title}`);
  removeLeftovers();
  const { address, ...broker } = await start();
  return { ...broker, context: { bridge: kind, bridgeTo: address } };
}

interface BrokerStart {
  readonly title: string;
  /** The reason why it does not run here, or undefined. */
  readonly reason: () => Promise<string | undefined>;
  readonly start: () => Promise<Omit<DemoBridge, 'context'> & { readonly address: string }>;
}

const BROKERS: Readonly<Record<BridgeKind, BrokerStart>> = {
  jetstream: {
    title: 'NATS JetStream',
    reason: whyNoDebian,
    start: async () => {
      const { natsServer } = await debianPrograms();
      const broker = await startNats(natsServer, 'nats-demo');
      const client = await natsClient(broker.address);
      await client.createStream({ name: PLACE });
      return {
        target: `JetStream stream ${PLACE}`,
        address: broker.address.servers,
        arrived: () => client.arrived(PLACE),
        close: async () => {
          await client.close();
          await broker.close();
        },
      };
    },
  },
  kafka: {
    title: 'Kafka',
    reason: whyNoKafka,
    start: async () => {
      const broker = await startKafka(await kafkaJars(), 'kafka-demo');
      const client = await kafkaClient(broker);
      await client.createTopic(PLACE, PARTITIONS);
      return {
        target: `Kafka topic ${PLACE}`,
        address: broker.address,
        arrived: () => client.arrived(PLACE),
        close: async () => {
          await client.close();
          await broker.close();
        },
      };
    },
  },
  rabbitmq: {
    title: 'RabbitMQ',
    reason: whyNoDebian,
    start: async () => {
      const broker = await startRabbit(await debianPrograms(), 'rabbit-demo');
      const client = await rabbitClient(broker);
      await client.createQueue(PLACE);
      const taken: Arrived[] = [];
      return {
        target: `RabbitMQ exchange ${PLACE}`,
        address: broker.url,
        arrived: async () => {
          taken.push(...(await client.arrived(PLACE)));
          return taken;
        },
        close: async () => {
          await client.close();
          await broker.close();
        },
      };
    },
  },
};
