import { connect } from 'amqplib';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { leased, RetryLater } from '../../../lambdas/runtime/index.ts';
import { consumeRabbit, createInboxProcessor } from '../../../lambdas/runtime/sources.ts';
import { memoryTable, memoryTelemetry } from '../../../testing/index.ts';
import { eventually } from '../../local/support/eventually.ts';
import { type RabbitPlaces, startRabbitPlaces } from '../places/rabbit-places.ts';
import { bridgeConfig, bridgeTo, ParcelPacked } from '../targets/bridge.ts';
import { targetOf } from '../targets/target-of.ts';
import { describeSource } from './source-tests.ts';

const debian = inject('debian');

const start = async (name: string) => {
  if (debian === undefined) throw new Error('The tests are skipped.');
  return await startRabbitPlaces(debian, name);
};

describeSource({
  broker: 'RabbitMQ',
  isMissing: debian === undefined,
  start: () => start('rabbit-source'),
  keepsOrder: false,
});

describe.skipIf(debian === undefined)('a retry queue of RabbitMQ', () => {
  let broker: RabbitPlaces;
  beforeAll(async () => {
    broker = await start('rabbit-retries');
  });
  afterAll(async () => await broker?.close());

  /** Puts events 0 to `count` into a queue, and consumes it; the first ten fail until `heal`. */
  const failing = async (queue: string, count: number, retryQueue?: string) => {
    await broker.createSource(queue);
    const bridge = bridgeTo(targetOf(broker.placeOf(queue)));
    await bridge.publish(count);
    await bridge.settle();
    return await consuming(queue, memoryTable(), retryQueue);
  };
  /** @param acknowledges - false: as if each process crashed before it acknowledges */
  const consuming = async (
    queue: string,
    table: ReturnType<typeof memoryTable>,
    retryQueue?: string,
    acknowledges = true,
  ) => {
    const runs: number[] = [];
    let isHealed = false;
    const inbox = createInboxProcessor({
      config: { ...bridgeConfig, consumer: 'worker', retryFirstMs: 0 },
      table,
      telemetry: memoryTelemetry(),
    });
    const connection = await connect(broker.url);
    const createConfirmChannel = async () => {
      const channel = await connection.createConfirmChannel();
      if (!acknowledges) channel.ack = () => {};
      return channel;
    };
    const loop = await consumeRabbit({
      connection: { createConfirmChannel, on: connection.on.bind(connection) },
      queue,
      retryQueue,
      inbox,
      handler: leased(ParcelPacked, async ({ data }) => {
        if (data.n < 10 && !isHealed) throw new RetryLater(3_000);
        runs.push(data.n);
      }),
    });
    return {
      runs,
      loop,
      heal: () => {
        isHealed = true;
      },
      end: async () => {
        await loop.stop();
        await connection.close();
      },
    };
  };

  test('ten failing messages do not hold back the healthy ones, and each is processed once when it succeeds', async () => {
    const { runs, heal, end } = await failing('starved', 30, 'starved-retry');
    await eventually(async () => expect(runs).toHaveLength(20), 2_000);
    expect(Math.min(...runs)).toBe(10);
    heal();
    await eventually(async () => expect(new Set(runs).size).toBe(30), 60_000);
    await end();
    expect(runs).toHaveLength(30);
    expect(await broker.waiting('starved')).toBe(0);
    expect(await broker.waiting('starved-retry')).toBe(0);
  });

  test('a crash between the copy and the acknowledgement leaves two copies, of which one is processed', async () => {
    await broker.createSource('crashed');
    const bridge = bridgeTo(targetOf(broker.placeOf('crashed')));
    await bridge.publish(5);
    await bridge.settle();
    const table = memoryTable();
    const first = await consuming('crashed', table, 'crashed-retry', false);
    await eventually(async () => expect(await broker.waiting('crashed-retry')).toBe(5), 60_000);
    await first.end();
    const second = await consuming('crashed', table, 'crashed-retry');
    second.heal();
    await eventually(async () => {
      expect(new Set(second.runs).size).toBe(5);
      expect((await broker.waiting('crashed')) + (await broker.waiting('crashed-retry'))).toBe(0);
    }, 60_000);
    await second.end();
    expect(await broker.waiting('crashed')).toBe(0);
    expect(second.runs).toHaveLength(5);
  });

  test('a message that waits in it survives the end of its consumer and of the broker', async () => {
    await broker.createSource('kept');
    await (await consuming('kept', memoryTable(), 'kept-retry')).end();
    // RabbitMQ 3.10.8 that is killed just after it created a quorum queue begins it anew.
    await broker.stop();
    await broker.start();
    const first = await failing('kept', 10, 'kept-retry');
    await eventually(async () => expect(await broker.waiting('kept-retry')).toBeGreaterThan(0));
    await first.end();
    await broker.kill();
    await broker.start();
    const second = await consuming('kept', memoryTable(), 'kept-retry');
    second.heal();
    await eventually(async () => expect(new Set(second.runs).size).toBe(10));
    await second.end();
  });

  test('a broker that is killed ends the loop, and not its process', async () => {
    const { loop } = await failing('ended', 1);
    const ended = expect(loop.ended).rejects.toMatchObject({ code: 'SOURCE_CLOSED' });
    await broker.kill();
    await ended;
    await loop.stop();
    await broker.start();
  });
});
