import { type Commit, type Handler, nextVersion, type Table, transactional } from '../../runtime/index.ts';
import { PaymentDeclined, StockReleased, type UNPAID } from '../events.ts';
import { putReservation, reservationKey, reservationOfRow } from './reservation.ts';
import { returnStock } from './stock.ts';

/**
 * Compensates for the reservation of an order that is not paid: the bank declined it, it expired, or an operator ended its payment.
 * Its items return to stock. If the order is not reserved yet, its row records the release, and then nothing is reserved for it.
 *
 * The condition on the row decides which of the two messages is first; the handler of the other one runs again and reads the row.
 */
export function releaseStock(
  { table }: { readonly table: Table },
  unpaid: (typeof UNPAID)[number] = PaymentDeclined,
): Handler {
  return transactional(unpaid, ({ data }) => released(table, data.orderId));
}

async function released(table: Table, orderId: string): Promise<Commit> {
  const row = await table.get(reservationKey(orderId), { consistent: true });
  const reservation = reservationOfRow(row);
  // Rejected: nothing was reserved.
  if (reservation !== undefined && reservation.status !== 'reserved') return {};
  const put = putReservation(orderId, { status: 'released' }, reservation?.status);
  const { write, version: sequence } = nextVersion(put, { row });
  const items = reservation?.items ?? [];
  return {
    writes: [...items.map(({ sku, quantity }) => returnStock(sku, quantity)), write],
    events: [StockReleased.create({ aggregateId: orderId, sequence, data: { orderId } })],
  };
}
