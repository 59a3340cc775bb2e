import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Options } from 'amqplib';
import { expect, inject, test } from 'vitest';
import { bridgedEvent } from '../../contract/bridge-contract.ts';
import { type RabbitPlaces, startRabbitPlaces } from '../places/rabbit-places.ts';
import { report } from '../receipts.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget } from './target-tests.ts';

const debian = inject('debian');

async function start(): Promise<RabbitPlaces> {
  if (debian === undefined) throw new Error('The tests are skipped.');
  return await startRabbitPlaces(debian, 'rabbit-target');
}

describeTarget(
  {
    broker: 'RabbitMQ',
    isMissing: debian === undefined,
    start,
    timesAfterCrash: 2,
    errors: {
      missing: /BRIDGE_FAILED.*NOT_FOUND/,
      denied: /BRIDGE_FAILED.*ACCESS[-_]REFUSED/,
      tooLarge: /BRIDGE_REJECTED.*size/,
    },
  },
  (broker) => {
    const FULL: Options.AssertQueue = { maxLength: 4, arguments: { 'x-overflow': 'reject-publish' } };

    test('waits until a queue that is full has room', async (context) => {
      await broker().connected(async ({ createQueue, arrived }) => {
        await createQueue('full', FULL);
        const bridge = bridgeTo(targetOf(broker().placeOf('full')));
        const sent = await bridge.publish(10);
        expect((await bridge.deliver()).join('\n')).toContain('BRIDGE_FAILED');
        const kept = await arrived('full');
        while (bridge.bodies().length > 0) {
          await bridge.deliver();
          kept.push(...(await arrived('full')));
          await bridge.pass();
        }
        const scenario = { broker: 'RabbitMQ', scenario: 'queue full' };
        expect(await report(context, scenario, sent, kept.map(countedAt))).toMatchObject({ lost: 0 });
      });
    });

    test('tries its addresses in turn: one refuses a connection, one accepts it and never answers', async () => {
      const silent = createServer().listen(0, '127.0.0.1');
      await once(silent, 'listening');
      const { port } = silent.address() as AddressInfo;
      await broker().connected(async ({ createQueue, arrived }) => {
        await createQueue('turn');
        const url = `amqp://127.0.0.1:9,amqp://127.0.0.1:${port},${broker().url}`;
        const bridge = bridgeTo(targetOf({ kind: 'rabbit', url, exchange: 'turn' }));
        await bridge.publish(2);
        expect(await bridge.deliver()).toEqual([]);
        expect(await arrived('turn')).toHaveLength(2);
      });
      silent.close();
    }, 30_000);

    test('a virtual host that does not exist is denied', async () => {
      const target = targetOf({ kind: 'rabbit', url: `${broker().url}/other`, exchange: 'x' });
      expect(await target.send([bridgedEvent()])).toMatchObject([{ ok: false, refusal: 'denied' }]);
    });

    test('waits while the disk of the broker is full', async (context) => {
      await broker().connected(async ({ createQueue, arrived }) => {
        await createQueue('disk');
        const bridge = bridgeTo(targetOf(broker().placeOf('disk')), 2_000);
        const sent = await bridge.publish(3);
        await broker().fillDisk();
        const failures = await bridge.deliver();
        expect(failures).toHaveLength(3);
        for (const failure of failures) expect(failure).toMatch(/BRIDGE_FAILED.*TIMEOUT/);
        await broker().freeDisk();
        await bridge.settle();
        const scenario = { broker: 'RabbitMQ', scenario: 'disk full' };
        const receipt = await report(context, scenario, sent, (await arrived('disk')).map(countedAt));
        expect(receipt).toMatchObject({ distinct: 3, lost: 0 });
      });
    });

    test('waits until a queue is bound to the exchange', async (context) => {
      await broker().connected(async ({ channel, createQueue, arrived }) => {
        await channel.assertExchange('unbound', 'topic', { durable: true });
        const bridge = bridgeTo(targetOf(broker().placeOf('unbound')));
        const sent = await bridge.publish(2);
        for (const failure of await bridge.deliver())
          expect(failure).toMatch(/BRIDGE_FAILED.*no queue is bound/);
        await createQueue('unbound');
        await bridge.settle();
        const scenario = { broker: 'RabbitMQ', scenario: 'no queue bound' };
        const receipt = await report(context, scenario, sent, (await arrived('unbound')).map(countedAt));
        expect(receipt).toMatchObject({ received: 2, lost: 0 });
      });
    });
  },
);
