import { expect, test } from 'vitest';
import * as z from 'zod';
import {
  type AnyEventDefinition,
  createConsumer,
  createOutbox,
  defineEvent,
  leased,
} from '../../../lambdas/runtime/index.ts';
import {
  consumerConfig,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
  producerConfig,
} from '../../../testing/index.ts';
import { codeOf } from '../page-module.ts';

const page = 'docs/recipes/schema-change.md';
const { OrderPlaced } = await codeOf<{ OrderPlaced: AnyEventDefinition }>(page, 'src/events.ts');

/** The previous version. */
const OrderPlacedV1 = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ orderId: z.string(), totalCents: z.int() }),
});
const order = { orderId: '42', totalCents: 4200 };

function shop() {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const bus = memoryBus({ clock });
  const queue = memoryQueue({ clock, maxReceiveCount: 8 });
  bus.routeTo(queue);
  const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table, clock });
  const seen: unknown[] = [];
  return {
    queue,
    seen,
    publish: async (definition: AnyEventDefinition, data: object) => {
      const [event] = await outbox.commit({ events: [definition.create({ aggregateId: '42', data })] });
      await bus.put([{ source: 'orders', detailType: 'OrderPlaced', detail: JSON.stringify(event) }], 1_000);
    },
    /** Runs a consumer with this definition until its queue is empty. */
    consume: async (definition: AnyEventDefinition) => {
      const handler = leased(definition, async ({ version, data }) => seen.push({ version, data }));
      const parts = { table, queue, clock, telemetry: memoryTelemetry() };
      const consume = createConsumer({ ...parts, config: consumerConfig(), handlers: [handler] });
      while (queue.messages().length > 0) await queue.deliver(consume);
    },
  };
}

test('a consumer with version 2 reads an event of version 1', async () => {
  const { publish, consume, seen } = shop();
  await publish(OrderPlacedV1, order);
  await consume(OrderPlaced);
  expect(seen).toEqual([{ version: 2, data: { ...order, currency: 'EUR' } }]);
});

test('an unknown version waits in the dead-letter queue until the consumer is deployed', async () => {
  const { publish, consume, seen, queue } = shop();
  await publish(OrderPlaced, { ...order, currency: 'USD' });
  await consume(OrderPlacedV1);
  expect(seen).toEqual([]);
  expect(queue.deadLetters()).toHaveLength(1);

  queue.redrive(); // after the deploy
  await consume(OrderPlaced);
  expect(seen).toEqual([{ version: 2, data: { ...order, currency: 'USD' } }]);
});
