import { type Commit, type Handler, transactional } from '../../runtime/index.ts';
import { PaymentCaptured, PaymentDeclined, StockRejected, StockReserved } from '../events.ts';
import { type Order, orderKey } from './order.ts';

/**
 * Moves an order on as payments and inventory report. Each event sets one attribute and reads nothing, so their
 * order does not matter; that each is applied once is the inbox's work.
 */
export const orderStatusHandlers: readonly Handler[] = [
  transactional(PaymentCaptured, async ({ data }) => moveOn(data.orderId, 'payment', 'captured')),
  transactional(PaymentDeclined, async ({ data }) => moveOn(data.orderId, 'payment', 'declined')),
  transactional(StockReserved, async ({ data }) => moveOn(data.orderId, 'stock', 'reserved')),
  transactional(StockRejected, async ({ data }) => moveOn(data.orderId, 'stock', 'rejected')),
];

function moveOn<K extends 'payment' | 'stock'>(orderId: string, half: K, state: Order[K]): Commit {
  return {
    writes: [
      {
        Update: {
          Key: { ...orderKey(orderId) },
          UpdateExpression: 'SET #half = :state',
          // An update would otherwise create an order that nobody placed.
          ConditionExpression: 'attribute_exists(PK)',
          ExpressionAttributeNames: { '#half': half },
          ExpressionAttributeValues: { ':state': state },
        },
      },
    ],
  };
}
