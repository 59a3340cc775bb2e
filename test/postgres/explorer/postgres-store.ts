import type { Pool } from 'pg';
import { nodePostgres, type PgClient, type PgPool } from '../../../lambdas/runtime/postgres/databases.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { postgresInbox } from '../../../lambdas/runtime/store/postgres/inbox.ts';
import { postgresInboxChanges } from '../../../lambdas/runtime/store/postgres/inbox-operator.ts';
import { LEASE_MS, shift, testOutbox } from '../inbox-rig.ts';
import type { ExploredStore, StoreSide } from './explored-store.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

/** Faster than a TRUNCATE of almost empty tables, after which each connection also reads the catalog again. */
const CLEARED = `WITH i AS (DELETE FROM mailroom.inbox), e AS (DELETE FROM mailroom.effect), p AS (DELETE FROM payment)
  DELETE FROM mailroom.last_sequence`;

/** PostgreSQL. */
export function postgresStore(pool: Pool): ExploredStore {
  const database = nodePostgres(pool);
  return {
    clear: async () => {
      await pool.query(CLEARED);
    },
    shift: (ms) => shift(database, ms),
    begin: async (key) => {
      const place = key.slice('LAST#worker#'.length);
      await pool.query(
        "INSERT INTO mailroom.last_sequence (consumer, place, last) VALUES ('worker', $1, 1)",
        [place],
      );
    },
    statuses: async () =>
      (await pool.query('SELECT status FROM mailroom.inbox')).rows.map(({ status }) => status),
    waiting: () => waitingIn(pool),
    plain: sideOf(pool),
    worker: (changed, rewrite) => {
      const worker = steppedWorker(pool, changed, rewrite);
      return { ...worker, side: sideOf(worker.pool) };
    },
  };
}

function sideOf(pool: PgPool): StoreSide {
  const database = nodePostgres(pool);
  return {
    sql: database,
    inbox: (clock) => {
      const settings = { consumer: 'worker', leaseMs: LEASE_MS, inboxRetentionDays: 35, clock };
      return postgresInbox({
        settings: { ...settings, random: systemRandomBytes },
        database,
        outbox: testOutbox,
      });
    },
    changes: (clock) => postgresInboxChanges({ database, whole: database, clock }),
    pay: async (tx, eventId, note) => {
      await (tx as PgClient).query('INSERT INTO payment (event_id, note) VALUES ($1, $2)', [eventId, note]);
    },
    notes: async () =>
      (await database.query('SELECT note FROM payment ORDER BY id')).rows.map(({ note }) => String(note)),
  };
}
