import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { newOrder, orderRow } from '../../lambdas/example/orders/order.ts';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { eventBridgeBus } from '../../lambdas/runtime/bus/eventbridge-bus.ts';
import {
  createAtOncePublisher,
  createOutbox,
  dynamoTable,
  type Envelope,
  type Table,
} from '../../lambdas/runtime/index.ts';
import { pendingRow } from '../../lambdas/runtime/outbox/pending-row.ts';
import { producerConfig } from '../../testing/index.ts';

/** The EventBridge `source` of the orders. */
const SOURCE = 'orders';

/** The name of the consumer. */
export const CONSUMER = 'reservations';

/** A placed order. All times are epoch milliseconds of the one machine that everything runs on. */
export interface PlacedOrder {
  readonly eventId: string;
  /** When the handler started. */
  readonly beganAt: number;
  /** When the database confirmed the write of the order. */
  readonly committedAt: number;
  /** When the bus answered the handler; absent if the handler does not publish. */
  readonly publishedAt?: number;
  /** When the handler finished and could answer its caller. */
  readonly doneAt: number;
}

/** A way to place an order, as a handler would. */
export interface Producer {
  readonly system: 'mailroom' | 'mailroom, at once' | 'direct';
  /** @param key - identifies the order */
  place(key: string): Promise<PlacedOrder>;
}

/** Dependencies of {@link createProducers}. */
export interface ProducersDeps {
  readonly dynamo: DynamoDBClient;
  readonly bridge: EventBridgeClient;
  readonly tableName: string;
  readonly busName: string;
}

const PUBLISH_TIMEOUT_MS = 5_000;

/** The turn of the producer that publishes at once. */
const TURN_MS = 1_000;

/**
 * With Mailroom: the order and its event in one transaction; *at once*, the handler then publishes it. Directly: put the order,
 * then publish its event.
 */
export function createProducers({ dynamo, bridge, tableName, busName }: ProducersDeps): readonly Producer[] {
  const table = dynamoTable({ client: dynamo, tableName });
  const bus = eventBridgeBus({ client: bridge, busName });
  const config = producerConfig({ service: SOURCE, tableName });
  const outbox = createOutbox({ config, table });
  const publishAtOnce = createAtOncePublisher({
    config: { busName, timeoutMs: TURN_MS, publishedRetentionDays: 7 },
    bus,
  });
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
      system: 'mailroom, at once',
      place: async (key) => {
        const beganAt = Date.now();
        const { put, placed } = orderOf(key);
        let committedAt = beganAt;
        const timed: Table = {
          ...table,
          transact: async (...args) => {
            await table.transact(...args);
            committedAt = Date.now();
          },
        };
        const [envelope] = await createOutbox({ config, table: timed, publishAtOnce }).commit({
          writes: [put],
          events: [placed],
        });
        return { eventId: envelope?.eventId ?? '', beganAt, committedAt, doneAt: Date.now() };
      },
    },
    {
      system: 'direct',
      place: async (key) => {
        const beganAt = Date.now();
        const { put, placed } = orderOf(key);
        // Used only to publish the same envelope: the outbox row is never written.
        const [entry] = await outbox.entries([placed]);
        const detail = (entry && pendingRow({ ...entry.Put.Item })?.entry.detail) ?? '';
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
