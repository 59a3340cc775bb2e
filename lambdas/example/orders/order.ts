import { createHash } from 'node:crypto';
import type { Item, Key } from '../../runtime/index.ts';
import type { OrderItem, OrderRequest } from '../events.ts';

/**
 * The order's row: `ORDER#<orderId>` / `ORDER`. Placing the order writes it whole; later each event sets one
 * attribute of its own (`payment` or `stock`), so the events may come in any order.
 */
export interface Order {
  readonly orderId: string;
  readonly customerId: string;
  readonly items: readonly OrderItem[];
  readonly totalCents: number;
  /** Epoch milliseconds. */
  readonly placedAt: number;
  /** SHA-256 of what was asked for; tells a repeated request from another one under the same key. */
  readonly requestHash: string;
  readonly payment: 'pending' | 'captured' | 'declined';
  readonly stock: 'pending' | 'reserved' | 'rejected';
}

/** What `payment` and `stock` come to, see {@link orderStatus}. */
export type OrderStatus = 'placed' | 'paid' | 'reserved' | 'confirmed' | 'rejected';

/** The version of the row's shape. */
const ORDER_SCHEMA = 1;

/** The key of an order's row. */
export function orderKey(orderId: string): Key {
  return { PK: `ORDER#${orderId}`, SK: 'ORDER' };
}

/** A new order: paid and reserved by nobody yet. */
export function newOrder(idempotencyKey: string, request: OrderRequest, placedAt: number): Order {
  return {
    orderId: orderIdOf(idempotencyKey),
    customerId: request.customerId,
    items: request.items,
    totalCents: request.items.reduce((sum, item) => sum + item.quantity * item.unitPrice, 0),
    placedAt,
    requestHash: requestHash(request),
    payment: 'pending',
    stock: 'pending',
  };
}

/** The row as it is stored. */
export function orderRow(order: Order): Item {
  return { ...orderKey(order.orderId), schema: ORDER_SCHEMA, ...order };
}

/** The order in a row that {@link orderRow} made. */
export function orderOfRow(row: Item): Order {
  return row as unknown as Order;
}

/**
 * Derives an order's id from the request's idempotency key, so that a request that is sent again, at any later
 * time, meets the order that the first one placed.
 *
 * @returns a UUID of version 8 (RFC 9562: the bits are the application's own, here of a SHA-256)
 */
export function orderIdOf(idempotencyKey: string): string {
  const bytes = createHash('sha256').update(`order:${idempotencyKey}`).digest().subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

const ORDER_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

/** Whether a text has the form of an order's id. */
export function isOrderId(text: string): boolean {
  return ORDER_ID.test(text);
}

/** The same for two requests if, and only if, they ask for the same. */
export function requestHash({ customerId, items }: OrderRequest): string {
  const asked = [customerId, items.map(({ sku, quantity, unitPrice }) => [sku, quantity, unitPrice])];
  return createHash('sha256').update(JSON.stringify(asked)).digest('hex');
}

/**
 * What the two halves of an order come to. One refusal rejects the order. What the other half has done by then
 * stays done: giving money or stock back would be further events, which this example leaves out.
 */
export function orderStatus({ payment, stock }: Pick<Order, 'payment' | 'stock'>): OrderStatus {
  if (payment === 'declined' || stock === 'rejected') return 'rejected';
  if (payment === 'captured') return stock === 'reserved' ? 'confirmed' : 'paid';
  return stock === 'reserved' ? 'reserved' : 'placed';
}

/**
 * The order as the API shows it, as JSON. Members are named one by one: their order, and so every byte, depends
 * on nothing that DynamoDB may hand back in another order.
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
  });
}
