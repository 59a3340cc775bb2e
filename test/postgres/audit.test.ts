import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { auditedRows } from '../../lambdas/runtime/postgres/audited-rows.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { postgresPool } from '../../lambdas/runtime/postgres/postgres-pool.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { grantPostgresRole } from '../../lambdas/runtime/store/postgres/migrate.ts';
import {
  type AuditedRig,
  databaseAuditContract,
  scheduledAudit,
} from '../contract/database-audit-contract.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let audited: AuditedRig;

databaseAuditContract('postgres', async () => {
  rig = await startRig('audit');
  await rig.pool.query('CREATE ROLE auditor LOGIN; CREATE ROLE stranger LOGIN');
  await grantPostgresRole(rig.database, { login: 'auditor', role: 'mailroom_auditor' });
  await rig.pool.query('GRANT mailroom_auditor TO stranger');
  audited = auditedRig(rig);
  return audited;
});

function auditedRig({ pool, server, clear, close }: Rig): AuditedRig {
  const run = async (text: string, ...values: unknown[]) => {
    await pool.query(text, values);
  };
  return {
    engine: 'postgres',
    open: ({ port = server.port, user = 'auditor' }) => {
      const settings = { host: '127.0.0.1', port, database: 'postgres', user, ssl: false };
      const opened = postgresPool(settings);
      return { rows: auditedRows(nodePostgres(opened), settings), end: () => opened.end() };
    },
    event: (eventId, envelope) =>
      run(
        `INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, 'orders', 'OrderPlaced', $2)`,
        eventId,
        envelope,
      ),
    published: (eventId, at) =>
      run('INSERT INTO mailroom.published VALUES ($1, to_timestamp($2))', eventId, at / 1_000),
    pending: (eventId, dueAt, isHeld) =>
      run(
        'INSERT INTO mailroom.pending (event_id, due_at, fence) VALUES ($1, to_timestamp($2), CASE WHEN $3 THEN gen_random_uuid() END)',
        eventId,
        dueAt / 1_000,
        isHeld,
      ),
    dead: (eventId, at) =>
      run(
        `INSERT INTO mailroom.dead (event_id, dead_at, attempts, last_error, fingerprint) VALUES ($1, to_timestamp($2), 5, 'Detail is not valid', 'relay')`,
        eventId,
        at / 1_000,
      ),
    processed: (eventId) =>
      run(
        `INSERT INTO mailroom.inbox (consumer, event_id, type, status, processed_at) VALUES ('payments', $1, 'OrderPlaced', 'PROCESSED', now())`,
        eventId,
      ),
    failed: (eventId, claimedAt, retryAt) =>
      run(
        `INSERT INTO mailroom.inbox (consumer, event_id, type, status, fence, attempts, claimed_at, retry_at)
          VALUES ('payments', $1, 'OrderPlaced', 'FAILED', gen_random_uuid(), 1, to_timestamp($2), to_timestamp($3))`,
        eventId,
        claimedAt / 1_000,
        retryAt / 1_000,
      ),
    clear: async () => {
      await clear();
      await pool.query('TRUNCATE mailroom.inbox');
    },
    close,
  };
}

test('the scheduled audit fails for a login that row-level security shows no rows', async () => {
  const { run, gauges } = scheduledAudit(audited, { user: 'stranger' });
  await expect(run()).rejects.toMatchObject({
    code: 'ACCESS_DENIED',
    message: expect.stringContaining('--role auditor'),
  });
  expect(gauges).toEqual({});
});

test('the login of an audit reads what the audit needs, and changes nothing', async () => {
  const pool = new Pool({ host: '127.0.0.1', port: rig.server.port, database: 'postgres', user: 'auditor' });
  await rig.pool.query(
    `INSERT INTO mailroom.event (event_id, source, type, envelope) VALUES ($1, 'orders', 'OrderPlaced', '{}')`,
    [mintEventId(Date.now(), 256)],
  );
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
