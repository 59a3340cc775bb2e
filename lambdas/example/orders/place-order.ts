import type { HttpAnswer, OncePerKey } from '../../runtime/http.ts';
import type { Clock } from '../../runtime/index.ts';
import { OrderExpired, OrderPlaced, type OrderRequest } from '../events.ts';
import { newOrder, type Order, orderIdOf, orderJson, requestHash } from './order.ts';
import type { OrderRecords } from './order-records.ts';

/** Dependencies of {@link createPlaceOrder}. */
export interface PlaceOrderDeps {
  readonly orders: OrderRecords;
  readonly clock: Clock;
  readonly oncePerKey: OncePerKey;
  /** The time to pay of an order whose request does not shorten it, seconds. */
  readonly payWithinSeconds: number;
}

/** An order to place, and who wants it. */
interface OrderToPlace {
  readonly idempotencyKey: string | undefined;
  readonly request: OrderRequest;
  /** The caller's identity: separates the keys of the callers. */
  readonly caller: string | undefined;
  readonly remainingMs: number;
}

/** Places an order, and answers the request. */
export type PlaceOrder = (order: OrderToPlace) => Promise<HttpAnswer>;

/**
 * Places an order once per idempotency key, however often the request is sent.
 *
 *     request ── Powertools row ──┬─ free ────────> commit order + events ───────> store the answer ──> 201
 *                                 ├─ completed ───> the stored answer                                   201
 *                                 └─ in progress ─> order row there? ── yes: rebuild the answer         201
 *                                                                    └─ no: retry later                 409
 *
 * Two rows guard the key. Powertools' row answers repeated requests and prevents concurrent runs, but it expires, and a run may
 * crash after its commit and before its answer is stored. Therefore the order's own row decides: its id is derived from the key,
 * and the write requires that it does not exist. A run that finds it there rebuilds the first answer from it, byte for byte.
 *
 * The same commit schedules `OrderExpired`. The order stores its id, so that the payment can cancel it.
 */
export function createPlaceOrder(deps: PlaceOrderDeps): PlaceOrder {
  const { orders, clock, oncePerKey } = deps;

  async function place(key: string, request: OrderRequest, caller: string | undefined): Promise<string> {
    const placed = newOrder(key, request, clock.now(), caller);
    const { orderId, customerId, totalCents, placedAt } = placed;
    const payBy = placedAt + (request.payWithinSeconds ?? deps.payWithinSeconds) * 1_000;
    const placing = OrderPlaced.create({
      aggregateId: orderId,
      occurredAt: placedAt,
      data: { orderId, customerId, items: request.items, totalCents },
    });
    const order = await orders.place({ ...placed, payBy }, placing, (correlationId) =>
      OrderExpired.create({ aggregateId: orderId, deliverAt: payBy, correlationId, data: { orderId } }),
    );
    return placedJson(order);
  }

  return ({ request, caller, ...rest }) =>
    oncePerKey({
      ...rest,
      caller,
      payload: request,
      headers: (key) => ({ location: `/orders/${orderIdOf(key)}` }),
      first: (key) => place(key, request, caller),
      earlier: async (key) => {
        const order = await orders.find(orderIdOf(key));
        if (order === undefined) return undefined;
        return { body: placedJson(order), samePayload: order.requestHash === requestHash(request) };
      },
    });
}

/** Returns the order as it was placed, whatever has happened to it since. */
function placedJson(order: Order): string {
  return orderJson({ ...order, payment: 'pending', stock: 'pending' });
}
