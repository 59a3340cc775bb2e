import { createHash } from 'node:crypto';
import type { Item, Key } from '../../runtime/index.ts';
import type { OrderItem, OrderRequest } from '../events.ts';

/**
 * The order's row: `ORDER#<orderId>` / `ORDER`. Placing the order writes the whole row; afterwards, each event sets one attribute,
 * `payment` or `stock`. The consumer applies only the latest of each, so the events may arrive in any order.
 */
export interface Order {
  readonly orderId: string;
  readonly customerId: string;
  /** The caller who placed it, and the only one who may read it; absent if the API requires no identity. */
  readonly placedBy?: string;
  readonly items: readonly OrderItem[];
  readonly totalCents: number;
  /** Epoch milliseconds. */
  readonly placedAt: number;
  /** The time by which it must be paid, epoch milliseconds. Absent, like `expiryId`, in rows of earlier versions: those never expire. */
  readonly payBy?: number | undefined;
  /** The id of the event `OrderExpired`, scheduled for `payBy`. */
  readonly expiryId?: string | undefined;
  /** SHA-256 of the request's content; distinguishes a repeated request from another one with the same key. */
  readonly requestHash: string;
  readonly payment: 'pending' | 'captured' | 'declined' | 'refunded' | 'cancelled' | 'rejected';
  readonly stock: 'pending' | 'reserved' | 'rejected' | 'released';
  /** True if the payment ended because the order was not paid in time. @default false */
  readonly expired?: boolean | undefined;
}

/** The reports of other services on an order so far. */
export type OrderHalves = Pick<Order, 'payment' | 'stock' | 'expired'>;

/** The combination of `payment` and `stock`, see {@link orderStatus}. */
export type OrderStatus = 'placed' | 'paid' | 'reserved' | 'confirmed' | 'cancelling' | 'cancelled';

/** The version of the row's shape. */
const ORDER_SCHEMA = 1;

/** Makes the key of an order's row. */
export function orderKey(orderId: string): Key {
  return { PK: `ORDER#${orderId}`, SK: 'ORDER' };
}

/** Makes a new order, not yet paid or reserved. */
export function newOrder(
  idempotencyKey: string,
  request: OrderRequest,
  placedAt: number,
  placedBy?: string,
): Order {
  return {
    orderId: orderIdOf(idempotencyKey),
    customerId: request.customerId,
    ...(placedBy !== undefined && { placedBy }),
    items: request.items,
    totalCents: request.items.reduce((sum, item) => sum + item.quantity * item.unitPrice, 0),
    placedAt,
    requestHash: requestHash(request),
    payment: 'pending',
    stock: 'pending',
  };
}

/** Makes the row in which an order is stored. */
export function orderRow(order: Order): Item {
  return { ...orderKey(order.orderId), schema: ORDER_SCHEMA, ...order };
}

/** Returns the order in a row that {@link orderRow} made. */
export function orderOfRow(row: Item): Order {
  return row as unknown as Order;
}

/**
 * Derives an order's id from the request's idempotency key, so that a repeated request, however late, finds the order that the
 * first one placed.
 *
 * @returns a UUID of version 8 (RFC 9562: the bits are chosen by the application, here from a SHA-256)
 */
export function orderIdOf(idempotencyKey: string): string {
  const bytes = createHash('sha256').update(`order:${idempotencyKey}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const ORDER_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Returns true if a text has the form of an order's id. */
export function isOrderId(text: string): boolean {
  return ORDER_ID.test(text);
}

/** Hashes a request's content: equal if and only if two requests have the same content. */
export function requestHash({ customerId, items, payWithinSeconds }: OrderRequest): string {
  const lines = items.map(({ sku, quantity, unitPrice }) => [sku, quantity, unitPrice]);
  const asked = [customerId, lines, ...(payWithinSeconds === undefined ? [] : [payWithinSeconds])];
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex');
}

/**
 * Combines the two halves of an order. One refusal ends the order: it is `cancelling` while the other half still has to be
 * refunded or released, and `cancelled` once no money is kept and no stock is reserved. `confirmed` and `cancelled` are final.
 */
export function orderStatus({ payment, stock }: OrderHalves): OrderStatus {
  const noMoney = payment !== 'pending' && payment !== 'captured';
  const noStock = stock !== 'pending' && stock !== 'reserved';
  if (noMoney && noStock) return 'cancelled';
  if (noMoney || noStock) return 'cancelling';
  if (payment === 'captured') return stock === 'reserved' ? 'confirmed' : 'paid';
  return stock === 'reserved' ? 'reserved' : 'placed';
}

/** Returns true if an order is final. */
export function isSettled(order: OrderHalves): boolean {
  return ['confirmed', 'cancelled'].includes(orderStatus(order));
}

/**
 * Formats an order as JSON for the API. Properties are listed one by one, so that every byte is independent of the order in which
 * DynamoDB returns attributes.
 */
export function orderJson(order: Order): string {
  return JSON.stringify({
    orderId: order.orderId,
    customerId: order.customerId,
    items: order.items.map(({ sku, quantity, unitPrice }) => ({ sku, quantity, unitPrice })),
    totalCents: order.totalCents,
    status: orderStatus(order),
    payment: order.payment,
    stock: order.stock,
    placedAt: order.placedAt,
    payBy: order.payBy,
  });
}
