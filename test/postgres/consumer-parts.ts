import type { SQSEvent } from 'aws-lambda';
import type { Around } from '../../lambdas/runtime/consume/around.ts';
import type { DatabaseHandler } from '../../lambdas/runtime/database/database-handlers.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresConsumer } from '../../lambdas/runtime/postgres/postgres-consumer.ts';
import { postgresHandlers } from '../../lambdas/runtime/postgres/postgres-handlers.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { lambdaContext, memoryTelemetry } from '../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../support/runtime-rig.ts';
import { LEASE_MS, testOutbox } from './inbox-rig.ts';

export { nodePostgres, postgresHandlers };

/** Long enough for a slow machine. */
const TIMEOUT_MS = LEASE_MS;

/** A consumer whose function is called with messages of one event. */
export function postgresConsumer(
  database: Database<PgClient>,
  handlers: readonly DatabaseHandler<PgClient>[],
  change: Partial<typeof consumerConfig> = {},
  around?: Around,
) {
  const telemetry = memoryTelemetry();
  const hidden: number[] = [];
  const handle = createPostgresConsumer({
    config: { ...consumerConfig, leaseMs: LEASE_MS, ...change },
    database,
    outbox: testOutbox,
    queue: {
      changeVisibility: async (_receipt, seconds) => {
        hidden.push(seconds);
      },
    },
    handlers,
    telemetry,
    around,
  });
  const clock = { now: Date.now };
  /** Delivers one message. @returns the code of its failure, if it failed */
  const deliver = async (eventId: string, receives = 1, messageId = 'first', n: unknown = 1) => {
    const context = lambdaContext({ clock, timeoutMs: TIMEOUT_MS } as never);
    const { batchItemFailures } = await handle(sqsEvent(eventId, receives, messageId, n), context);
    return batchItemFailures.map(
      (failure) => (Reflect.get(failure, 'error') as { code?: string }).code ?? 'none',
    );
  };
  return { deliver, telemetry, hidden };
}

export function newEventId(): string {
  return mintEventId(Date.now(), 2);
}

/** A batch of SQS with one message of a ThingHappened. */
export function sqsEvent(eventId: string, receives: number, messageId: string, n: unknown): SQSEvent {
  const { source, type, version } = ThingHappened;
  const known = {
    eventId,
    type,
    version,
    aggregateType: 'Thing',
    aggregateId: 'thing-1',
    correlationId: 'chain',
  };
  const detail = { ...known, occurredAt: Date.now(), data: { n } };
  const attributes = { ApproximateReceiveCount: String(receives), SentTimestamp: String(Date.now()) };
  const record = {
    messageId,
    receiptHandle: messageId,
    body: JSON.stringify({ source, 'detail-type': type, detail }),
    attributes,
  };
  return { Records: [record] } as unknown as SQSEvent;
}
