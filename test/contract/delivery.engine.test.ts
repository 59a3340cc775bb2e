import { afterAll, expect, inject, it } from 'vitest';
import { z } from 'zod/mini';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { transactionalBatch } from '../../lambdas/runtime/consume/batch-handler.ts';
import { leased, transactional } from '../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createSweepPass } from '../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { lambdaContext, memoryBus, memoryQueue, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig, relayConfig } from '../support/runtime-rig.ts';
import { type EngineTable, engineTable } from './engine-table.ts';

const ORDERS = 8;

/** Times of day that a test can skip; a wait takes its time. */
function skippingClock(): Clock & { skip(ms: number): void } {
  let skippedMs = 0;
  return {
    ...systemClock,
    now: () => systemClock.now() + skippedMs,
    skip: (ms) => {
      skippedMs += ms;
    },
  };
}

const Ordered = defineEvent({
  source: consumerConfig.service,
  type: 'Ordered',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ order: z.string() }),
});

const placed = (order: string) => ({
  writes: [
    {
      Put: {
        Item: { PK: `ORDER#${order}`, SK: 'ORDER' },
        ConditionExpression: 'attribute_not_exists(PK)',
      },
    },
  ],
  events: [Ordered.create({ aggregateId: order, data: { order } })],
});

/** Does the work of an order once more. */
const work = (order: string) => ({
  writes: [
    {
      Update: {
        Key: { PK: `WORK#${order}`, SK: 'WORK' },
        UpdateExpression: 'ADD n :one',
        ExpressionAttributeValues: { ':one': 1 },
      },
    },
  ],
});

/** A table that does what it is asked, and loses every second answer of a transaction. */
function losingAnswers(table: Table): Table {
  let calls = 0;
  return {
    ...table,
    transact: async (...args) => {
      await table.transact(...args);
      calls += 1;
      if (calls % 2 === 1) throw Object.assign(new Error('socket hang up'), { name: 'TimeoutError' });
    },
  };
}

const made: EngineTable[] = [];

afterAll(() => Promise.all(made.map(({ remove }) => remove())));

it.each([
  ['leased', leased(Ordered, (event, ctx) => ctx.commit(work(event.data.order)))],
  ['transactional', transactional(Ordered, async (event) => work(event.data.order))],
  [
    'batch',
    transactionalBatch(Ordered, async (events) => ({
      writes: events.flatMap(({ data }) => work(data.order).writes),
    })),
  ],
] as const)(
  'two relays and two %s consumers at a time, and lost answers: the work of each committed order is done once',
  async (_kind, handler) => {
    const { table: sound, items } = await engineTable(inject('endpoint'), made);
    const table = losingAnswers(sound);
    const clock = skippingClock();
    const bus = memoryBus({ clock });
    const queue = memoryQueue({ clock, visibilityTimeoutMs: consumerConfig.visibilityTimeoutMs });
    bus.routeTo(queue);
    bus.routeTo(queue);
    const deps = { clock, telemetry: memoryTelemetry() };
    const outbox = createOutbox({ ...deps, config: consumerConfig, table });
    const orders = Array.from({ length: ORDERS }, (_, n) => String(n));
    for (const order of orders) await outbox.commit(placed(order));
    await expect(outbox.commit(placed('0'))).rejects.toMatchObject({ code: 'TRANSACTION_CANCELLED' });

    clock.skip(2 * MINUTE_MS);
    const sweep = () =>
      createSweepPass({ ...deps, config: relayConfig, table, bus })(clock.now() + MINUTE_MS);
    await Promise.all([sweep(), sweep()]);
    expect(queue.messages().length).toBeGreaterThanOrEqual(2 * ORDERS);
    const consume = () =>
      createConsumer({ ...deps, config: consumerConfig, table, queue, handlers: [handler] });
    for (let round = 0; queue.messages().length > 0; round += 1) {
      expect(round).toBeLessThan(20);
      await Promise.all(
        [consume(), consume()].map((one) => queue.deliver(one, 10, lambdaContext({ clock }))),
      );
      clock.skip(consumerConfig.visibilityTimeoutMs);
    }

    expect(bus.published().length).toBeGreaterThanOrEqual(ORDERS);
    expect((await items('OUTBOX#')).map(({ status }) => status)).toEqual(orders.map(() => 'PUBLISHED'));
    expect((await items('INBOX#')).filter(({ status }) => status === 'PROCESSED')).toHaveLength(ORDERS);
    const done = await items('WORK#');
    expect(done.map(({ PK, n }) => [PK, n]).toSorted()).toEqual(orders.map((order) => [`WORK#${order}`, 1]));
  },
);
