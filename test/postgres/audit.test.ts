import { createServer } from 'node:net';
import { Pool } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { HOUR_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import { createAuditHandler } from '../../lambdas/runtime/operations/audit/audit-handler.ts';
import { dynamoInboxRows } from '../../lambdas/runtime/operations/inbox-rows.ts';
import { combinedMailroomRows } from '../../lambdas/runtime/operations/mailroom-rows.ts';
import { dynamoOutboxRows } from '../../lambdas/runtime/operations/outbox-rows.ts';
import { auditedRows } from '../../lambdas/runtime/postgres/audited-rows.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { auditRig, consumerEntry } from '../unit/runtime/operations/audit/audit-rig.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('audit');
  await rig.pool.query('CREATE ROLE auditor LOGIN; CREATE ROLE stranger LOGIN');
  await grantPostgresRole(rig.database, { login: 'auditor', role: 'mailroom_auditor' });
  await rig.pool.query('GRANT mailroom_auditor TO stranger');
});
beforeEach(async () => {
  await rig.clear();
  await rig.pool.query('TRUNCATE mailroom.inbox');
});
afterAll(() => rig.close());

/** The function of a Mailroom with the inbox of payments in PostgreSQL and that of inventory in DynamoDB. The time is noon. */
function scheduled({ user = 'auditor', port = rig.server.port } = {}) {
  const made = auditRig([consumerEntry('payments', { inbox: 'postgres' }), consumerEntry('inventory')]);
  const { table } = made;
  const settings = { host: '127.0.0.1', port, database: 'postgres', user, ssl: false };
  const pool = postgresPool(settings);
  const telemetry = memoryTelemetry();
  const gauges: Record<string, number> = {};
  telemetry.gauge = (name, value) => {
    gauges[name] = value;
  };
  const handler = createAuditHandler({
    ...made.deps,
    config: { tableName: table.name, sinceMs: HOUR_MS, everyMs: 15 * MINUTE_MS },
    stored: combinedMailroomRows(auditedRows(nodePostgres(pool), settings), {
      outbox: dynamoOutboxRows(table),
      inbox: dynamoInboxRows(table),
    }),
    readsDatabase: 'postgres',
    directory: async () => made.directory,
    telemetry,
    deliveryTelemetry: () => ({ gauge: () => {}, duration: () => {}, flush: () => {} }),
  });
  const run = async () => {
    try {
      return await handler({}, lambdaContext());
    } finally {
      await pool.end();
    }
  };
  return { ...made, run, gauges, telemetry };
}

/** An event that a service with PostgreSQL has published. */
async function published(at: number): Promise<string> {
  const eventId = mintEventId(at, 256);
  const envelope = {
    eventId,
    type: 'OrderPlaced',
    version: 1,
    occurredAt: at,
    correlationId: eventId,
    data: {},
  };
  await rig.pool.query(
    'INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, $2, $3, $4)',
    [
      eventId,
      'orders',
      'OrderPlaced',
      JSON.stringify({ ...envelope, aggregateType: 'Order', aggregateId: eventId }),
    ],
  );
  await rig.pool.query('INSERT INTO mailroom.published VALUES ($1, to_timestamp($2))', [eventId, at / 1_000]);
  return eventId;
}

const processedInPostgres = (eventId: string) =>
  rig.pool.query(
    `INSERT INTO mailroom.inbox (consumer, event_id, type, status, processed_at) VALUES ('payments', $1, 'OrderPlaced', 'PROCESSED', now())`,
    [eventId],
  );

test('the scheduled audit accounts for the events of both stores at the consumers of both', async () => {
  const { run, gauges, clock, event, inbox } = scheduled();
  const inTable = await event(20 * MINUTE_MS, {}, { aggregateId: 'order-2' });
  for (const eventId of [await published(clock.now() - 20 * MINUTE_MS), inTable.eventId]) {
    await processedInPostgres(eventId);
    await inbox('inventory', eventId);
  }
  expect(await run()).toMatchObject({
    events: 2,
    missing: 0,
    incomplete: 0,
    consumers: { payments: { expected: 2, processed: 2 }, inventory: { expected: 2, processed: 2 } },
  });
  expect(gauges).toEqual({ EventsMissing: 0, EventsDuplicated: 0, RowsUnreadable: 0 });
});

test('the scheduled audit finds an event of either store that a consumer with an inbox in PostgreSQL never received', async () => {
  const { run, gauges, clock, event, inbox, telemetry } = scheduled();
  const lost = [
    await published(clock.now() - 20 * MINUTE_MS),
    (await event(25 * MINUTE_MS, {}, { aggregateId: 'order-2' })).eventId,
  ];
  for (const eventId of lost) await inbox('inventory', eventId);
  expect(await run()).toMatchObject({ missing: 2, consumers: { payments: { missing: 2 } } });
  expect(gauges.EventsMissing).toBe(2);
  const warned = JSON.stringify(telemetry.lines());
  for (const eventId of lost) expect(warned).toContain(eventId);
});

test('the scheduled audit fails, and reports nothing, if the database does not respond', async () => {
  const silent = createServer((socket) => socket.destroy());
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  const { port } = Object(silent.address());
  const closing = scheduled({ port });
  await expect(closing.run()).rejects.toMatchObject({
    code: 'UNREACHABLE',
    message: expect.stringContaining(`PostgreSQL at 127.0.0.1:${port} does not respond`),
  });
  await new Promise((resolve) => silent.close(resolve));
  const refusing = scheduled({ port });
  await expect(refusing.run()).rejects.toMatchObject({ code: 'UNREACHABLE' });
  expect([closing.gauges, refusing.gauges]).toEqual([{}, {}]);
});

test('the scheduled audit fails for a login that row-level security shows no rows', async () => {
  const { run, gauges } = scheduled({ user: 'stranger' });
  await expect(run()).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining('--role auditor'),
  });
  expect(gauges).toEqual({});
});

test('the login of an audit reads what the audit needs, and changes nothing', async () => {
  const pool = new Pool({ host: '127.0.0.1', port: rig.server.port, database: 'postgres', user: 'auditor' });
  await published(Date.now());
  const tables = [
    'event',
    'pending',
    'published',
    'dead',
    'discarded',
    'cancelled',
    'inbox',
    'effect',
    'inbox_retention',
  ];
  for (const table of tables) await pool.query(`SELECT FROM mailroom.${table}`);
  expect((await pool.query('SELECT FROM mailroom.event')).rowCount).toBe(1);
  for (const table of [...tables, 'commit', 'operation', 'login'])
    for (const statement of [`DELETE FROM mailroom.${table}`, `INSERT INTO mailroom.${table} DEFAULT VALUES`])
      await expect(pool.query(statement)).rejects.toMatchObject({ code: '42501' });
  await expect(pool.query(`SELECT mailroom.requeue(NULL, 'x')`)).rejects.toMatchObject({ code: '42501' });
  for (const table of ['commit', 'operation'])
    await expect(pool.query(`SELECT FROM mailroom.${table}`)).rejects.toMatchObject({ code: '42501' });
  await pool.end();
});
