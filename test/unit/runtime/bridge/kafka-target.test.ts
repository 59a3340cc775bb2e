import fc from 'fast-check';
import { Partitioners } from 'kafkajs';
import { describe, expect, test, vi } from 'vitest';
import { partitionOf } from '../../../../lambdas/runtime/bridge/kafka-partitions.ts';
import {
  type BridgeResult,
  type KafkaClient,
  type KafkaProducer,
  kafkaTarget,
} from '../../../../lambdas/runtime/bridge.ts';
import { bridgedEvent } from '../../../contract/bridge-contract.ts';
import { broker, kafkaDouble } from '../../../contract/bridge-doubles.ts';

/** Keys in the double's partitions 0, 1 and 2, the first and the last of which have one leader. */
const KEYS = [0, 1, 2].map((partition) => {
  for (let n = 0; ; n += 1) if (partitionOf(`order-${n}`, 3) === partition) return `order-${n}`;
});
const entryOf = (partition: number, data?: string) =>
  bridgedEvent({ aggregateId: KEYS[partition] ?? '' }, data);
const TOO_LARGE = JSON.stringify('x'.repeat(1024 * 1024));

/** A target on a double whose calls are recorded. */
function recorded(change: (send: KafkaProducer['send']) => KafkaProducer['send'] = (send) => send) {
  const side = broker();
  const calls: string[][] = [];
  const client = (): KafkaClient => ({
    producer: (options) => {
      const producer = kafkaDouble(side)().producer(options);
      const send = change(producer.send);
      return {
        ...producer,
        send: (record) => {
          calls.push(record.messages.map(({ key }) => key));
          return send(record);
        },
      };
    },
  });
  const target = kafkaTarget({ client, topic: 'orders', brokers: 'b' });
  return { side, calls, target };
}

