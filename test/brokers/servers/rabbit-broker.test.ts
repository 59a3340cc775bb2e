import { connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { type RabbitClient, rabbitClient } from '../clients/rabbit-client.ts';
import { idsOf, report } from '../receipts.ts';
import { type RabbitBroker, startRabbit } from './rabbit-broker.ts';

const debian = inject('debian');

describe.skipIf(debian === undefined)('RabbitMQ', () => {
  let broker: RabbitBroker;

  beforeAll(async () => {
    if (debian) broker = await startRabbit(debian, 'rabbit-itself');
  });
  afterAll(async () => await broker?.close());

  /** Runs on its own connection: an error or a restart ends it. */
  async function connected<T>(use: (client: RabbitClient) => Promise<T>): Promise<T> {
    const client = await rabbitClient(broker);
    return await use(client).finally(client.close);
  }

  test('keeps what it accepted through a stop and through kill -9', async (context) => {
    await connected(async ({ createQueue, publish }) => {
      await createQueue('kept');
      await publish('kept', 'first');
    });
    await broker.stop();
    expect(broker.pid()).toBeUndefined();
    await broker.start();
    await connected(({ publish }) => publish('kept', 'second'));
    await broker.kill();
    await broker.start();
    const arrived = await connected((client) => client.arrived('kept'));
    const scenario = { broker: 'RabbitMQ', scenario: 'itself: stopped, killed' };
    const receipt = await report(context, scenario, idsOf('first', 'second'), idsOf(...bodiesOf(arrived)));
    expect(receipt).toMatchObject({ sent: 2, received: 2, outOfOrder: 0, lost: 0 });
  });

  test('refuses a message when its queue is full', async () => {
    await connected(async ({ createQueue, publish, arrived }) => {
      await createQueue('full', { maxLength: 1, arguments: { 'x-overflow': 'reject-publish' } });
      await publish('full', 'fits');
      await expect(publish('full', 'does not')).rejects.toThrow(/nacked/);
      expect(bodiesOf(await arrived('full'))).toEqual(['fits']);
    });
  });

  test('blocks publishers while its disk is full, and goes on afterwards', async () => {
    await connected(async ({ connection, createQueue, publish, arrived }) => {
      await createQueue('disk');
      let blocked: string | undefined;
      const isBlocked = new Promise<void>((resolve) => {
        connection.once('blocked', (reason) => {
          blocked = reason;
          resolve();
        });
      });
      await broker.fillDisk();
      const sent: Promise<void>[] = [];
      // A connection hears of the alarm a moment later: it may still confirm some messages.
      while (blocked === undefined) {
        const confirmed = publish('disk', 'waits');
        sent.push(confirmed);
        await Promise.race([confirmed, isBlocked]);
      }
      expect(blocked).toMatch(/disk/);
      await broker.freeDisk();
      await Promise.all(sent);
      expect(bodiesOf(await arrived('disk'))).toEqual(sent.map(() => 'waits'));
    });
  });

  test('refuses a wrong password', async () => {
    await expect(connect(broker.url.replace('guest@', 'wrong@'))).rejects.toThrow(/ACCESS_REFUSED/);
  });
});
