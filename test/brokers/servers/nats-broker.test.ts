import { DiscardPolicy } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { bodiesOf } from '../clients/arrived.ts';
import { type NatsClient, natsClient } from '../clients/nats-client.ts';
import { idsOf, report } from '../receipts.ts';
import { type NatsBroker, startNats } from './nats-broker.ts';

const debian = inject('debian');

describe.skipIf(debian === undefined)('NATS', () => {
  let broker: NatsBroker;

  beforeAll(async () => {
    if (debian) broker = await startNats(debian.natsServer, 'nats-itself');
  });
  afterAll(async () => await broker?.close());

  /** Runs on its own connection: a restart ends it. */
  async function connected<T>(use: (client: NatsClient) => Promise<T>): Promise<T> {
    const client = await natsClient(broker.address);
    return await use(client).finally(client.close);
  }

  test('keeps what it accepted through a stop and through kill -9', async (context) => {
    await connected(async ({ createStream, publish }) => {
      await createStream({ name: 'kept' });
      await publish('kept.1', 'first');
    });
    await broker.stop();
    expect(broker.pid()).toBeUndefined();
    await broker.start();
    await connected(({ publish }) => publish('kept.1', 'second'));
    await broker.kill();
    await broker.start();
    const arrived = await connected((client) => client.arrived('kept'));
    const scenario = { broker: 'NATS', scenario: 'itself: stopped, killed' };
    const receipt = await report(context, scenario, idsOf('first', 'second'), idsOf(...bodiesOf(arrived)));
    expect(receipt).toMatchObject({ sent: 2, received: 2, outOfOrder: 0, lost: 0 });
  });

  test('refuses messages when a stream is full, and streams above the limit of the server', async () => {
    await connected(async ({ createStream, publish }) => {
      await createStream({ name: 'full', max_bytes: 1_024, discard: DiscardPolicy.New });
      await expect(publish('full.1', 'x'.repeat(2_000))).rejects.toThrow('maximum bytes exceeded');
      const huge = createStream({ name: 'huge', max_bytes: 1_000_000_000_000 });
      await expect(huge).rejects.toThrow('insufficient storage');
    });
  });

  test('refuses a wrong password', async () => {
    await expect(connect({ ...broker.address, pass: 'wrong', reconnect: false })).rejects.toThrow(
      /authorization violation/i,
    );
  });
});
