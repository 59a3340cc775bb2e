import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { newOrder, orderRow } from '../../lambdas/example/orders/order.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import { MailroomError } from '../../lambdas/runtime/errors.ts';
import { createOutbox, dynamoTable, type Envelope } from '../../lambdas/runtime/index.ts';
import { producerConfig } from '../../testing/index.ts';

/** The EventBridge `source` of the orders. */
const SOURCE = 'orders';

/** The name of the consumer. */
export const CONSUMER = 'reservations';

/** An order that was placed. All times are epoch milliseconds, by the clock of the machine that everything runs on. */
export interface PlacedOrder {
  readonly eventId: string;
  /** When the handler began. */
  readonly beganAt: number;
  /** When the database had answered that the order is written. */
  readonly committedAt: number;
  /** When the bus had answered the handler; absent where the handler does not publish. */
  readonly publishedAt?: number;
  /** When the handler was done, and its caller could be answered. */
  readonly doneAt: number;
}

/** A way to place an order: what a handler would run. */
export interface Producer {
  readonly system: 'mailroom' | 'direct';
  /** @param key - tells the order from every other one */
  place(key: string): Promise<PlacedOrder>;
}

/** What {@link createProducers} needs. */
export interface ProducersDeps {
  readonly dynamo: DynamoDBClient;
  readonly bridge: EventBridgeClient;
  readonly tableName: string;
  readonly busName: string;
}

const PUBLISH_TIMEOUT_MS = 5_000;

/** With Mailroom: the order and its event in one transaction. Directly: the order is put, then its event is published. */
export function createProducers({ dynamo, bridge, tableName, busName }: ProducersDeps): readonly Producer[] {
  const table = dynamoTable({ client: dynamo, tableName });
  const bus = eventBridgeBus({ client: bridge, busName });
  const outbox = createOutbox({ config: producerConfig({ service: SOURCE, tableName }), table });
  return [
    {
      system: 'mailroom',
      place: async (key) => {
        const beganAt = Date.now();
        const { put, placed } = orderOf(key);
        const [envelope] = await outbox.commit({ writes: [put], events: [placed] });
        const committedAt = Date.now();
        return { eventId: envelope?.eventId ?? '', beganAt, committedAt, doneAt: committedAt };
      },
    },
    {
      system: 'direct',
      place: async (key) => {
        const beganAt = Date.now();
        const { put, placed } = orderOf(key);
        // Only so that it publishes the same envelope: the outbox row itself is never written.
        const [entry] = await outbox.entries([placed]);
        const detail = entry?.Put.Item.envelope ?? '';
        await table.write(put);
        const committedAt = Date.now();
        const results = await bus.put(
          [{ source: SOURCE, detailType: OrderPlaced.type, detail }],
          PUBLISH_TIMEOUT_MS,
        );
        const publishedAt = Date.now();
        for (const result of results) if (!result.ok) throw new MailroomError(result.code, result.message);
        const { eventId } = JSON.parse(detail) as Envelope;
        return { eventId, beganAt, committedAt, publishedAt, doneAt: publishedAt };
      },
    },
  ];
}

function orderOf(key: string) {
  const request = { customerId: `customer-${key}`, items: [{ sku: 'coffee', quantity: 1, unitPrice: 450 }] };
  const order = newOrder(key, request, Date.now());
  const { orderId, customerId, items, totalCents } = order;
  return {
    put: { Put: { Item: orderRow(order), ConditionExpression: 'attribute_not_exists(PK)' } },
    placed: OrderPlaced.create({
      aggregateId: orderId,
      data: { orderId, customerId, items: [...items], totalCents },
    }),
  };
}
