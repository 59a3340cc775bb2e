import { type DatabaseHandlers, databaseHandlers } from '../database/database-handlers.ts';
import type { Database } from '../store/sql/database.ts';

/**
 * Creates the functions that create handlers of a database: `tx` has the type of its driver.
 *
 * @example
 * ```ts
 * const { leased, transactional } = mysqlHandlers(database);
 * const reserve = transactional(OrderPlaced, async ({ data }, { tx }) => {
 *   await tx.execute('UPDATE stock SET available = available - ? WHERE sku = ?', [data.quantity, data.sku]);
 *   return { events: [StockReserved.create({ aggregateId: data.sku, data })] };
 * });
 * ```
 */
export function mysqlHandlers<Tx>(_database: Database<Tx>): DatabaseHandlers<Tx> {
  return databaseHandlers();
}
