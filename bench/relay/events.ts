import type { DynamoDBStreamEvent } from 'aws-lambda';
import { z } from 'zod/mini';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createOutbox, type Outbox, type OutboxDeps } from '../../lambdas/runtime/outbox/outbox.ts';
import { memoryTable, memoryTelemetry, producerConfig, relayConfig } from '../../testing/index.ts';

/** The settings of the measured relays: the constructs' defaults. */
export const RELAY_CONFIG = relayConfig({ busName: 'mailroom-bus', sources: ['orders'] });

const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ customerId: z.string(), lines: z.array(z.object({ sku: z.string(), cents: z.int() })) }),
});

/** Orders of 3 to 17 lines: payloads of 200 to 800 bytes, so that envelopes have 0.5 to 1.1 KB. */
export function orderPlaced(n: number) {
  const lines = Array.from({ length: 3 + (n % 15) }, (_, line) => ({
    sku: `SKU-${String((n * 31 + line) % 10_000).padStart(12, '0')}`,
    cents: 1_000 + line,
  }));
  return OrderPlaced.create({
    aggregateId: `order-${n}`,
    data: { customerId: `customer-${n % 997}`, lines },
  });
}

/** An outbox like that of any service. @param table - @default one that is never read */
export function ordersOutbox(deps: Partial<Pick<OutboxDeps, 'table' | 'clock'>> = {}): Outbox {
  const config = producerConfig({ service: 'orders' });
  return createOutbox({
    config,
    table: deps.table ?? memoryTable({ name: config.tableName }),
    clock: deps.clock,
    telemetry: memoryTelemetry(),
  });
}

/** The maximum number of events per commit here: a transaction takes 100 actions. */
const COMMIT_MAX = 100;

/** The batch that Lambda delivers to the stream relay after events were committed in groups. */
export async function streamBatch(records: number, committedAt: number): Promise<DynamoDBStreamEvent> {
  const clock = { now: () => committedAt, sleep: async () => {} };
  const table = memoryTable({ name: RELAY_CONFIG.tableName, clock });
  const outbox = ordersOutbox({ table, clock });
  for (let n = 0; n < records; n += COMMIT_MAX) {
    const count = Math.min(COMMIT_MAX, records - n);
    await outbox.commit({ events: Array.from({ length: count }, (_, i) => orderPlaced(n + i)) });
  }
  return JSON.parse(JSON.stringify({ Records: table.stream() })) as DynamoDBStreamEvent;
}
