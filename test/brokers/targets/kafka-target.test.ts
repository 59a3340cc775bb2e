import { connect, type Socket } from 'node:net';
import { Kafka, logLevel } from 'kafkajs';
import { expect, inject, test } from 'vitest';
import { kafkaTarget } from '../../../lambdas/runtime/bridge.ts';
import { eventually } from '../../local/support/eventually.ts';
import { kafkaClient } from '../clients/kafka-client.ts';
import { startKafkaPlaces } from '../places/kafka-places.ts';
import { MESSAGE_MAX_BYTES } from '../places/places.ts';
import { report } from '../receipts.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget } from './target-tests.ts';

const jars = inject('kafka');

describeTarget(
  {
    broker: 'Kafka',
    isMissing: jars === undefined,
    start: () => startKafkaPlaces(jars ?? '', 'kafka-target'),
    timesAfterCrash: 2,
    errors: {
      missing: /BRIDGE_FAILED.*UNKNOWN_TOPIC_OR_PARTITION/,
      denied: /BRIDGE_FAILED.*[Aa]uthentication.*Correct the credentials/,
      tooLarge: /BRIDGE_REJECTED.*MESSAGE_TOO_LARGE/,
    },
  },
  (broker) => {
    test('an event that is older than the retention of its topic stays as long as others', async () => {
      const DAY_MS = 86_400_000;
      const { placeOf, arrived } = broker();
      const client = await kafkaClient(broker());
      try {
        for (const topic of ['late', 'deleted'])
          await client.createTopic(topic, 1, { 'retention.ms': String(DAY_MS) });
        const bridge = bridgeTo(targetOf(placeOf('late')), 10_000, Date.now() - 8 * DAY_MS);
        await bridge.publish(1);
        await bridge.settle();
        // Kafka has looked for old records when it has deleted this one, twice.
        for (let n = 1; n <= 2; n += 1) {
          await client.publish('deleted', 'old', Date.now() - 8 * DAY_MS);
          await eventually(async () => {
            const [end] = await client.endsOf('deleted');
            expect(end).toMatchObject({ high: String(n), low: String(n) });
          });
        }
        expect(await arrived('late')).toHaveLength(1);
      } finally {
        await client.close();
      }
    });

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

    test('delivers a batch once through a cluster that answers after most of the timeout', async (context) => {
      await broker().create('far');
      const place = broker().placeOf('far');
      if (place.kind !== 'kafka') throw new Error('It is not a Kafka.');
      const client = async (brokers: string[]) =>
        new Kafka({ brokers, logLevel: logLevel.NOTHING, socketFactory: slow(800) });
      const bridge = bridgeTo(kafkaTarget({ client, topic: place.topic, brokers: place.brokers }), 3_000);
      const sent = await bridge.publish(60, { aggregates: 12 });
      await bridge.settle();
      const receipt = await report(
        context,
        { broker: 'Kafka', scenario: 'a slow cluster' },
        sent,
        (await broker().arrived('far')).map(countedAt),
      );
      expect(receipt).toMatchObject({ sent: 60, received: 60, distinct: 60, lost: 0 });
    });

    test('stores nothing twice when one of several partitions refuses its messages', async (context) => {
      await broker().create('mixed');
      const bridge = bridgeTo(targetOf(broker().placeOf('mixed')));
      const before = await bridge.publish(3, { aggregates: 9 }); // then the producer knows the leaders
      await bridge.settle();
      const around = await bridge.publish(5, { aggregates: 9 });
      await bridge.publish(1, { filling: 'x'.repeat(MESSAGE_MAX_BYTES) });
      await bridge.settle();
      const after = await bridge.publish(20, { aggregates: 9 });
      await bridge.settle();
      const sent = [...before, ...around, ...after];
      const receipt = await report(
        context,
        { broker: 'Kafka', scenario: 'one partition refuses' },
        sent,
        (await broker().arrived('mixed')).map(countedAt),
      );
      expect(receipt).toMatchObject({ sent: 28, received: 28, distinct: 28, lost: 0 });
    });
  },
);

/** Makes sockets that hold each produced request back for a time. */
function slow(ms: number) {
  return ({ host, port, onConnect }: { host: string; port: number; onConnect: () => void }): Socket => {
    const socket = connect({ host, port }, onConnect);
    const write = socket.write.bind(socket) as (data: Uint8Array) => boolean;
    return Object.assign(socket, {
      write: (data: Buffer) => {
        if (data.readInt16BE(4) !== PRODUCE) return write(data);
        setTimeout(() => write(data), ms);
        return true;
      },
    });
  };
}

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
