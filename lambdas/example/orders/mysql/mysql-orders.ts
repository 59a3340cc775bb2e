import type { OrderStatements } from '../database-orders.ts';

/** The table of the orders, in a database beside `mailroom`. */
export const ORDERS_TABLE = `CREATE TABLE IF NOT EXISTS orders (
  order_id CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
  placed MEDIUMTEXT NOT NULL,
  reports MEDIUMTEXT NOT NULL
) ENGINE=InnoDB DEFAULT CHARACTER SET utf8mb4`;

/** Its statements. */
export const MYSQL_ORDERS: OrderStatements = {
  insert: "INSERT INTO orders (order_id, placed, reports) VALUES (?, ?, '{}')",
  find: 'SELECT placed, reports FROM orders WHERE order_id = ?',
  update: 'UPDATE orders SET placed = ?, reports = ? WHERE order_id = ?',
};
