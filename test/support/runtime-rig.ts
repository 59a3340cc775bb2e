import type { StandardSchemaV1 } from '@standard-schema/spec';
import { z } from 'zod/mini';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { createOutbox } from '../../lambdas/runtime/store/dynamo/outbox.ts';
import { inboxHistoryKey } from '../../lambdas/runtime/store/keys.ts';
import type { OutboxRow } from '../../lambdas/runtime/store/outbox-row.ts';
import { SCHEMA } from '../../lambdas/runtime/store/row-schema.ts';
import type { Table } from '../../lambdas/runtime/store/table.ts';
import { relayConfig as defaultRelayConfig } from '../../testing/default-config.ts';
import {
  consumerConfig as defaultConsumerConfig,
  type MemoryBusOptions,
  type MemoryTable,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
} from '../../testing/index.ts';

/** The event that the runtime's tests write and handle. */
export const ThingHappened = defineEvent({
  source: 'things',
  type: 'ThingHappened',
  version: 2,
  aggregateType: 'Thing',
  schema: z.object({ n: z.int() }),
  upcast: (data) => ({ n: Number((data as { text: string }).text) }),
});

const unparsed: StandardSchemaV1<{ n: number }> = {
  '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as { n: number } }) },
};

/** As {@link ThingHappened}; its schema returns its input, as one that only checks does. */
export const Unparsed = defineEvent({ ...ThingHappened, schema: unparsed });

/** An event with a number. */
export const Counted = defineEvent({
  source: 'things',
  type: 'Counted',
  version: 1,
  aggregateType: 'Thing',
  schema: z.object({ n: z.int() }),
  sequence: true,
});

export const relayConfig = defaultRelayConfig({ shards: 2, maxAttempts: 3 });

export const consumerConfig = defaultConsumerConfig({
  service: 'things',
  publishes: 'any',
  shards: 2,
  consumer: 'worker',
  queueUrl: 'https://queue',
  visibilityTimeoutMs: 60_000,
  maxAttempts: 3,
});

/** Everything that a test of the runtime puts on its rig: the parts in memory, on one clock. */
export function rig(
  options: {
    readonly bus?: MemoryBusOptions;
    readonly wrap?: (table: MemoryTable) => Table;
    readonly maxReceiveCount?: number;
    readonly draw?: () => number;
  } = {},
) {
  const clock = manualClock();
  const memory = memoryTable({ clock });
  const table = options.wrap?.(memory) ?? memory;
  const bus = memoryBus({ clock, ...options.bus });
  const queue = memoryQueue({
    clock,
    visibilityTimeoutMs: consumerConfig.visibilityTimeoutMs,
    maxReceiveCount: options.maxReceiveCount ?? 6,
    draw: options.draw,
  });
  const telemetry = memoryTelemetry();
  const outbox = createOutbox({ config: consumerConfig, table: memory, clock });
  const happenedOf = (source: string, n: number) =>
    defineEvent({ ...ThingHappened, source }).create({ aggregateId: `thing-${n}`, data: { n } });
  const happened = (n: number) => happenedOf(ThingHappened.source, n);
  return {
    clock,
    memory,
    table,
    bus,
    queue,
    telemetry,
    outbox,
    happened,
    /** The same event of another service. */
    happenedOf,
    /** The outbox rows, oldest first. */
    rows: () =>
      memory.items().filter((item) => String(item.PK).startsWith('OUTBOX#')) as unknown as OutboxRow[],
    /** The stream records of everything written so far, as one batch. */
    streamEvent: () => ({ Records: memory.stream() }),
    /** Ids of the events that reached the bus, in the order of their publish. */
    publishedIds: () =>
      bus.published().map((entry) => (JSON.parse(entry.detail) as { eventId: string }).eventId),
  };
}

/** Records that an inbox started long before anything that a test writes: what is older than its retention may have run. */
export async function startedLongAgo(
  table: Pick<Table, 'write'>,
  consumer = consumerConfig.consumer,
  days = consumerConfig.inboxRetentionDays,
): Promise<void> {
  const retentions = [{ days, since: 0 }];
  await table.write({
    Put: { Item: { ...inboxHistoryKey(consumer), schema: SCHEMA, retentions, changedAt: 0 } },
  });
}

/** Moves a manual clock on until a promise settles. */
export async function runThrough<T>(
  clock: { advance(ms: number): Promise<void> },
  promise: Promise<T>,
): Promise<T> {
  let settled = false;
  const watched = promise.finally(() => {
    settled = true;
  });
  watched.catch(() => {});
  for (let i = 0; i < 10_000 && !settled; i += 1) await clock.advance(50);
  return watched;
}
