import { orderKey } from '../lambdas/example/orders/order.ts';
import { ORDERS_TABLE } from '../lambdas/example/orders/postgres/postgres-orders.ts';
import { nodePostgres } from '../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../lambdas/runtime/postgres/postgres-pool.ts';
import { createPostgresRelay } from '../lambdas/runtime/postgres/postgres-relay.ts';
import { readPostgresSettings } from '../lambdas/runtime/postgres/postgres-settings.ts';
import { OUTBOX } from '../lambdas/runtime/store/postgres/columns.ts';
import { INBOX } from '../lambdas/runtime/store/postgres/message-columns.ts';
import { migratePostgres } from '../lambdas/runtime/store/postgres/migrate.ts';
import { readJsonRows } from '../lambdas/runtime/store/postgres/sql-rows.ts';
import { startPostgres } from '../test/postgres/server/postgres-server.ts';
import { type DemoDatabase, startDemoRelay } from './database.ts';

/** Starts a PostgreSQL with the orders of the demo. */
export async function startDemoPostgres(
  step: (line: string) => void,
  settings: Readonly<Record<string, string>>,
): Promise<DemoDatabase> {
  step('Starting PostgreSQL');
  const server = await startPostgres('demo', settings);
  const pool = postgresPool(readPostgresSettings({ MAILROOM_POSTGRES: server.url }));
  const database = nodePostgres(pool);
  await migratePostgres(database);
  await database.query(ORDERS_TABLE);
  let stopRelay = async () => {};
  return {
    server,
    context: { postgres: server.url },
    startRelay: (outputs) => {
      stopRelay = startDemoRelay(outputs, (deps) => createPostgresRelay({ ...deps, database }));
    },
    items: async () => {
      const { rows } = await database.query(
        'SELECT order_id::text AS id, placed::text AS placed FROM orders',
      );
      const orders = rows.map(({ id, placed }) => ({
        ...orderKey(String(id)),
        ...JSON.parse(String(placed)),
      }));
      const events = await readJsonRows(database, OUTBOX.select);
      const messages = await readJsonRows(database, INBOX.select);
      const stored = [...events.map(OUTBOX.read), ...messages.map((message) => INBOX.read(message)?.row)];
      return [...orders, ...stored.flatMap((row) => (row === undefined ? [] : [{ ...row }]))];
    },
    close: async () => {
      await stopRelay();
      await pool.end();
      await server.close();
    },
  };
}
