import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import type { DynamoDBStreamEvent } from 'aws-lambda';
import { z } from 'zod/mini';
import { busClientSettings, portClientSettings } from '../../lambdas/runtime/base/client-settings.ts';
import { readRelayConfig } from '../../lambdas/runtime/base/config.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { dynamoTable } from '../../lambdas/runtime/store/dynamo/dynamo-table.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { relayConfig } from '../../testing/default-config.ts';
import { type MemoryTable, memoryTable, memoryTelemetry, producerConfig } from '../../testing/index.ts';

/** The settings of the measured relays: the constructs' defaults. */
export const RELAY_CONFIG = relayConfig({ busName: 'mailroom-bus', sources: ['orders'] });

/** The parts of the relay's functions, created as in `lambdas/relay-*\/handler.ts`. */
export function relayPorts() {
  const config = readRelayConfig(process.env);
  const dynamodb = new DynamoDBClient(portClientSettings);
  const eventbridge = new EventBridgeClient(busClientSettings(config.publishTimeoutMs));
  return {
    config,
    table: dynamoTable({ client: dynamodb, tableName: config.tableName }),
    bus: eventBridgeBus({ client: eventbridge, busName: config.busName }),
  };
}

/** The measured event. */
export const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ customerId: z.string(), lines: z.array(z.object({ sku: z.string(), cents: z.int() })) }),
});

/** Orders of 3 to 17 lines: payloads of 200 to 800 bytes, so that envelopes have 0.5 to 1.1 KB. */
function orderPlaced(n: number) {
  const lines = Array.from({ length: 3 + (n % 15) }, (_, line) => ({
    sku: `SKU-${String((n * 31 + line) % 10_000).padStart(12, '0')}`,
    cents: 1_000 + line,
  }));
  const data = { customerId: `customer-${n % 997}`, lines };
  return OrderPlaced.create({ aggregateId: `order-${n}`, data });
}

/** The maximum number of events per commit here: a transaction takes 100 actions. */
const COMMIT_MAX = 100;

/** A table with events that the real outbox committed in groups, evenly over a period in epoch milliseconds. */
export async function tableOfOrders(count: number, from: number, to = from): Promise<MemoryTable> {
  let now = from;
  const clock = { now: () => now, sleep: async () => {} };
  const table = memoryTable({ name: RELAY_CONFIG.tableName, clock });
  const config = producerConfig({ service: 'orders' });
  const outbox = createOutbox({ config, table, clock, telemetry: memoryTelemetry() });
  for (let n = 0; n < count; n += COMMIT_MAX) {
    now = Math.floor(from + ((to - from) * n) / count);
    const events = Array.from({ length: Math.min(COMMIT_MAX, count - n) }, (_, i) => orderPlaced(n + i));
    await outbox.commit({ events });
  }
  return table;
}

/** The batch that Lambda delivers to the stream relay after events were committed. */
export async function streamBatch(records: number, committedAt: number): Promise<DynamoDBStreamEvent> {
  const table = await tableOfOrders(records, committedAt);
  return JSON.parse(JSON.stringify({ Records: table.stream() })) as DynamoDBStreamEvent;
}
