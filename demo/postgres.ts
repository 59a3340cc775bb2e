import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { orderKey } from '../lambdas/example/orders/order.ts';
import { ORDERS_TABLE } from '../lambdas/example/orders/postgres/postgres-orders.ts';
import { busClientSettings } from '../lambdas/runtime/base/client-settings.ts';
import { eventBridgeBus } from '../lambdas/runtime/bus/eventbridge-bus.ts';
import { nodePostgres } from '../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../lambdas/runtime/postgres/postgres-pool.ts';
import { createPostgresRelay } from '../lambdas/runtime/postgres/postgres-relay.ts';
import { readPostgresSettings } from '../lambdas/runtime/postgres/postgres-settings.ts';
import { OUTBOX } from '../lambdas/runtime/store/postgres/columns.ts';
import { INBOX } from '../lambdas/runtime/store/postgres/message-columns.ts';
import { migratePostgres } from '../lambdas/runtime/store/postgres/migrate.ts';
import { readJsonRows } from '../lambdas/runtime/store/postgres/sql-rows.ts';
import type { Outputs } from '../localstack/cdk-process.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import { type PostgresServer, startPostgres } from '../test/postgres/server/postgres-server.ts';
import { memoryTelemetry } from '../testing/memory-telemetry.ts';
import { required } from './readings.ts';

/** A started PostgreSQL with the orders of the demo. */
export interface DemoPostgres {
  readonly server: PostgresServer;
  /** The context values with which the order system has its orders there. */
  readonly context: Readonly<Record<string, string>>;
  /** Starts the relay, as a process does in a container: it publishes to the bus of a deployment. */
  readonly startRelay: (outputs: Outputs) => void;
  /** Its orders, events and inbox rows, as items of a table. */
  readonly items: () => Promise<Record<string, unknown>[]>;
  /** Stops the relay and the server, and removes its data. */
  readonly close: () => Promise<void>;
}

const PUBLISH_TIMEOUT_MS = 10_000;

/** Starts a PostgreSQL on the loopback address. It ends with this process, however that ends. */
export async function startDemoPostgres({ step }: Pick<StepPrinter, 'step'>): Promise<DemoPostgres> {
  step('Starting PostgreSQL');
  const server = await startPostgres('demo');
  const pool = postgresPool(readPostgresSettings({ MAILROOM_POSTGRES: server.url }));
  const database = nodePostgres(pool);
  await migratePostgres(database);
  await database.query(ORDERS_TABLE);
  let stopRelay = async () => {};
  return {
    server,
    context: { postgres: server.url },
    startRelay: (outputs) => {
      const busName = required(outputs, 'EventBusName');
      const relay = createPostgresRelay({
        config: {
          tableName: 'mailroom',
          busName,
          claimLeaseMs: 30_000,
          publishTimeoutMs: PUBLISH_TIMEOUT_MS,
          maxAttempts: 20,
          publishedRetentionDays: 7,
          sources: ['orders'],
          pollMs: 200,
        },
        database,
        bus: eventBridgeBus({
          client: new EventBridgeClient(busClientSettings(PUBLISH_TIMEOUT_MS)),
          busName,
        }),
        telemetry: memoryTelemetry(),
      });
      void relay.run();
      stopRelay = relay.stop;
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
