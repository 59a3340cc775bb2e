import { z } from 'zod';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import type { PgListener } from '../../lambdas/runtime/postgres/wake-listener.ts';
import type { DatabaseRelayConfig } from '../../lambdas/runtime/relay/database-config.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import { eventClaim } from '../../lambdas/runtime/store/postgres/outbox-claim.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { type BenchDatabase, PAYLOAD } from './database.ts';

const Placed = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'order',
  schema: z.object({ note: z.string() }),
});

const CONFIG: DatabaseRelayConfig = {
  tableName: 'bench',
  busName: 'bench',
  claimLeaseMs: 60_000,
  publishTimeoutMs: 10_000,
  maxAttempts: 20,
  publishedRetentionDays: 7,
  sources: ['orders'],
  pollMs: 100,
};

/** Commits one event in its own transaction. @param n - its aggregate */
export function producerOf({ pool }: BenchDatabase): (n: number) => Promise<unknown> {
  const config = { service: 'orders', tableName: 'bench', publishes: ['Placed'] };
  const outbox = createPostgresOutbox({ config, database: nodePostgres(pool) });
  return (n) => outbox.commit(async () => [Placed.create({ aggregateId: String(n), data: PAYLOAD })]);
}

/** Writes many events at once. */
export async function fill(
  database: BenchDatabase,
  events: number,
  aggregateId: (n: number) => string = String,
): Promise<void> {
  const config = { service: 'orders', tableName: 'bench', publishes: ['Placed'] };
  const outbox = createPostgresOutbox({ config, database: nodePostgres(database.pool) });
  for (let from = 0; from < events; from += 1_000) {
    const count = Math.min(1_000, events - from);
    const drafts = Array.from({ length: count }, (_, n) =>
      Placed.create({ aggregateId: aggregateId(from + n), data: PAYLOAD }),
    );
    await outbox.commit(async () => drafts);
  }
  await database.pool.query('VACUUM ANALYZE mailroom.pending');
}

/** A bus that accepts everything after a time. @param onEvent - receives the time since each event's commit, milliseconds */
export function slowBus(ms: number, onEvent: (ageMs: number) => void = () => {}): Bus {
  return {
    put: async (entries) => {
      if (ms > 0) await new Promise((resolve) => setTimeout(resolve, ms));
      return entries.map(({ detail }) => {
        onEvent(Date.now() - (JSON.parse(detail) as { readonly occurredAt: number }).occurredAt);
        return { ok: true, id: '1' };
      });
    },
  };
}

/** A relay in this process. @param pool - its own connections @param listen - creates the connection that wakes it @default it polls */
export function relayOf(
  { pool }: Pick<BenchDatabase, 'pool'>,
  bus: Bus,
  listen?: () => PgListener,
  orderBy?: 'aggregate',
): DatabaseRelay {
  return createPostgresRelay({
    config: { ...CONFIG, orderBy },
    database: nodePostgres(pool),
    bus,
    telemetry: memoryTelemetry(),
    listen,
  });
}

/** The claims of one relay. */
export function claimsOf(
  database: Sql,
  orderBy: 'aggregate',
): (limit: number, fully?: boolean) => Promise<readonly unknown[]> {
  return eventClaim({ config: { ...CONFIG, orderBy }, database, clock: systemClock });
}
