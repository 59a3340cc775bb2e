import type { Context } from 'aws-lambda';
import { type Clock, isMailroomError, type Outbox, type Table } from '../../runtime/index.ts';
import { OrderPlaced, type OrderRequest } from '../events.ts';
import { HttpError } from './http.ts';
import type { OncePerKey } from './once-per-key.ts';
import {
  newOrder,
  type Order,
  orderIdOf,
  orderJson,
  orderKey,
  orderOfRow,
  orderRow,
  requestHash,
} from './order.ts';

/** Dependencies of {@link createPlaceOrder}. */
export interface PlaceOrderDeps {
  readonly outbox: Outbox;
  readonly table: Table;
  readonly clock: Clock;
  readonly oncePerKey: OncePerKey;
}

/**
 * Places an order once per idempotency key, however often the request is sent.
 *
 *     request ── Powertools row ──┬─ free ────────> commit order + OrderPlaced ──> store the response ──> 201
 *                                 ├─ completed ───> the stored response                                   201
 *                                 └─ in progress ─> order row there? ── yes: rebuild the response         201
 *                                                                    └─ no: retry later                   409
 *
 * Two rows guard the key. Powertools' row answers repeated requests and prevents concurrent runs, but it expires, and a run may
 * crash after its commit and before its response is stored. Therefore the order's own row decides: its id is derived from the key,
 * and the write requires that it does not exist. A run that finds it there rebuilds the first response from it, byte for byte.
 *
 * Keys are separate for each caller: the caller's identity is the prefix of the key.
 *
 * @returns the body of the response: the order as it was placed, JSON
 * @throws {@link HttpError} 422 if the key was used for another request, 409 while the first run is in progress
 */
export function createPlaceOrder(deps: PlaceOrderDeps) {
  const { outbox, table, clock, oncePerKey } = deps;

  async function placedBefore(key: string, request: OrderRequest): Promise<string | undefined> {
    const row = await table.get(orderKey(orderIdOf(key)), { consistent: true });
    if (row === undefined) return undefined;
    const order = orderOfRow(row);
    if (order.requestHash !== requestHash(request)) throw keyReused();
    return placedJson(order);
  }

  async function place(key: string, request: OrderRequest, caller: string | undefined): Promise<string> {
    const order = newOrder(key, request, clock.now(), caller);
    const { orderId, customerId, totalCents, placedAt } = order;
    try {
      await outbox.commit({
        writes: [{ Put: { Item: orderRow(order), ConditionExpression: 'attribute_not_exists(PK)' } }],
        events: [
          OrderPlaced.create({
            aggregateId: orderId,
            occurredAt: placedAt,
            data: { orderId, customerId, items: request.items, totalCents },
          }),
        ],
      });
    } catch (error) {
      const body = isMailroomError(error, 'TRANSACTION_CANCELLED')
        ? await placedBefore(key, request)
        : undefined;
      if (body === undefined) throw error;
      return body;
    }
    return placedJson(order);
  }

  return async (key: string, request: OrderRequest, context: Context, caller?: string): Promise<string> => {
    const outcome = await oncePerKey(key, request, context, () => place(key, request, caller));
    if (outcome.kind === 'answer') return outcome.body;
    if (outcome.kind === 'other-request') throw keyReused();
    const body = await placedBefore(key, request);
    if (body === undefined) throw stillAtWork();
    return body;
  };
}

/** Returns the order as it was placed, whatever has happened to it since. */
function placedJson(order: Order): string {
  return orderJson({ ...order, payment: 'pending', stock: 'pending' });
}

function keyReused(): HttpError {
  return new HttpError(422, {
    code: 'IDEMPOTENCY_KEY_REUSED',
    message: 'This Idempotency-Key was used for another order. Use a new key for a new order.',
    field: 'Idempotency-Key',
  });
}

function stillAtWork(): HttpError {
  const message = 'A request with this Idempotency-Key is in progress. Send it again in a moment.';
  const field = 'Idempotency-Key';
  return new HttpError(409, { code: 'REQUEST_IN_PROGRESS', message, field }, { 'retry-after': '1' });
}
