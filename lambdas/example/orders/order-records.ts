import {
  type EventDraft,
  entryEventId,
  type Outbox,
  type OutboxEntry,
  type Table,
} from '../../runtime/index.ts';
import { type Order, orderKey, orderOfRow, orderRow } from './order.ts';

/** The place of the orders. */
export interface OrderRecords {
  /** Finds an order of any caller. */
  find(orderId: string): Promise<Order | undefined>;
  /**
   * Commits a new order with both of its events.
   *
   * @param expiring - makes the scheduled event, whose correlation id is that of the first
   * @returns the order with the id of the scheduled event
   * @throws if the order exists
   */
  place(order: Order, placing: EventDraft, expiring: (correlationId: string) => EventDraft): Promise<Order>;
}

/** The orders in the Mailroom table. */
export function tableOrders({
  outbox,
  table,
}: {
  readonly outbox: Outbox;
  readonly table: Table;
}): OrderRecords {
  const entryOf = async (event: EventDraft): Promise<OutboxEntry> => {
    const [entry] = await outbox.entries([event]);
    return entry as OutboxEntry;
  };
  return {
    find: async (orderId) => {
      const row = await table.get(orderKey(orderId), { consistent: true });
      return row && orderOfRow(row);
    },
    place: async (placed, placing, expiring) => {
      const entry = await entryOf(placing);
      const expiry = await entryOf(expiring(entryEventId(entry)));
      const order = { ...placed, expiryId: entryEventId(expiry) };
      const put = { Put: { Item: orderRow(order), ConditionExpression: 'attribute_not_exists(PK)' } };
      await outbox.commit({ writes: [put, entry, expiry] });
      return order;
    },
  };
}
