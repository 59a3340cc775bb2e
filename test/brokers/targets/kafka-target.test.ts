import { connect, type Socket } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, test } from 'vitest';
import { kafkaTarget } from '../../../lambdas/runtime/forward.ts';
import { kafkaClient } from '../clients/kafka-client.ts';
import { report } from '../receipts.ts';
import { startKafka } from '../servers/kafka-broker.ts';
import { bridgeTo, countedAt } from './bridge.ts';
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

describeTarget(
  {
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
  },
  (broker) => {
    test('loses no event of a batch whose first answer is lost', async (context) => {
      const { create, arrived, placeOf } = broker();
      await create('cut');
      const place = placeOf('cut');
      if (place.kind !== 'kafka') throw new Error('It is not a Kafka.');
      const socketFactory = cuttingOnce();
      const client = (brokers: string[]) => new Kafka({ brokers, logLevel: logLevel.NOTHING, socketFactory });
      const bridge = bridgeTo(kafkaTarget({ client, topic: place.topic, brokers: place.brokers }));
      const sent = await bridge.publish(5);
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: 'Kafka', scenario: 'an answer is lost' },
        sent,
        (await arrived('cut')).map(countedAt),
      );
      expect(receipt).toMatchObject({ sent: 5, distinct: 5, lost: 0 });
    });
  },
);

/** Key of the request that produces (Kafka protocol, after the four bytes of the size). */
const PRODUCE = 0;

/** Makes sockets, one of which cuts its connection instead of the first answer of the broker to a produced message. */
function cuttingOnce() {
  let isArmed = true;
  return ({ host, port, onConnect }: { host: string; port: number; onConnect: () => void }): Socket => {
    const socket = connect({ host, port }, onConnect);
    const write = socket.write.bind(socket) as (data: Uint8Array) => boolean;
    return Object.assign(socket, {
      write: (data: Buffer) => {
        if (isArmed && data.readInt16BE(4) === PRODUCE) {
          isArmed = false;
          socket.removeAllListeners('data');
          socket.once('data', () => socket.destroy(new Error('The connection was cut.')));
        }
        return write(data);
      },
    });
  };
}
