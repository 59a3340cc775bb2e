import type { PoolConnection } from 'mysql2/promise';
import type { Around } from '../../lambdas/runtime/consume/around.ts';
import type { DatabaseHandler } from '../../lambdas/runtime/database/database-handlers.ts';
import { createMysqlConsumer } from '../../lambdas/runtime/mysql/mysql-consumer.ts';
import type { Database } from '../../lambdas/runtime/store/sql/database.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { sqsEvent } from '../postgres/consumer-parts.ts';
import { LEASE_MS } from '../postgres/inbox-rig.ts';
import { consumerConfig } from '../support/runtime-rig.ts';
import { testOutbox } from './inbox-rig.ts';

/** A consumer whose function is called with messages of one event. */
export function mysqlConsumer(
  database: Database<PoolConnection>,
  handlers: readonly DatabaseHandler<PoolConnection>[],
  change: Partial<typeof consumerConfig> = {},
  around?: Around,
) {
  const telemetry = memoryTelemetry();
  const handle = createMysqlConsumer({
    config: { ...consumerConfig, leaseMs: LEASE_MS, ...change },
    database,
    outbox: testOutbox,
    queue: { changeVisibility: async () => {} },
    handlers,
    telemetry,
    around,
  });
  /** Delivers one message. @returns the code of its failure, if it failed */
  const deliver = async (eventId: string, receives = 1, messageId = 'first') => {
    const context = lambdaContext({ clock: { now: Date.now }, timeoutMs: LEASE_MS } as never);
    const { batchItemFailures } = await handle(sqsEvent(eventId, receives, messageId, 1), context);
    return batchItemFailures.map(
      (failure) => (Reflect.get(failure, 'error') as { code?: string }).code ?? 'none',
    );
  };
  return { deliver, telemetry };
}
