import { Pool } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import { readPostgresSettings } from '../../lambdas/runtime/postgres/postgres-settings.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { eventually, PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('roles');
  await rig.pool.query('CREATE ROLE "Orders-1" LOGIN; CREATE ROLE relay LOGIN');
  await grantPostgresRole(rig.database, { login: 'Orders-1', role: 'mailroom_producer', service: 'orders' });
  await grantPostgresRole(rig.database, { login: 'relay', role: 'mailroom_relay' });
  await grantPostgresRole(rig.database, { login: 'relay', role: 'mailroom_relay' });
});
afterAll(() => rig.close());

const urlOf = (user: string) => `postgresql://${user}@127.0.0.1:${rig.server.port}/postgres`;

test('a login gets the timeouts of its role', async () => {
  const pool = new Pool({ connectionString: urlOf('relay') });
  const { rows } = await pool.query(
    "SELECT name, setting FROM pg_settings WHERE name IN ('lock_timeout', 'idle_in_transaction_session_timeout', 'statement_timeout', 'client_connection_check_interval') ORDER BY name",
  );
  await pool.end();
  expect(rows.map(({ setting }) => setting)).toEqual(['5000', '30000', '2000', '25000']);
});

test('the roles of a producer and of a relay allow their work, and a producer cannot read events', async () => {
  const producer = new Pool({ connectionString: urlOf('Orders-1') });
  const relayPool = postgresPool(readPostgresSettings({ MAILROOM_POSTGRES: urlOf('relay') }));
  const telemetry = memoryTelemetry();
  const outbox = createPostgresOutbox({ config: PRODUCER, database: nodePostgres(producer), telemetry });
  await outbox.commit(async () => [1, 2, 3, 4].map((n) => placed(n)));
  await expect(producer.query('SELECT envelope FROM mailroom.event')).rejects.toMatchObject({
    code: '42501',
  });

  const failures = ['MalformedDetail', 'Unknown', 'ThrottlingException'];
  const bus = memoryBus({
    failEntry: ({ detail }) => {
      const code = failures[JSON.parse(detail).data.n - 1];
      return code === undefined ? undefined : { code, message: 'no' };
    },
  });
  const config = relayConfig();
  const relay = createPostgresRelay({ config, database: nodePostgres(relayPool), bus, telemetry });
  const run = relay.run();
  await eventually(async () => {
    const rows = await rig.rows('SELECT fence FROM mailroom.pending');
    return rows.length === 2 && rows.every(({ fence }) => fence === null) ? true : undefined;
  });
  await relay.stop();
  await run;
  expect(telemetry.counted('SweepFailures')).toBe(0);
  expect(await rig.rows('SELECT attempts FROM mailroom.dead')).toEqual([{ attempts: 1 }]);
  expect(await rig.rows('SELECT 1 FROM mailroom.published')).toHaveLength(1);
  const errors = telemetry.lines().filter(({ extra }) => {
    const { error } = Object(extra);
    return error instanceof MailroomError && error.code === '42501';
  });
  expect(errors).toEqual([]);
  await producer.end();
  await relayPool.end();
});
