import type { PoolConnection } from 'mysql2/promise';
import { NOTHING_APPLIED } from '../../../lambdas/runtime/store/last-sequence.ts';
import { mysqlInboxChanges } from '../../../lambdas/runtime/store/mysql/inbox-operator.ts';
import { raiseLast } from '../../../lambdas/runtime/store/mysql/last-sequence.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import type { ExploredStore, StoreSide } from '../../postgres/explorer/explored-store.ts';
import { inboxOn } from '../inbox-rig.ts';
import type { Rig } from '../support/rig.ts';
import { steppedWorker, waitingIn } from './stepped-pool.ts';

/** Settings with which a server answers a COMMIT before it is on the disk: it does not crash. */
export const FAST = { 'innodb-flush-log-at-trx-commit': '0', 'innodb-lock-wait-timeout': '600' };

/** MariaDB. */
export function mysqlStore({ pool, database, rows }: Rig): ExploredStore {
  return {
    clear: async () => {
      for (const table of ['inbox', 'effect', 'last_sequence', 'payment'])
        await pool.query(`DELETE FROM mailroom.${table}`);
    },
    shift: (ms) => shiftUnlocked(database, ms),
    begin: async (key) => {
      await database.transaction((tx) =>
        raiseLast(database.in(tx), { key, sequence: 1, seen: NOTHING_APPLIED }),
      );
    },
    statuses: async () =>
      (await rows('SELECT status FROM mailroom.inbox')).map(({ status }) => String(status)),
    waiting: () => waitingIn(pool),
    plain: sideOf(database),
    worker: (changed, rewrite) => {
      const worker = steppedWorker(pool, changed, rewrite);
      return { ...worker, side: sideOf(worker.database) };
    },
  };
}

/** The times of each table, and its key. */
const TIMES = [
  [
    'inbox',
    ['consumer', 'event_id'],
    ['claimed_at', 'lease_until', 'ends_by', 'retry_at', 'processed_at', 'expires_at'],
  ],
  ['effect', ['consumer', 'event_id', 'name'], ['started_at', 'ends_by', 'ended_at']],
] as const;

/** A row that a transaction of a worker has locked has no lease to pass. */
async function shiftUnlocked(database: Database<PoolConnection>, ms: number): Promise<void> {
  await database.transaction(async (tx) => {
    for (const [table, key, times] of TIMES) {
      const where = key.map((name) => `${name} = ?`).join(' AND ');
      const back = times.map((name) => `${name} = ${name} - INTERVAL ${ms * 1_000} MICROSECOND`).join(', ');
      const [rows] = await tx.query(`SELECT ${key.join(', ')} FROM mailroom.${table} FOR UPDATE SKIP LOCKED`);
      for (const row of rows as Record<string, unknown>[])
        await tx.query(
          `UPDATE mailroom.${table} SET ${back} WHERE ${where}`,
          key.map((name) => row[name]),
        );
    }
  });
}

function sideOf(database: Database<PoolConnection>): StoreSide {
  return {
    sql: database,
    inbox: (clock) => inboxOn(database, clock),
    changes: (clock) => mysqlInboxChanges({ database, clock }),
    pay: async (tx, eventId, note = '') => {
      await (tx as PoolConnection).query('INSERT INTO mailroom.payment (event_id, note) VALUES (?, ?)', [
        eventId,
        note,
      ]);
    },
    notes: async () => {
      const { rows } = await database.query('SELECT note FROM mailroom.payment ORDER BY id');
      return rows.map(({ note }) => String(note));
    },
  };
}
