import { AckPolicy, type JetStreamClient, jetstream, StorageType } from '@nats-io/jetstream';
import { connect, headers, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest';
import { leased, PoisonMessage, RetryLater } from '../../../lambdas/runtime/index.ts';
import { type Consuming, consumeJetStream, createInboxProcessor } from '../../../lambdas/runtime/sources.ts';
import { memoryTable, memoryTelemetry } from '../../../testing/index.ts';
import { eventually } from '../../local/support/eventually.ts';
import { bodiesOf } from '../clients/arrived.ts';
import { type NatsClient, natsClient } from '../clients/nats-client.ts';
import { type NatsBroker, startNats } from '../servers/nats-broker.ts';
import { bridgeConfig, ParcelPacked } from '../targets/bridge.ts';

const debian = inject('debian');

/** Longer than the time in which a loop notices that its source is gone. */
const NOTICED_MS = 20_000;

describe.skipIf(debian === undefined)('a loop of JetStream', () => {
  let broker: NatsBroker;
  let client: NatsClient;
  let connection: NatsConnection;
  let stream: JetStreamClient;
  const loops: Consuming[] = [];

  beforeAll(async () => {
    broker = await startNats(debian?.natsServer ?? '', 'nats-loops');
  });
  beforeEach(async () => {
    client = await natsClient(broker.address);
    connection = await connect({ ...broker.address, maxReconnectAttempts: -1, reconnectTimeWait: 100 });
    stream = jetstream(connection);
  });
  afterEach(async () => {
    await Promise.allSettled(loops.splice(0).map((loop) => loop.stop()));
    await Promise.allSettled([connection.close(), client.close()]);
  });
  afterAll(async () => await broker?.close());

  const envelope = (n: number) => {
    const eventId = `01a1fba6-4458-7a41-9c37-3f5d2b8e${String(n).padStart(4, '0')}`;
    const data = { n, filling: '' };
    const { type, version, aggregateType } = ParcelPacked;
    const known = { eventId, type, version, aggregateType, aggregateId: `parcel-${n}` };
    return JSON.stringify({ ...known, occurredAt: Date.now(), correlationId: eventId, data });
  };

  /** Consumes a stream as the documentation shows. */
  async function consuming(
    name: string,
    consumer: string,
    handle: (n: number) => Promise<unknown>,
    filter?: string,
  ) {
    await client.manager.consumers.add(name, {
      durable_name: consumer,
      ack_policy: AckPolicy.Explicit,
      ...(filter && { filter_subject: filter }),
    });
    const config = { ...bridgeConfig, consumer };
    const loop = await consumeJetStream({
      consumer: await stream.consumers.get(name, consumer),
      inbox: createInboxProcessor({ config, table: memoryTable(), telemetry: memoryTelemetry() }),
      handler: leased(ParcelPacked, ({ data }) => handle(data.n)),
      deadLetter: ({ id, message }) =>
        stream.publish(`dead.${name}.${consumer}`, message.data, { msgID: id, headers: message.headers }),
    });
    loops.push(loop);
    return loop;
  }

  test.each([
    ['its consumer is deleted', (name: string) => client.manager.consumers.delete(name, 'payments')],
    ['its stream is deleted', (name: string) => client.manager.streams.delete(name)],
    [
      'its stream was in memory and its server was killed',
      async () => {
        await broker.kill();
        await broker.start();
      },
    ],
  ])(
    'ends when %s',
    async (why, lose) => {
      const name = `lost-${why.replace(/\W/g, '')}`;
      await client.createStream({ name, storage: StorageType.Memory });
      const handled: number[] = [];
      const loop = await consuming(name, 'payments', async (n) => handled.push(n));
      await client.publish(`${name}.x`, envelope(1));
      await eventually(async () => expect(handled).toEqual([1]));
      const closed = expect(loop.ended).rejects.toMatchObject({ code: 'SOURCE_CLOSED' });
      await lose(name);
      await closed;
    },
    NOTICED_MS,
  );

  test('goes on when its server was killed and has its stream', async () => {
    await client.createStream({ name: 'kept' });
    const handled: number[] = [];
    await consuming('kept', 'payments', async (n) => handled.push(n));
    await client.publish('kept.x', envelope(1));
    await eventually(async () => expect(handled).toEqual([1]));
    await broker.kill();
    await broker.start();
    await eventually(async () => {
      const other = await natsClient(broker.address);
      await other.publish('kept.x', envelope(2)).finally(other.close);
    });
    await eventually(async () => expect(new Set(handled)).toEqual(new Set([1, 2])));
  });

  test('runs healthy messages while those of ten failing ones wait', async () => {
    await client.createStream({ name: 'waiting' });
    const handled: number[] = [];
    await consuming('waiting', 'payments', async (n) => {
      handled.push(n);
      if (n <= 10) throw new RetryLater(600_000);
    });
    for (let n = 1; n <= 30; n += 1) await client.publish('waiting.x', envelope(n));
    await eventually(async () => {
      const { num_pending, num_ack_pending } = await client.manager.consumers.info('waiting', 'payments');
      expect([num_pending, num_ack_pending]).toEqual([0, 10]);
    });
    expect(handled.filter((n) => n > 10)).toHaveLength(20);
  });

  test('keeps a dead letter of each of two consumers, with its headers, in one stream', async () => {
    await client.createStream({ name: 'orders' });
    await client.createStream({ name: 'letters', subjects: ['dead.orders.>'] });
    const fail = () => Promise.reject(new PoisonMessage('It cannot be charged.'));
    await consuming('orders', 'payments', fail);
    await consuming('orders', 'billing', fail);
    const given = headers();
    given.set('traceparent', '00-1-2-01');
    given.set('Nats-Rollup', 'all');
    await client.manager.streams.update('orders', { allow_rollup_hdrs: true });
    await stream.publish('orders.x', envelope(1), {
      msgID: 'm',
      headers: given,
      expect: { streamName: 'orders' },
    });
    await eventually(async () => expect(await client.arrived('letters')).toHaveLength(2));
    const letters = await client.arrived('letters');
    expect(letters.map(({ key, headers: kept }) => [key, kept]).sort()).toEqual([
      ['dead.orders.billing', { 'Nats-Msg-Id': 'billing/orders/1', traceparent: '00-1-2-01', id: 'm' }],
      ['dead.orders.payments', { 'Nats-Msg-Id': 'payments/orders/1', traceparent: '00-1-2-01', id: 'm' }],
    ]);
    expect(new Set(bodiesOf(letters)).size).toBe(1);
  });

  test('keeps dead letters in the stream of the messages', async () => {
    await client.createStream({ name: 'both', subjects: ['both.>', 'dead.both.>'] });
    await consuming('both', 'payments', () => Promise.reject(new PoisonMessage('It cannot.')), 'both.>');
    await stream.publish('both.x', envelope(1), { msgID: 'm' });
    await eventually(async () => expect(await client.arrived('both')).toHaveLength(2));
    await eventually(async () => {
      const { num_pending, num_ack_pending } = await client.manager.consumers.info('both', 'payments');
      expect([num_pending, num_ack_pending]).toEqual([0, 0]);
    });
  });
});
