/** The number of SKUs in stock. */
export const SKUS = 5;

/** Suffix of the SKU that is never in stock. */
const SOLD_OUT = 'sold-out';

/** Returns true for an order of sold-out goods, which must end cancelled. */
export function isSoldOut({ items }: { readonly items: readonly { readonly sku: string }[] }): boolean {
  return items.some(({ sku }) => sku.endsWith(SOLD_OUT));
}

/** The order whose customer the bank does not know, counted from 0. */
const UNKNOWN_CUSTOMER = 1;

/** Returns true for the order of a customer whom the bank does not know: its payment must end rejected. */
export function isUnchargeable({ customerId }: { readonly customerId: string }): boolean {
  return customerId.endsWith('-unknown');
}

/** The order that is not paid in time, counted from 0. */
const LATE_CUSTOMER = 2;

/** The time to pay of that order, seconds. All others have the default, so that a busy machine does not let them expire. */
const LATE_PAY_WITHIN_S = 5;

/** Returns true for an order whose customer never approves the charge: it must expire. */
export function isLate({ customerId }: { readonly customerId: string }): boolean {
  return customerId.endsWith('-late');
}

/** The orders of a run that do not end confirmed. */
export interface PlannedOrders {
  /** One in this many orders, starting with the first, is for sold-out goods. @default none */
  readonly soldOutEvery?: number | undefined;
  /** The second order is of a customer whom the bank does not know. @default false */
  readonly withUnknownCustomer?: boolean | undefined;
  /** The third order has five seconds to be paid, and its customer never approves the charge. @default false */
  readonly withLateCustomer?: boolean | undefined;
}

/** The parts in which orders differ: the ends of the SKU and of the customer's id, and the time to pay. */
export interface PlannedOrder {
  readonly sku: string;
  readonly customer: string;
  /** @default as long as the API allows */
  readonly payWithinSeconds?: number | undefined;
}

/** Plans an order. @param n - its number, from 0 */
export function plannedOrder(
  n: number,
  { soldOutEvery, withUnknownCustomer, withLateCustomer }: PlannedOrders,
): PlannedOrder {
  const sku = soldOutEvery !== undefined && n % soldOutEvery === 0 ? SOLD_OUT : `sku-${n % SKUS}`;
  if (withUnknownCustomer && n === UNKNOWN_CUSTOMER) return { sku, customer: 'unknown' };
  if (withLateCustomer && n === LATE_CUSTOMER)
    return { sku, customer: 'late', payWithinSeconds: LATE_PAY_WITHIN_S };
  return { sku, customer: String(n) };
}
