import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { kafkaTarget } from '../../../lambdas/runtime/bridge.ts';
import { bridgedEvent } from '../../contract/bridge-contract.ts';
import { eventually } from '../../local/support/eventually.ts';
import {
  platformaticClient,
  platformaticLibrary,
  whyNoPlatformatic,
} from '../clients/platformatic-client.ts';
import { startKafkaPlaces } from '../places/kafka-places.ts';
import { MESSAGE_MAX_BYTES } from '../places/places.ts';
import { report } from '../receipts.ts';
import { bridgeTo, countedAt } from './bridge.ts';

const jars = inject('kafka');
const reason = whyNoPlatformatic();
if (reason !== undefined) console.error(`[brokers] Skips the tests of @platformatic/kafka: ${reason}.`);

describe.skipIf(jars === undefined || reason !== undefined)(
  'a bridge to Kafka with @platformatic/kafka',
  () => {
    let broker: Awaited<ReturnType<typeof startKafkaPlaces>>;
    let library: Awaited<ReturnType<typeof platformaticLibrary>>;
    beforeAll(async () => {
      [broker, library] = await Promise.all([
        startKafkaPlaces(jars ?? '', 'platformatic'),
        platformaticLibrary(),
      ]);
    });
    afterAll(async () => await broker?.close());
    const targetOf = (topic: string) =>
      kafkaTarget({
        client: (brokers) => platformaticClient(library, brokers),
        topic,
        brokers: broker.address,
      });

    test('delivers each event once', async (context) => {
      await broker.create('usual');
      const bridge = bridgeTo(targetOf('usual'));
      const sent = await bridge.publish(200, { aggregates: 10 });
      await bridge.settle();
      const arrived = (await broker.arrived('usual')).map(countedAt);
      const scenario = { broker: 'Kafka, @platformatic', scenario: 'nothing fails' };
      const receipt = await report(context, scenario, sent, arrived);
      expect(receipt).toMatchObject({ received: 200, distinct: 200, lost: 0 });
    });

    test('stores what 30 concurrent calls have confirmed', async () => {
      await broker.create('concurrent');
      const target = targetOf('concurrent');
      const entries = Array.from({ length: 30 }, (_, n) => bridgedEvent({ aggregateId: `order-${n % 7}` }));
      const results = (await Promise.all(entries.map((entry) => target.send([entry])))).flat();
      expect(results.filter(({ ok }) => ok)).toHaveLength(30);
      const bodies = (await broker.arrived('concurrent')).map(({ body }) => body);
      expect(new Set(bodies)).toEqual(new Set(entries.map(({ body }) => body)));
      target.reset?.();
    });

    test('waits until a missing topic is created', async () => {
      const bridge = bridgeTo(targetOf('later'));
      const sent = await bridge.publish(3);
      expect((await bridge.deliver()).join('\n')).toMatch(/BRIDGE_FAILED.*Unknown topic/);
      await broker.create('later');
      await bridge.settle();
      const arrived = (await broker.arrived('later')).map(countedAt);
      expect(arrived.map(({ id }) => id)).toEqual(sent.map(({ id }) => id));
    });

    test('refuses an event that is too large, and delivers its neighbors', async () => {
      await broker.create('large');
      const target = targetOf('large');
      const entries = Array.from({ length: 8 }, (_, n) => bridgedEvent({ aggregateId: `order-${n}` }));
      const large = bridgedEvent({ aggregateId: 'large' }, JSON.stringify('x'.repeat(MESSAGE_MAX_BYTES)));
      expect(await target.send([large])).toMatchObject([{ refusal: 'too-large' }]);
      let open = [...entries.slice(0, 4), large, ...entries.slice(4)];
      await eventually(async () => {
        const results = await target.send(open);
        open = open.filter((entry, n) => entry !== large && !results[n]?.ok);
        expect(open).toEqual([]);
      });
      const bodies = (await broker.arrived('large')).map(({ body }) => body);
      expect(new Set(bodies)).toEqual(new Set(entries.map(({ body }) => body)));
      target.reset?.();
    });

    test('loses nothing when the broker is killed', async (context) => {
      await broker.create('killed');
      const bridge = bridgeTo(targetOf('killed'), 3_000);
      const sent = await bridge.publish(100, { aggregates: 10 });
      const delivering = bridge.deliver();
      await broker.kill();
      await delivering;
      await broker.start();
      await bridge.settle();
      const arrived = (await broker.arrived('killed')).map(countedAt);
      const scenario = { broker: 'Kafka, @platformatic', scenario: 'broker killed' };
      expect(await report(context, scenario, sent, arrived)).toMatchObject({ distinct: 100, lost: 0 });
    });
  },
);
