import { expect, test } from 'vitest';
import { invocationsOf, newOrders, TOGETHER } from '../../../bench/brokers/orders.ts';
import { brokers } from '../../../bench/brokers.ts';
import { OrderPlaced } from '../../../bench/relay/measured-relay.ts';
import { createConsumer, leased } from '../../../lambdas/runtime/index.ts';
import { consumerConfig, lambdaContext, memoryTable, memoryTelemetry } from '../../../testing/index.ts';

test('without --install, the part measures a bridge to nothing, and names each broker that it does not measure', async () => {
  const said: string[] = [];
  const { json, tables } = await brokers.run({ say: (line) => said.push(line), quick: true, install: false });
  const figures = (direction: string) => ({
    broker: 'none',
    direction,
    mailroomPerSecond: expect.any(Number),
    mailroomCpuMs: expect.any(Number),
  });
  expect(json).toEqual({ brokers: [figures('out'), figures('in')] });
  expect(tables.map(({ name, rows }) => [name, rows.length])).toEqual([
    ['brokers-out', 1],
    ['brokers-in', 1],
  ]);
  for (const broker of ['JetStream', 'RabbitMQ', 'Kafka'])
    expect(said).toContainEqual(expect.stringMatching(`^${broker} is not measured: --install`));
});

test('the measured invocations have ten different events each, which a consumer accepts', async () => {
  const invocations = invocationsOf(await newOrders(25));
  expect(invocations.map(({ Records }) => Records.length)).toEqual([TOGETHER, TOGETHER, 5]);
  const handled = new Set<string>();
  const consume = createConsumer({
    config: consumerConfig(),
    table: memoryTable(),
    queue: { changeVisibility: async () => {} },
    telemetry: memoryTelemetry(),
    handlers: [leased(OrderPlaced, async ({ eventId }) => void handled.add(eventId))],
  });
  for (const invocation of invocations) {
    expect(await consume(invocation, lambdaContext())).toEqual({ batchItemFailures: [] });
  }
  expect(handled.size).toBe(25);
});
