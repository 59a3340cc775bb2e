import type { Clock } from '../lambdas/runtime/base/clock.ts';
import { requireGiven } from '../lambdas/runtime/base/given-names.ts';
import type { Telemetry } from '../lambdas/runtime/observe/telemetry.ts';
import { createRelayStream } from '../lambdas/runtime/relay/relay-stream.ts';
import { OUTBOX_PREFIX } from '../lambdas/runtime/store/outbox-partition.ts';
import { relayConfig } from './default-config.ts';
import type { MemoryBus } from './memory-bus.ts';
import type { MemoryTable } from './memory-table.ts';

/** Options of {@link memoryRelay}. */
export interface MemoryRelayOptions {
  /** The table with the outbox. */
  readonly table: MemoryTable;
  /** The bus on which events are published. */
  readonly bus: MemoryBus;
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** @default `powertoolsTelemetry` */
  readonly telemetry?: Telemetry | undefined;
}

/**
 * Creates Mailroom's stream relay with its default settings. Each call publishes the events that the table received since the last
 * call, beginning with the first one that the bus did not accept. After a failure, a call returns only once the clock has advanced by
 * 5 to 7 seconds, as in AWS.
 *
 * @example
 * ```ts
 * const relay = memoryRelay({ table, bus, clock });
 * await outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data })] });
 * await relay();
 * ```
 */
export function memoryRelay(options: MemoryRelayOptions): () => Promise<void> {
  requireGiven('memoryRelay', options, 'table', 'bus');
  const { table } = options;
  const publish = createRelayStream({ ...options, config: relayConfig({ tableName: table.name }) });
  let next = 0;
  return async () => {
    // As the filter of the mapping does.
    const records = table
      .stream()
      .filter(
        ({ eventName, dynamodb }) =>
          eventName === 'INSERT' && dynamodb?.Keys?.PK?.S?.startsWith(OUTBOX_PREFIX),
      );
    const { batchItemFailures } = await publish({ Records: records.slice(next) });
    const returned = new Set(batchItemFailures.map(({ itemIdentifier }) => itemIdentifier));
    const first = records.findIndex(({ dynamodb }) => returned.has(dynamodb?.SequenceNumber ?? ''));
    next = first < 0 ? records.length : first;
  };
}
