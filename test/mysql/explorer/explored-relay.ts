import type { PoolConnection } from 'mysql2/promise';
import { systemClock } from '../../../lambdas/runtime/base/clock.ts';
import { systemRandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import { mysqlTransitions } from '../../../lambdas/runtime/store/mysql/relay-transitions.ts';
import type { ClaimMode } from '../../../lambdas/runtime/store/mysql/server-check.ts';
import type { Database } from '../../../lambdas/runtime/store/sql/database.ts';
import { memoryTelemetry } from '../../../testing/memory-telemetry.ts';
import { relayConfig } from '../../postgres/support/relay-config.ts';

/**
 * Claims, publishes and marks once. It can pause or crash between its statements, one of which stands for the call of the bus.
 *
 * @param published - gets the ids of the events that it publishes
 */
export async function relayOnce<Tx>(
  database: Database<Tx>,
  published: string[],
  claim: ClaimMode = 'skip-locked',
): Promise<void> {
  const transitions = mysqlTransitions({
    config: relayConfig(),
    database,
    clock: systemClock,
    random: systemRandomBytes,
    telemetry: memoryTelemetry(),
    claim,
  });
  const rows = await transitions.claim(10, true);
  await database.query("SELECT 'publish'");
  for (const { entry } of rows) published.push(JSON.parse(entry.detail).eventId);
  await transitions.markPublished(rows);
}

/** A row that a transaction of a relay has locked has no lease to pass. */
export function leasesPass(database: Database<PoolConnection>): Promise<void> {
  return database.transaction(async (tx) => {
    const [rows] = await tx.query('SELECT event_id FROM mailroom.pending FOR UPDATE SKIP LOCKED');
    const due =
      'UPDATE mailroom.pending SET due_at = UTC_TIMESTAMP(6) - INTERVAL 1 SECOND WHERE event_id = ?';
    for (const { event_id } of rows as { event_id: Buffer }[]) await tx.query(due, [event_id]);
  });
}
