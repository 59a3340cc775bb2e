import { inject } from 'vitest';
import { kafkaClient } from '../clients/kafka-client.ts';
import { startKafka } from '../servers/kafka-broker.ts';
import type { TargetPlace } from './target-of.ts';
import { describeTarget, type TargetBroker } from './target-tests.ts';

const jars = inject('kafka');

/** Of the topics, so that an event can be too large which SQS accepts. */
const MESSAGE_MAX_BYTES = 20_000;

async function start(): Promise<TargetBroker> {
  const broker = await startKafka(jars ?? '', 'kafka-target');
  const client = await kafkaClient(broker);
  const placeOf = (topic: string): TargetPlace => ({ kind: 'kafka', brokers: broker.address, topic });
  return {
    ...broker,
    close: async () => {
      await client.close();
      await broker.close();
    },
    create: (name) => client.createTopic(name, 3, { 'max.message.bytes': String(MESSAGE_MAX_BYTES) }),
    placeOf,
    deniedPlaceOf: (topic) => ({
      kind: 'kafka',
      brokers: broker.saslAddress,
      topic,
      user: { ...broker.user, password: 'wrong' },
    }),
    arrived: client.arrived,
  };
}

describeTarget({
  broker: 'Kafka',
  isMissing: jars === undefined,
  start,
  timesAfterCrash: 2,
  tooLarge: 'x'.repeat(MESSAGE_MAX_BYTES),
  errors: {
    missing: /FORWARD_FAILED.*UNKNOWN_TOPIC_OR_PARTITION/,
    denied: /FORWARD_FAILED.*[Aa]uthentication/,
    tooLarge: /FORWARD_REJECTED.*MESSAGE_TOO_LARGE/,
  },
});
