import { Kafka, logLevel } from 'kafkajs';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { type KafkaClient, kafkaClient } from '../clients/kafka-client.ts';
import { idsOf, report } from '../receipts.ts';
import { type KafkaBroker, startKafka } from './kafka-broker.ts';

const jars = inject('kafka');

describe.skipIf(jars === undefined)('Kafka', () => {
  let broker: KafkaBroker;
  let client: KafkaClient;

  beforeAll(async () => {
    broker = await startKafka(jars ?? '', 'kafka-itself');
    client = await kafkaClient(broker);
  });
  afterAll(async () => {
    await client?.close();
    await broker?.close();
  });

  test('keeps what it accepted through a stop and through kill -9', async (context) => {
    await client.createTopic('kept');
    await client.publish('kept', 'first');
    await broker.stop();
    expect(broker.pid()).toBeUndefined();
    await broker.start();
    await client.publish('kept', 'second');
    await broker.kill();
    await broker.start();
    const arrived = await client.arrived('kept');
    const scenario = { broker: 'Kafka', scenario: 'itself: stopped, killed' };
    const receipt = await report(context, scenario, idsOf('first', 'second'), idsOf(...bodiesOf(arrived)));
    expect(receipt).toMatchObject({ sent: 2, received: 2, outOfOrder: 0, lost: 0 });
  });

  test('refuses a message that is too large for its topic', async () => {
    await client.createTopic('small', 1, { 'max.message.bytes': '1000' });
    await expect(client.publish('small', 'x'.repeat(2_000))).rejects.toThrow(
      /larger than the max message size/,
    );
    expect(await client.arrived('small')).toEqual([]);
  });

  test('accepts the right password and refuses a wrong one', async () => {
    const connectAs = async (password: string) => {
      const sasl = { mechanism: 'plain', username: broker.user.username, password } as const;
      const admin = new Kafka({
        brokers: [broker.saslAddress],
        sasl,
        logLevel: logLevel.NOTHING,
        retry: { retries: 0 },
      }).admin();
      await admin.connect().finally(() => admin.disconnect());
    };
    await connectAs(broker.user.password);
    await expect(connectAs('wrong')).rejects.toThrow(/authentication/i);
  });
});
