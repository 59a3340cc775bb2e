import { createPool } from 'mysql2/promise';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { createMysqlOutbox } from '../../lambdas/runtime/mysql/mysql-outbox.ts';
import { mysqlPool } from '../../lambdas/runtime/mysql/mysql-pool.ts';
import { createMysqlRelay } from '../../lambdas/runtime/mysql/mysql-relay.ts';
import { readMysqlSettings } from '../../lambdas/runtime/mysql/mysql-settings.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from '../postgres/support/relay-config.ts';
import { eventually, PRODUCER, placed } from '../postgres/support/rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('mysql-login');
});
afterAll(() => rig.close());

/** A pool as functions open it. */
function poolOf(user: string, password: string) {
  const MAILROOM_MYSQL = `mysql://${user}:${encodeURIComponent(password)}@127.0.0.1:${rig.server.port}/mailroom`;
  return mysqlPool(createPool, readMysqlSettings({ MAILROOM_MYSQL }));
}

test('a login with the documented grant writes, publishes and cares for the tables', async () => {
  await rig.pool.query("CREATE USER orders IDENTIFIED BY 'p%/?'");
  await rig.pool.query('GRANT SELECT, INSERT, UPDATE, DELETE ON mailroom.* TO orders');
  const pool = poolOf('orders', 'p%/?');
  const database = mysql2(pool);
  const telemetry = memoryTelemetry();
  const outbox = createMysqlOutbox({ config: PRODUCER, database, telemetry });
  await outbox.commit(async () => [placed(1)]);
  const bus = memoryBus();
  const relay = createMysqlRelay({ config: relayConfig(), database, bus, telemetry });
  const running = relay.run();
  await eventually(async () => bus.published().length === 1 || undefined);
  await relay.stop();
  await running;
  expect(telemetry.lines().filter(({ level }) => level === 'error')).toEqual([]);
  await pool.end();
});

test('a refused login is an error of the server, and names the login', async () => {
  const pool = poolOf('orders', 'wrong');
  await expect(pool.getConnection()).rejects.toMatchObject({ errno: 1045 });
  await pool.end();
});