describe('Kafka', () => {
  test('has one idempotent producer, which connects once and again after a failure', async () => {
    const side = broker();
    const producer = vi.fn(kafkaDouble(side)().producer);
    const client = vi.fn(async (_: string[]): Promise<KafkaClient> => ({ producer }));
    const target = kafkaTarget({ client, topic: 'orders', brokers: 'b1,b2' });
    expect(client).not.toHaveBeenCalled();
    for (let n = 0; n < 2; n += 1) await target.send([entryOf(0), entryOf(0)]);
    expect(client.mock.calls).toEqual([[['b1', 'b2']]]);
    expect(producer.mock.calls[0]?.[0]).toMatchObject({
      idempotent: true,
      maxInFlightRequests: 1,
      allowAutoTopicCreation: false,
    });
    side.fault = 'missing';
    await target.send([entryOf(0)]);
    side.fault = undefined;
    expect(await target.send([entryOf(0)])).toMatchObject([
      { ok: true, place: { partition: 0, offset: '5' } },
    ]);
    expect(side.connections).toBe(2);
  });

  test('a client that cannot read its secret is denied, and is made again', async () => {
    const denied = Object.assign(new Error('no'), { name: 'AccessDeniedException' });
    const client = vi.fn(async () => kafkaDouble(broker())());
    client.mockRejectedValueOnce(denied);
    const target = kafkaTarget({ client, topic: 'orders', brokers: 'b' });
    expect(await target.send([entryOf(0)])).toMatchObject([{ refusal: 'denied' }]);
    expect(await target.send([entryOf(0)])).toMatchObject([{ ok: true }]);
  });

  test('sends the messages of a leader in one call, once it knows the leaders', async () => {
    const { target, calls } = recorded();
    const entries = [0, 1, 2, 0].map((partition) => entryOf(partition));
    expect(await target.send(entries)).toMatchObject(
      [0, 1, 2, 0].map((partition) => ({ ok: true, place: { partition } })),
    );
    expect(calls).toEqual([[KEYS[0]], [KEYS[1]], [KEYS[2], KEYS[0]]]);
    calls.length = 0;
    const results = await target.send(entries);
    expect(calls).toEqual([[KEYS[0], KEYS[2], KEYS[0]], [KEYS[1]]]);
    const offsets = results.map((result) => (result.ok ? Number(result.place.offset) : undefined));
    expect(offsets[3]).toBe(Number(offsets[0]) + 1);
  });

  test('has one call under way', async () => {
    let underWay = 0;
    const most: number[] = [];
    const { target, calls } = recorded((send) => async (record) => {
      underWay += 1;
      most.push(underWay);
      await new Promise(setImmediate);
      return send(record).finally(() => {
        underWay -= 1;
      });
    });
    await Promise.all([target.send([entryOf(0), entryOf(2)]), target.send([entryOf(0), entryOf(2)])]);
    expect([Math.max(...most), calls.length]).toEqual([1, 3]);
  });

  test('sends nothing more after a failure that can pass', async () => {
    const { target, calls, side } = recorded();
    side.fault = 'missing';
    expect(await target.send([entryOf(0), entryOf(1), entryOf(2)])).toMatchObject(
      Array(3).fill({ refusal: 'missing' }),
    );
    expect(calls).toHaveLength(1);
  });

  test('keeps what the other partitions have stored when one refuses its messages', async () => {
    const { target, side } = recorded();
    await target.send([entryOf(0)]);
    const results = await target.send([entryOf(0), entryOf(2, TOO_LARGE), entryOf(2), entryOf(0)]);
    expect(results).toMatchObject([
      { ok: true },
      { ok: false, refusal: 'too-large' },
      { ok: false, refusal: 'too-large' },
      { ok: true },
    ]);
    expect(side.messages).toHaveLength(3);
    expect(side.connections).toBe(1);
  });

  test('does not confirm a message whose partition is not in the answer', async () => {
    const { target } = recorded(
      (send) => async (record) => (await send(record)).filter(({ partition }) => partition !== 2),
    );
    await target.send([entryOf(0)]);
    expect(await target.send([entryOf(0), entryOf(2)])).toMatchObject([
      { ok: true },
      { ok: false, refusal: 'unavailable', code: 'NO_ANSWER' },
    ]);
  });

  test('tells results as soon as they are known', async () => {
    const { target } = recorded((send) => async (record) => {
      const isHung = record.messages.length === 1 && record.messages[0]?.key === KEYS[1];
      return isHung ? new Promise(() => {}) : send(record);
    });
    await target.send([entryOf(0)]);
    const known: (BridgeResult | undefined)[] = [];
    void target.send([entryOf(1), entryOf(0), entryOf(2)], (index, result) => {
      known[index] = result;
    });
    await vi.waitFor(() => expect(known).toMatchObject([undefined, { ok: true }, { ok: true }]));
  });

  test('places a key as kafkajs does by default', () => {
    const place = Partitioners.DefaultPartitioner();
    fc.assert(
      fc.property(
        fc.string({ unit: 'binary', maxLength: 40 }),
        fc.integer({ min: 1, max: 200 }),
        (key, count) => {
          const partitionMetadata = Array.from({ length: count }, (_, partitionId) => ({
            partitionId,
            leader: 1,
          }));
          const message = { key, value: '' };
          expect(partitionOf(key, count)).toBe(
            place({ topic: 'orders', partitionMetadata: partitionMetadata as never, message }),
          );
        },
      ),
    );
  });

  test('a message keeps its partition when it is tried again after partitions were added', async () => {
    const placed: number[] = [];
    const client = (): KafkaClient => ({
      producer: ({ createPartitioner }) => {
        const place = createPartitioner();
        return {
          connect: async () => {},
          disconnect: async () => {},
          send: async ({ messages: [message = {}] }) => {
            for (const count of [3, 100]) {
              const partitionMetadata = Array.from({ length: count }, () => ({ leader: 1 }));
              placed.push(place({ partitionMetadata, message }));
            }
            return [{ partition: placed[0] ?? 0, baseOffset: '0' }];
          },
        };
      },
    });
    const target = kafkaTarget({ client, topic: 'orders', brokers: 'b' });
    for (let n = 0; n < 20; n += 1) await target.send([bridgedEvent({ aggregateId: `order-${n}` })]);
    expect(placed.filter((partition, n) => partition !== placed[n - (n % 2)])).toEqual([]);
  });
});
