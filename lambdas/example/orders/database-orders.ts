import type { Envelope } from '../../runtime/index.ts';
import type { Database, DatabaseOutbox, MysqlHandlers, Sql } from '../../runtime/mysql.ts';
import type { Order, OrderHalves } from './order.ts';
import type { OrderRecords } from './order-records.ts';
import { REPORTS, reported } from './order-status.ts';

/** The statements of the table `orders`. `reports` has the number of the last report of each aggregate. */
export interface OrderStatements {
  /** Parameters: the id and the order. */
  readonly insert: string;
  /** Parameter: the id. */
  readonly find: string;
  /** Parameters: the order, the reports and the id. */
  readonly update: string;
}

/** Dependencies of the orders in a database. */
export interface DatabaseOrdersDeps<Tx> {
  readonly database: Database<Tx>;
  readonly outbox: Pick<DatabaseOutbox<Tx>, 'write' | 'cancel'>;
  readonly statements: OrderStatements;
}

/** The orders in a database, beside its outbox. */
export function databaseOrders<Tx>({ database, outbox, statements }: DatabaseOrdersDeps<Tx>): OrderRecords {
  return {
    find: async (orderId) => (await orderIn(database, statements.find, orderId))?.order,
    place: (placed, placing, expiring) =>
      database.transaction(async (tx) => {
        const [event] = await outbox.write(tx, [placing]);
        const [expiry] = await outbox.write(tx, [expiring((event as Envelope).eventId)]);
        const order = { ...placed, expiryId: expiry?.eventId };
        await database.in(tx).query(statements.insert, [order.orderId, JSON.stringify(order)]);
        return order;
      }),
  };
}

/** The handlers of the consumer `order-status`, whose inbox is in the same database. */
export function databaseReports<Tx>(
  orders: DatabaseOrdersDeps<Tx>,
  { transactional }: Pick<MysqlHandlers<Tx>, 'transactional'>,
) {
  return REPORTS.map(({ definition, halves }) =>
    transactional(definition, async (event, { tx }) => {
      const { orderId } = event.data as { readonly orderId: string };
      const reports = halves(event.data);
      if (reports === undefined) return {};
      return { events: await applyReport(orders, tx, event, orderId, reports) };
    }),
  );
}

/**
 * Applies a report to an order in the transaction of its message. A report whose number is not higher than that of the last one of its
 * aggregate changes nothing.
 *
 * @returns the events to write in the same transaction
 */
async function applyReport<Tx>(
  { database, outbox, statements }: DatabaseOrdersDeps<Tx>,
  tx: Tx,
  { aggregateType, aggregateId, sequence = 0 }: Pick<Envelope, 'aggregateType' | 'aggregateId' | 'sequence'>,
  orderId: string,
  halves: Partial<OrderHalves>,
) {
  const sql = database.in(tx);
  const found = await orderIn(sql, `${statements.find} FOR UPDATE`, orderId);
  if (found === undefined) throw new Error(`Order ${orderId} does not exist; only the API places orders`);
  const { order: before, reports } = found;
  const aggregate = `${aggregateType} ${aggregateId}`;
  if (sequence <= (reports[aggregate] ?? 0)) return [];
  const { after, endsExpiry, events } = reported(before, halves);
  const values = [JSON.stringify(after), JSON.stringify({ ...reports, [aggregate]: sequence }), orderId];
  await sql.query(statements.update, values);
  // It may be too late: then the expiry is published, and payments ignores it.
  if (endsExpiry && before.expiryId !== undefined) await outbox.cancel(tx, before.expiryId);
  return events;
}

async function orderIn(sql: Sql, find: string, orderId: string) {
  const { rows } = await sql.query(find, [orderId]);
  if (rows[0] === undefined) return undefined;
  return {
    order: JSON.parse(String(rows[0].placed)) as Order,
    reports: JSON.parse(String(rows[0].reports)) as Readonly<Record<string, number>>,
  };
}
