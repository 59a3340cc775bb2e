import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import { createInboxProcessor } from '../../../../lambdas/runtime/sources/inbox-processor.ts';
import { memoryTelemetry } from '../../../../testing/index.ts';
import { consumerConfig, ThingHappened } from '../../../support/runtime-rig.ts';
import type { mailroomInMemory } from './mailroom-in-memory.ts';

/** Starts a consumer of Kafka: it enters itself in the table. */
export function startLedger({
  table,
  clock,
}: Pick<ReturnType<typeof mailroomInMemory>, 'table' | 'clock'>): void {
  const config = { ...consumerConfig, consumer: 'ledger' };
  const inbox = createInboxProcessor({ config, table, clock, telemetry: memoryTelemetry() });
  inbox.handles(
    leased(ThingHappened, async () => {}),
    'Kafka',
  );
}
