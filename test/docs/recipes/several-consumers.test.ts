import { expect, test } from 'vitest';
import {
  type AnyEventDefinition,
  createConsumer,
  createOutbox,
  type Handler,
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

const page = 'docs/recipes/several-consumers.md';
const { OrderPlaced } = await codeOf<{ OrderPlaced: AnyEventDefinition }>(page, 'src/events.ts');
const { givePoints } = await codeOf<{ givePoints: Handler }>(page, 'src/loyalty.ts');
const { chargeOrder } = await codeOf<{ chargeOrder(bank: () => Promise<string>): Handler }>(
  page,
  'src/payments.ts',
);

test('loyalty gives its points once, while payments fails', async () => {
  const clock = manualClock();
  const table = memoryTable({ clock });
  const bus = memoryBus({ clock });
  const consumer = (name: string, handler: Handler) => {
    const queue = memoryQueue({ clock, maxReceiveCount: 8 });
    bus.routeTo(queue);
    const parts = { table, queue, clock, telemetry: memoryTelemetry() };
    const config = consumerConfig({ consumer: name });
    return { queue, consume: createConsumer({ ...parts, config, handlers: [handler] }) };
  };
  const bankIsDown = () => Promise.reject(new Error('The bank does not answer'));
  const payments = consumer('payments', chargeOrder(bankIsDown));
  const loyalty = consumer('loyalty', givePoints);

  const outbox = createOutbox({ config: producerConfig({ service: 'orders' }), table, clock });
  const data = { orderId: '42', totalCents: 4200 };
  const events = await outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data })] });
  for (const twice of [...events, ...events]) {
    await bus.put([{ source: 'orders', detailType: twice.type, detail: JSON.stringify(twice) }], 1_000);
  }
  await payments.queue.deliver(payments.consume);
  await loyalty.queue.deliver(loyalty.consume);

  expect(payments.queue.messages()).toHaveLength(2); // the event and its duplicate
  expect(loyalty.queue.messages()).toEqual([]);
  expect(table.item({ PK: 'POINTS#42', SK: 'POINTS' })).toMatchObject({ points: 42 });
});
