import type { OrderStatements } from '../database-orders.ts';

/** The table of the orders, beside the schema `mailroom` in the same database. */
export const ORDERS_TABLE = `CREATE TABLE IF NOT EXISTS orders (
  order_id uuid PRIMARY KEY,
  placed jsonb NOT NULL,
  reports jsonb NOT NULL DEFAULT '{}'
)`;

/** Its statements. */
export const POSTGRES_ORDERS: OrderStatements = {
  insert: 'INSERT INTO orders (order_id, placed) VALUES ($1::uuid, $2::jsonb)',
  find: 'SELECT placed::text AS placed, reports::text AS reports FROM orders WHERE order_id = $1::uuid',
  update: 'UPDATE orders SET placed = $1::jsonb, reports = $2::jsonb WHERE order_id = $3::uuid',
};
