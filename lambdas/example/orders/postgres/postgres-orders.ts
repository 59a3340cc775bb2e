import type { Envelope } from '../../../runtime/index.ts';
import type { Database, PostgresOutbox, Sql } from '../../../runtime/postgres.ts';
import type { Order, OrderHalves } from '../order.ts';
import type { OrderRecords } from '../order-records.ts';
import { reported } from '../order-status.ts';

/** The table of the orders, beside the schema `mailroom` in the same database. `reports` has the number of the last report of each aggregate. */
export const ORDERS_TABLE = `CREATE TABLE IF NOT EXISTS orders (
  order_id uuid PRIMARY KEY,
  placed jsonb NOT NULL,
  reports jsonb NOT NULL DEFAULT '{}'
)`;

/** Dependencies of the orders in PostgreSQL. */
interface PostgresOrdersDeps<Tx> {
  readonly database: Database<Tx>;
  readonly outbox: PostgresOutbox<Tx>;
}

/** The orders in PostgreSQL. */
export function postgresOrders<Tx>({ database, outbox }: PostgresOrdersDeps<Tx>): OrderRecords {
  return {
    find: async (orderId) => (await orderIn(database, orderId))?.order,
    place: (placed, placing, expiring) =>
      database.transaction(async (tx) => {
        const [event] = await outbox.write(tx, [placing]);
        const [expiry] = await outbox.write(tx, [expiring((event as Envelope).eventId)]);
        const order = { ...placed, expiryId: expiry?.eventId };
        const values = [order.orderId, JSON.stringify(order)];
        await database
          .in(tx)
          .query('INSERT INTO orders (order_id, placed) VALUES ($1::uuid, $2::jsonb)', values);
        return order;
      }),
  };
}

/**
 * Applies a report to an order in the transaction of its message. A report whose number is not higher than that of the last one of its
 * aggregate changes nothing.
 *
 * @returns the events to write in the same transaction
 */
export async function applyReport<Tx>(
  { database, outbox }: PostgresOrdersDeps<Tx>,
  tx: Tx,
  { aggregateType, aggregateId, sequence = 0 }: Pick<Envelope, 'aggregateType' | 'aggregateId' | 'sequence'>,
  orderId: string,
  halves: Partial<OrderHalves>,
) {
  const sql = database.in(tx);
  const found = await orderIn(sql, orderId, 'FOR UPDATE');
  if (found === undefined) throw new Error(`Order ${orderId} does not exist; only the API places orders`);
  const { order: before, reports } = found;
  const aggregate = `${aggregateType} ${aggregateId}`;
  if (sequence <= (reports[aggregate] ?? 0)) return [];
  const { after, endsExpiry, events } = reported(before, halves);
  const values = [orderId, JSON.stringify(after), JSON.stringify({ ...reports, [aggregate]: sequence })];
  await sql.query(
    'UPDATE orders SET placed = $2::jsonb, reports = $3::jsonb WHERE order_id = $1::uuid',
    values,
  );
  // It may be too late: then the expiry is published, and payments ignores it.
  if (endsExpiry && before.expiryId !== undefined) await outbox.cancel(tx, before.expiryId);
  return events;
}

async function orderIn(sql: Sql, orderId: string, lock = '') {
  const text = `SELECT placed::text AS placed, reports::text AS reports FROM orders WHERE order_id = $1::uuid ${lock}`;
  const { rows } = await sql.query(text, [orderId]);
  if (rows[0] === undefined) return undefined;
  return {
    order: JSON.parse(String(rows[0].placed)) as Order,
    reports: JSON.parse(String(rows[0].reports)) as Readonly<Record<string, number>>,
  };
}
