import type { PoolConnection } from 'mysql2/promise';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { Inbox } from '../../lambdas/runtime/consume/inbox-port.ts';
import { mintEventId, systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { ID, idParameter, TEXT, textParameter } from '../../lambdas/runtime/store/mysql/expressions.ts';
import { mysqlInbox } from '../../lambdas/runtime/store/mysql/inbox.ts';
import { mysqlInboxChanges } from '../../lambdas/runtime/store/mysql/inbox-operator.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import type { DatabaseEvents } from '../../lambdas/runtime/store/sql/database-outbox.ts';
import { manualClock } from '../../testing/index.ts';
import { type DecidedInbox, LEASE_MS } from '../postgres/inbox-rig.ts';
import type { Rig } from './support/rig.ts';

const SETTINGS = { consumer: 'worker', leaseMs: LEASE_MS, inboxRetentionDays: 35, random: systemRandomBytes };

/** A table of the service. */
export const PAYMENT =
  'CREATE TABLE mailroom.payment (id INT AUTO_INCREMENT PRIMARY KEY, event_id VARCHAR(64) NOT NULL, note TEXT) ENGINE=InnoDB';

/** Writes an event as an outbox does, as far as a test of the inbox needs it. */
export const testOutbox: DatabaseEvents<PoolConnection> = {
  write: async (tx, events) => {
    for (const { definition, data } of events)
      await tx.query(
        `INSERT INTO mailroom.event (event_id, source, type, aggregate_type, aggregate_id, envelope) VALUES (${ID}, ?, ?, '', '', ${TEXT})`,
        [
          idParameter(mintEventId(Date.now(), 1)),
          definition.source,
          definition.type,
          textParameter(JSON.stringify(data)),
        ],
      );
  },
};

/** An inbox on a database whose statements a test may change. */
export function inboxOn(
  database: Database<PoolConnection>,
  clock: Clock = manualClock(Date.now()),
  change: Partial<typeof SETTINGS> = {},
): Inbox {
  return mysqlInbox({ settings: { ...SETTINGS, ...change, clock }, database, outbox: testOutbox });
}

/** The inbox in MariaDB, empty. */
export async function mysqlTested({ database, rows, clear }: Rig): Promise<DecidedInbox> {
  const clock = manualClock(Date.now()); // about that of the server, which dates the first start of the inbox
  await clear();
  const worker = (inboxRetentionDays?: number) =>
    inboxOn(database, clock, inboxRetentionDays === undefined ? {} : { inboxRetentionDays });
  return {
    inbox: worker(),
    changes: mysqlInboxChanges({ database, clock }),
    clock,
    worker,
    pass: async (ms) => {
      await shift(rows, ms);
      await clock.advance(ms);
    },
    events: async () => (await rows('SELECT 1 FROM mailroom.event')).length,
  };
}

/** Moves every stored time back: the same as a wait. */
export async function shift(rows: Rig['rows'], ms: number): Promise<void> {
  const back = (...columns: string[]) =>
    columns
      .map((column) => `${column} = ${column} - INTERVAL ${Math.round(ms * 1_000)} MICROSECOND`)
      .join(', ');
  await rows(
    `UPDATE mailroom.inbox SET ${back('claimed_at', 'lease_until', 'ends_by', 'retry_at', 'processed_at', 'expires_at')}`,
  );
  await rows(`UPDATE mailroom.effect SET ${back('started_at', 'ends_by', 'ended_at')}`);
  await rows(`UPDATE mailroom.inbox_retention SET ${back('since')} ORDER BY since`);
}
