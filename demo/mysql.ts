import { createPool } from 'mysql2/promise';
import { ORDERS_TABLE } from '../lambdas/example/orders/mysql/mysql-orders.ts';
import { orderKey } from '../lambdas/example/orders/order.ts';
import { mysql2 } from '../lambdas/runtime/mysql/databases.ts';
import { createMysqlRelay } from '../lambdas/runtime/mysql/mysql-relay.ts';
import { eventIdTime, outboxKeyOf } from '../lambdas/runtime/store/event-id.ts';
import { inboxKey } from '../lambdas/runtime/store/keys.ts';
import { epochMs, idOf, idText } from '../lambdas/runtime/store/mysql/expressions.ts';
import { migrateMysql } from '../lambdas/runtime/store/mysql/migrate.ts';
import { SCHEMA } from '../lambdas/runtime/store/row-schema.ts';
import type { SqlRow } from '../lambdas/runtime/store/sql/database.ts';
import { startMariadb } from '../test/mysql/server/mariadb-server.ts';
import { type DemoDatabase, startDemoRelay } from './database.ts';

/** Starts a MariaDB with the orders of the demo. */
export async function startDemoMysql(
  step: (line: string) => void,
  settings: Readonly<Record<string, string>>,
): Promise<DemoDatabase> {
  step('Starting MariaDB');
  const { port, ...server } = await startMariadb('demo-mysql', settings);
  const address = `mysql://root@127.0.0.1:${port}`;
  const owner = createPool(address);
  await migrateMysql(mysql2(owner));
  await owner.query('CREATE DATABASE orders');
  await owner.end();
  const url = `${address}/orders`;
  const pool = createPool(url);
  const database = mysql2(pool);
  await database.query(ORDERS_TABLE);
  let stopRelay = async () => {};
  return {
    server: { ...server, url },
    context: { mysql: url },
    startRelay: (outputs) => {
      stopRelay = startDemoRelay(outputs, (deps) => createMysqlRelay({ ...deps, database }));
    },
    items: async () => {
      const { rows: orders } = await database.query('SELECT order_id, placed FROM orders');
      const { rows: events } = await database.query(EVENTS);
      const { rows: messages } = await database.query(MESSAGES);
      return [
        ...orders.map(({ order_id, placed }) => ({
          ...orderKey(String(order_id)),
          ...JSON.parse(String(placed)),
        })),
        ...events.map(eventItem),
        ...messages.map(({ consumer, id, ...row }) => ({
          ...inboxKey(String(consumer), String(id)),
          schema: SCHEMA,
          ...row,
        })),
      ];
    },
    close: async () => {
      await stopRelay();
      await pool.end();
      await server.close();
    },
  };
}

const EVENTS = `SELECT ${idText('e.event_id')} AS id, e.source, e.type, e.envelope, q.fence IS NULL AS is_unclaimed,
    ${epochMs('q.due_at')} AS due_at, ${epochMs('p.published_at')} AS published_at, COALESCE(q.attempts, d.attempts, 0) AS attempts,
    CASE WHEN q.event_id IS NOT NULL THEN 'PENDING' WHEN d.event_id IS NOT NULL THEN 'DEAD' WHEN p.event_id IS NOT NULL THEN 'PUBLISHED'
      WHEN c.event_id IS NOT NULL THEN 'CANCELLED' ELSE 'LOST' END AS status,
    ${epochMs('d.dead_at')} AS dead_at, ${epochMs('c.cancelled_at')} AS cancelled_at, d.last_error AS lastError, d.fingerprint
  FROM mailroom.event e LEFT JOIN mailroom.pending q USING (event_id) LEFT JOIN mailroom.dead d USING (event_id)
    LEFT JOIN mailroom.published p USING (event_id) LEFT JOIN mailroom.cancelled c USING (event_id)`;

const MESSAGES = `SELECT CAST(consumer AS CHAR) AS consumer, CAST(event_id AS CHAR) AS id, type, status, attempts, last_error AS lastError
  FROM mailroom.inbox`;

/** A row of an event, as one of the table. */
function eventItem({ id, is_unclaimed, due_at, published_at, dead_at, cancelled_at, ...row }: SqlRow) {
  const eventId = idOf(String(id));
  const isScheduled =
    cancelled_at !== null || (Number(is_unclaimed) === 1 && Number(due_at) === eventIdTime(eventId));
  const [dueAt, publishedAt, deadAt, cancelledAt] = [due_at, published_at, dead_at, cancelled_at].map((at) =>
    at === null ? undefined : Math.floor(Number(at)),
  );
  const item = {
    ...outboxKeyOf(eventId),
    schema: SCHEMA,
    ...row,
    leaseUntil: dueAt ?? deadAt ?? publishedAt ?? 0,
    dueAt: isScheduled ? eventIdTime(eventId) : undefined,
    publishedAt,
    publishedBy: row.status === 'PUBLISHED' ? 'relay' : undefined,
    deadAt,
    cancelledAt,
  };
  return Object.fromEntries(
    Object.entries(item).filter(([, value]) => value !== null && value !== undefined),
  );
}
