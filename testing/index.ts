/**
 * `cdk-mailroom/testing`: in-memory versions of the AWS services that Mailroom calls, a clock that a test advances, and
 * `explore`, which runs a handler through every crash.
 *
 * @example
 * ```ts
 * const clock = manualClock();
 * const table = memoryTable({ clock });
 * const queue = memoryQueue({ clock });
 * const bus = memoryBus({ clock });
 * bus.routeTo(queue);
 * ```
 */
export { consumerConfig, producerConfig } from './default-config.ts';
export type { ExploredParts } from './explorer/consumer-parts.ts';
export { type ExploreOptions, type ExploreReport, explore } from './explorer/explore.ts';
export { type LambdaContextOptions, lambdaContext } from './lambda-context.ts';
export { type ManualClock, manualClock } from './manual-clock.ts';
export {
  type BusPattern,
  type CallFailure,
  eventBridgeMessage,
  type MemoryBus,
  type MemoryBusOptions,
  memoryBus,
  type Published,
  type PutCall,
} from './memory-bus.ts';
export { type MemoryPayloads, type MemoryPayloadsOptions, memoryPayloads } from './memory-payloads.ts';
export {
  type MemoryMessage,
  type MemoryQueue,
  type MemoryQueueOptions,
  memoryQueue,
  type QueueDelivery,
  type QueueHandler,
} from './memory-queue.ts';
export { type MemoryRelayOptions, memoryRelay } from './memory-relay.ts';
export type { KeyNames } from './memory-store.ts';
export { type MemoryTable, type MemoryTableOptions, memoryTable } from './memory-table.ts';
export { type LogLine, type MemoryTelemetry, memoryTelemetry } from './memory-telemetry.ts';
