import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import pMap from 'p-map';
import { OrderPlaced } from '../../lambdas/example/events.ts';
import { newOrder, orderRow } from '../../lambdas/example/orders/order.ts';
import { createOutbox, dynamoTable } from '../../lambdas/runtime/index.ts';
import type { OrderSystem } from './order-system.ts';
import { RELAY_TIMINGS } from './timings.ts';

/** The most commits under way at once. */
const COMMITS_AT_ONCE = 16;

/** How many goods the orders are for: few, so that many orders want the same ones. */
const SKUS = 5;

const SHARDS = 8;

/**
 * Places orders as fast as the table takes them: past the API, by the commit that the API makes of each request.
 *
 * @param wave - every customer and SKU begins with it; the SKUs are in stock
 * @returns the ids of the events, one for each order
 */
export async function placeInRush(
  { tableName }: OrderSystem,
  wave: string,
  count: number,
): Promise<readonly string[]> {
  const config = { service: 'orders', tableName, shards: SHARDS, bornLeaseMs: RELAY_TIMINGS.bornLeaseMs };
  const table = dynamoTable({ client: new DynamoDBClient({}), tableName });
  const outbox = createOutbox({ config, table });
  const committed = await pMap(
    Array.from({ length: count }, (_, n) => n),
    async (n) => {
      const items = [{ sku: `${wave}-sku-${n % SKUS}`, quantity: 1, unitPrice: 100 }];
      const order = newOrder(`${wave}-${n}`, { customerId: `${wave}-customer-${n}`, items }, Date.now());
      const { orderId, customerId, totalCents } = order;
      return outbox.commit({
        writes: [{ Put: { Item: orderRow(order), ConditionExpression: 'attribute_not_exists(PK)' } }],
        events: [
          OrderPlaced.create({ aggregateId: orderId, data: { orderId, customerId, items, totalCents } }),
        ],
      });
    },
    { concurrency: COMMITS_AT_ONCE },
  );
  return committed.flat().map(({ eventId }) => eventId);
}
