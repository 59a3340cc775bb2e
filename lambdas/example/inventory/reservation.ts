import type { Item, Key, VersionedWrite } from '../../runtime/index.ts';

/** The quantity that one order has taken from a SKU's stock. */
interface Taken {
  readonly sku: string;
  readonly quantity: number;
}

/**
 * The reservation's row, `RESERVATION#<orderId>` / `RESERVATION`. Two messages change it, in any order: `OrderPlaced` reserves the
 * items, and after `PaymentDeclined`, or another end of the payment, nothing may be reserved for the order. The version of the row
 * numbers its events.
 *
 *     (no row) ─┬─ OrderPlaced ──> reserved ── PaymentDeclined ──> released
 *               │            └───> rejected
 *               └─ PaymentDeclined ──> released (OrderPlaced then reserves nothing)
 */
export type Reservation =
  | { readonly status: 'reserved'; readonly items: readonly Taken[] }
  | { readonly status: 'rejected'; readonly missingSkus: readonly string[] }
  | { readonly status: 'released' };

/** The version of the row's shape. */
const RESERVATION_SCHEMA = 1;

/** Makes the key of a reservation's row. */
export function reservationKey(orderId: string): Key {
  return { PK: `RESERVATION#${orderId}`, SK: 'RESERVATION' };
}

/** Returns the reservation in a row that {@link putReservation} wrote. */
export function reservationOfRow(row: Item | undefined): Reservation | undefined {
  return row as unknown as Reservation | undefined;
}

/**
 * Writes a reservation's row.
 *
 * @param from - the required current status; absent: the row must not exist
 */
export function putReservation(
  orderId: string,
  reservation: Reservation,
  from?: Reservation['status'],
): VersionedWrite {
  const Item = { ...reservationKey(orderId), schema: RESERVATION_SCHEMA, orderId, ...reservation };
  if (from === undefined) return { Put: { Item, ConditionExpression: 'attribute_not_exists(PK)' } };
  return {
    Put: {
      Item,
      ConditionExpression: '#status = :from',
      ExpressionAttributeNames: { '#status': 'status' },
      ExpressionAttributeValues: { ':from': from },
    },
  };
}
