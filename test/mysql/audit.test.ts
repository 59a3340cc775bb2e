import { createPool } from 'mysql2/promise';
import { expect, test } from 'vitest';
import { auditedRows } from '../../lambdas/runtime/mysql/audited-rows.ts';
import { mysql2 } from '../../lambdas/runtime/mysql/databases.ts';
import { mysqlPool } from '../../lambdas/runtime/mysql/mysql-pool.ts';
import {
  ID,
  idParameter,
  KEY,
  NOW,
  TIME,
  textParameter,
} from '../../lambdas/runtime/store/mysql/expressions.ts';
import {
  type AuditedRig,
  databaseAuditContract,
  scheduledAudit,
} from '../contract/database-audit-contract.ts';
import { type Rig, startRig } from './support/rig.ts';

let rig: Rig;
let audited: AuditedRig;

databaseAuditContract('mysql', async () => {
  rig = await startRig('mysql-audit');
  await rig.pool.query("CREATE USER 'auditor'@'%', 'stranger'@'%'");
  await rig.pool.query(AUDIT_GRANT);
  audited = auditedRig(rig);
  return audited;
});

/** The rights of an audit, as docs/mysql.md has them. */
const AUDIT_GRANT = "GRANT SELECT ON mailroom.* TO 'auditor'@'%'";

function auditedRig({ rows, server, clear, close }: Rig): AuditedRig {
  const run = async (text: string, ...values: unknown[]) => {
    await rows(text, ...values);
  };
  return {
    engine: 'mysql',
    open: ({ port = server.port, user = 'auditor' }) => {
      const settings = { host: '127.0.0.1', port, database: 'mailroom', user, ssl: false };
      const pool = mysqlPool(createPool, settings);
      // Connections to a server that is gone cannot be closed.
      return { rows: auditedRows(mysql2(pool), settings), end: () => pool.end().catch(() => {}) };
    },
    event: (eventId, envelope) =>
      run(
        `INSERT INTO mailroom.event (event_id, source, type, aggregate_type, aggregate_id, envelope) VALUES (${ID}, 'orders', 'OrderPlaced', 'Order', '1', ?)`,
        idParameter(eventId),
        envelope,
      ),
    published: (eventId, at) =>
      run(
        `INSERT INTO mailroom.published (event_id, published_at) VALUES (${ID}, ${TIME})`,
        idParameter(eventId),
        at,
      ),
    pending: (eventId, dueAt, isHeld) =>
      run(
        `INSERT INTO mailroom.pending (event_id, due_at, fence) VALUES (${ID}, ${TIME}, IF(?, UNHEX(REPEAT('ab', 16)), NULL))`,
        idParameter(eventId),
        dueAt,
        isHeld,
      ),
    dead: (eventId, at) =>
      run(
        `INSERT INTO mailroom.dead (event_id, dead_at, attempts, last_error, fingerprint) VALUES (${ID}, ${TIME}, 5, 'Detail is not valid', 'relay')`,
        idParameter(eventId),
        at,
      ),
    processed: (eventId) =>
      run(
        `INSERT INTO mailroom.inbox SET consumer = 'payments', event_id = ${KEY}, type = 'OrderPlaced', status = 'PROCESSED', processed_at = ${NOW}, changed_at = ${NOW}`,
        textParameter(eventId),
      ),
    failed: (eventId, claimedAt, retryAt) =>
      run(
        `INSERT INTO mailroom.inbox SET consumer = 'payments', event_id = ${KEY}, type = 'OrderPlaced', status = 'FAILED', fence = 'f', attempts = 1, changed_at = ${NOW}, claimed_at = ${TIME}, retry_at = ${TIME}`,
        textParameter(eventId),
        claimedAt,
        retryAt,
      ),
    clear,
    close,
  };
}

test('the scheduled audit fails on a replica, and for a login without rights', async () => {
  const without = scheduledAudit(audited, { user: 'stranger' });
  await expect(without.run()).rejects.toMatchObject({ code: 'ER_DBACCESS_DENIED_ERROR' });
  await rig.rows('SET GLOBAL read_only = 1');
  const replica = scheduledAudit(audited);
  try {
    await expect(replica.run()).rejects.toMatchObject({ code: 'BAD_DATABASE' });
  } finally {
    await rig.rows('SET GLOBAL read_only = 0');
  }
  expect([without.gauges, replica.gauges]).toEqual([{}, {}]);
});

test('the login of an audit changes nothing', async () => {
  const pool = rig.poolOf({ user: 'auditor' });
  try {
    for (const statement of ['DELETE FROM mailroom.event', 'UPDATE mailroom.inbox SET attempts = 0'])
      await expect(pool.query(statement)).rejects.toMatchObject({ code: 'ER_TABLEACCESS_DENIED_ERROR' });
  } finally {
    await pool.end();
  }
});
