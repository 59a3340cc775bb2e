import { type DatabaseHandlers, databaseHandlers } from '../database/database-handlers.ts';
import type { Database } from '../store/sql/database.ts';

/**
 * Creates the functions that create handlers of a database: `tx` has the type of its driver.
 *
 * @example
 * ```ts
 * const { leased, transactional } = postgresHandlers(database);
 * const reserve = transactional(OrderPlaced, async ({ data }, { tx }) => {
 *   await tx.query('UPDATE stock SET available = available - $2 WHERE sku = $1', [data.sku, data.quantity]);
 *   return { events: [StockReserved.create({ aggregateId: data.sku, data })] };
 * });
 * ```
 */
export function postgresHandlers<Tx>(_database: Database<Tx>): DatabaseHandlers<Tx> {
  return databaseHandlers();
}
