import type { Options } from 'amqplib';
import { expect, inject, test } from 'vitest';
import type { Arrived } from '../clients/arrived.ts';
import { type RabbitClient, rabbitClient } from '../clients/rabbit-client.ts';
import { report } from '../receipts.ts';
import { type RabbitBroker, startRabbit } from '../servers/rabbit-broker.ts';
import { bridgeTo, countedAt } from './bridge.ts';
import { targetOf } from './target-of.ts';
import { describeTarget, type TargetBroker } from './target-tests.ts';

const debian = inject('debian');

/** RabbitMQ refuses a larger message: `max_message_size` of its settings. */
const MESSAGE_MAX_BYTES = 20_000;

let rabbit: RabbitBroker;

async function connected<T>(use: (client: RabbitClient) => Promise<T>): Promise<T> {
  const client = await rabbitClient(rabbit);
  return await use(client).finally(client.close);
}

async function start(): Promise<TargetBroker> {
  if (debian === undefined) throw new Error('The tests are skipped.');
  rabbit = await startRabbit(debian, 'rabbit-target', MESSAGE_MAX_BYTES);
  const { url } = rabbit;
  const taken = new Map<string, Arrived[]>();
  return {
    ...rabbit,
    create: (name) => connected(({ createQueue }) => createQueue(name)),
    placeOf: (exchange) => ({ kind: 'rabbit', url, exchange }),
    deniedPlaceOf: (exchange) => ({ kind: 'rabbit', url: url.replace('guest@', 'wrong@'), exchange }),
    arrived: async (name) => {
      const all = [...(taken.get(name) ?? []), ...(await connected(({ arrived }) => arrived(name)))];
      taken.set(name, all);
      return all;
    },
  };
}

describeTarget(
  {
    broker: 'RabbitMQ',
    isMissing: debian === undefined,
    start,
    timesAfterCrash: 2,
    tooLarge: 'x'.repeat(MESSAGE_MAX_BYTES),
    errors: {
      missing: /FORWARD_FAILED.*NOT_FOUND/,
      denied: /FORWARD_FAILED.*ACCESS[-_]REFUSED/,
      tooLarge: /FORWARD_REJECTED.*size/,
    },
  },
  (broker) => {
    const FULL: Options.AssertQueue = { maxLength: 4, arguments: { 'x-overflow': 'reject-publish' } };

    test('waits until a queue that is full has room', async (context) => {
      await connected(async ({ createQueue, arrived }) => {
        await createQueue('full', FULL);
        const bridge = bridgeTo(targetOf(broker().placeOf('full')));
        const sent = await bridge.publish(10);
        expect((await bridge.deliver()).join('\n')).toContain('FORWARD_FAILED');
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

    test('waits while the disk of the broker is full', async (context) => {
      await connected(async ({ createQueue, arrived }) => {
        await createQueue('disk');
        const bridge = bridgeTo(targetOf(broker().placeOf('disk')), 2_000);
        const sent = await bridge.publish(3);
        await rabbit.fillDisk();
        const failures = await bridge.deliver();
        expect(failures).toHaveLength(3);
        for (const failure of failures) expect(failure).toMatch(/FORWARD_FAILED.*TIMEOUT/);
        await rabbit.freeDisk();
        await bridge.settle();
        const scenario = { broker: 'RabbitMQ', scenario: 'disk full' };
        const receipt = await report(context, scenario, sent, (await arrived('disk')).map(countedAt));
        expect(receipt).toMatchObject({ distinct: 3, lost: 0 });
      });
    });

    test('waits until a queue is bound to the exchange', async (context) => {
      await connected(async ({ channel, createQueue, arrived }) => {
        await channel.assertExchange('unbound', 'topic', { durable: true });
        const bridge = bridgeTo(targetOf(broker().placeOf('unbound')));
        const sent = await bridge.publish(2);
        for (const failure of await bridge.deliver())
          expect(failure).toMatch(/FORWARD_FAILED.*no queue is bound/);
        await createQueue('unbound');
        await bridge.settle();
        const scenario = { broker: 'RabbitMQ', scenario: 'no queue bound' };
        const receipt = await report(context, scenario, sent, (await arrived('unbound')).map(countedAt));
        expect(receipt).toMatchObject({ received: 2, lost: 0 });
      });
    });
  },
);
