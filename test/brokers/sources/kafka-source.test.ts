import { CompressionCodecs, CompressionTypes, Kafka, logLevel, type Message } from 'kafkajs';
import { expect, inject, test } from 'vitest';
import { leased } from '../../../lambdas/runtime/index.ts';
import { createInboxProcessor, type InboxProcessor, kafkaRun } from '../../../lambdas/runtime/sources.ts';
import { memoryTable, memoryTelemetry } from '../../../testing/index.ts';
import { eventually } from '../../local/support/eventually.ts';
import { startKafkaPlaces } from '../places/kafka-places.ts';
import type { Counted } from '../receipts.ts';
import { bridgeConfig, bridgeTo, ParcelPacked } from '../targets/bridge.ts';
import { targetOf } from '../targets/target-of.ts';
import { describeSource } from './source-tests.ts';

const jars = inject('kafka');

/** The shortest that Kafka allows. */
const SESSION_MS = 6_000;

/** A handler's time. With {@link EVENTS} in a partition, a batch takes longer than the session. */
const HANDLER_MS = 100;
const EVENTS = 120;

type Broker = Awaited<ReturnType<typeof startKafkaPlaces>>;

describeSource(
  {
    broker: 'Kafka',
    isMissing: jars === undefined,
    start: () => startKafkaPlaces(jars ?? '', 'kafka-source'),
    keepsOrder: true,
  },
  (broker) => {
    test('stays in its group and delivers each message once while a batch takes longer than the session', async () => {
      await filled(broker(), 'slow', 1);
      const inbox = countingInbox();
      const one = await consuming(broker(), 'slow', inbox);
      await eventually(async () => expect(await broker().waiting('slow')).toBe(0), 60_000);
      await one.stop();
      expect([inbox.deliveries(), inbox.handled(), one.joins()]).toEqual([EVENTS, EVENTS, 1]);
    });

    test('gives partitions to a process that joins in the middle of a batch', async () => {
      await filled(broker(), 'shared', 30);
      const inbox = countingInbox();
      const one = await consuming(broker(), 'shared', inbox);
      await eventually(async () => expect(inbox.handled()).toBeGreaterThan(5), 60_000);
      const other = countingInbox(inbox);
      const two = await consuming(broker(), 'shared', other);
      await eventually(async () => expect(await broker().waiting('shared')).toBe(0), 60_000);
      await Promise.all([one.stop(), two.stop()]);
      expect(other.deliveries()).toBeGreaterThan(0);
      expect([inbox.handled(), inbox.deliveries() + other.deliveries()]).toEqual([EVENTS, EVENTS]);
    });

    test('keeps the order of each key, with several at a time', async () => {
      const sent = await filled(broker(), 'keys', 6);
      const inbox = countingInbox();
      const began = Date.now();
      const one = await consuming(broker(), 'keys', inbox, 10);
      await eventually(async () => expect(await broker().waiting('keys')).toBe(0), 60_000);
      await one.stop();
      expect(Date.now() - began).toBeLessThan(EVENTS * HANDLER_MS);
      for (const key of new Set(sent.map((event) => event.key)))
        expect(inbox.list.filter((event) => event.key === key)).toEqual(
          sent.filter((event) => event.key === key),
        );
    });

    test('ends with the reason when a batch has a codec that kafkajs does not know', async () => {
      await broker().create('lz4');
      const client = new Kafka({ brokers: [broker().address], logLevel: logLevel.NOTHING });
      const producer = client.producer();
      await producer.connect();
      const unknown = CompressionCodecs[CompressionTypes.LZ4];
      CompressionCodecs[CompressionTypes.LZ4] = () => ({
        compress: async ({ buffer }: { buffer: Buffer }) => lz4(buffer),
      });
      const messages: Message[] = [{ value: 'compressed' }];
      await producer.send({ topic: 'lz4', compression: CompressionTypes.LZ4, messages });
      await producer.disconnect();
      CompressionCodecs[CompressionTypes.LZ4] = unknown;
      const one = await consuming(broker(), 'lz4', countingInbox());
      await expect(one.ended).rejects.toMatchObject({
        code: 'SOURCE_CLOSED',
        message: expect.stringMatching(/LZ4.*Register the codec/i),
      });
      await one.stop();
    });
  },
);

/** Creates a topic whose first partitions have {@link EVENTS} events. */
async function filled(broker: Broker, topic: string, aggregates: number) {
  await broker.create(topic);
  const bridge = bridgeTo(targetOf(broker.placeOf(topic)));
  const sent = await bridge.publish(EVENTS, { aggregates });
  await bridge.settle();
  return sent;
}

interface Rows {
  readonly table: ReturnType<typeof memoryTable>;
  readonly list: Counted[];
}

/** An inbox in memory that counts. @param other - shares its rows and its handler's events */
function countingInbox({ table, list: events }: Rows = { table: memoryTable(), list: [] }) {
  const config = { ...bridgeConfig, consumer: 'source' };
  const inbox = createInboxProcessor({ config, table, telemetry: memoryTelemetry() });
  let deliveries = 0;
  const counted: InboxProcessor = {
    ...inbox,
    process: (...message) => {
      deliveries += 1;
      return inbox.process(...message);
    },
  };
  const handler = leased(ParcelPacked, async ({ eventId: id, aggregateId: key }) => {
    await new Promise((resolve) => {
      setTimeout(resolve, HANDLER_MS);
    });
    events.push({ id, key });
  });
  return {
    table,
    list: events,
    inbox: counted,
    handler,
    handled: () => events.length,
    deliveries: () => deliveries,
  };
}

/** Consumes as the documentation shows. */
async function consuming(
  broker: Broker,
  topic: string,
  { inbox, handler }: ReturnType<typeof countingInbox>,
  concurrency?: number,
) {
  const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING });
  const consumer = kafka.consumer({ groupId: topic, sessionTimeout: SESSION_MS, heartbeatInterval: 1_000 });
  let joins = 0;
  consumer.on('consumer.group_join', () => {
    joins += 1;
  });
  const run = kafkaRun({ consumer, inbox, handler, deadLetter: async () => {}, concurrency });
  await consumer.connect();
  await consumer.subscribe({ topics: [topic], fromBeginning: true });
  await consumer.run({ ...run, partitionsConsumedConcurrently: 3 });
  const stop = async () => {
    await run.stop();
    await consumer.disconnect();
  };
  return { stop, ended: run.ended, joins: () => joins };
}

/** A frame of LZ4 with one block that is not compressed. */
function lz4(bytes: Buffer): Buffer {
  const size = Buffer.alloc(4);
  size.writeUInt32LE(bytes.length + 2 ** 31);
  return Buffer.concat([Buffer.from('04224d18604082', 'hex'), size, bytes, Buffer.alloc(4)]);
}
