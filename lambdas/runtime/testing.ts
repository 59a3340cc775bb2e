/**
 * `cdk-mailroom/testing`: the parts of AWS that Mailroom talks to, in memory, a clock that a test moves, and `explore`,
 * which puts a handler through every crash and every interleaving.
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
export { consumerConfig, producerConfig, relayConfig } from './testing/default-config.ts';
export type { ExploredParts } from './testing/explorer/consumer-world.ts';
export { type ExploreOptions, type ExploreReport, explore } from './testing/explorer/explore.ts';
export { type LambdaContextOptions, lambdaContext } from './testing/lambda-context.ts';
export { type ManualClock, manualClock } from './testing/manual-clock.ts';
export {
  type BusPattern,
  type CallFailure,
  eventBridgeMessage,
  type MemoryBus,
  type MemoryBusOptions,
  memoryBus,
  type Published,
  type PutCall,
} from './testing/memory-bus.ts';
export {
  type Delivery,
  type MemoryMessage,
  type MemoryQueue,
  type MemoryQueueOptions,
  memoryQueue,
  type QueueHandler,
} from './testing/memory-queue.ts';
export type { KeyNames } from './testing/memory-store.ts';
export { type MemoryTable, type MemoryTableOptions, memoryTable } from './testing/memory-table.ts';
export { type LogLine, type MemoryTelemetry, memoryTelemetry } from './testing/memory-telemetry.ts';
