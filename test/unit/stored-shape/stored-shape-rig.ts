import * as z from 'zod/mini';
import type { ConsumerConfig } from '../../../lambdas/runtime/base/consumer-config.ts';
import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import type { Handler } from '../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import { createRelayStream } from '../../../lambdas/runtime/relay/relay-stream.ts';
import { createSweepPass } from '../../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../lambdas/runtime/store/dynamo/outbox.ts';
import { eventIdTime, type RandomBytes } from '../../../lambdas/runtime/store/event-id.ts';
import type { Item } from '../../../lambdas/runtime/store/table.ts';
import { relayConfig } from '../../../testing/default-config.ts';
import {
  consumerConfig,
  lambdaContext,
  type MemoryBusOptions,
  type MemoryTable,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
} from '../../../testing/index.ts';

/** The event of docs/stored-items.md. */
export const EVENT_ID = '01a1fba6-4458-7a41-9c37-3f5d2b8e1103';
/** When it was committed, epoch milliseconds. */
export const NOW = eventIdTime(EVENT_ID);

export const consumer: ConsumerConfig = consumerConfig({ consumer: 'payments', service: 'payments' });

export const OrderPlaced = defineEvent({
  source: 'orders',
  type: 'OrderPlaced',
  version: 1,
  aggregateType: 'Order',
  schema: z.object({ orderId: z.string(), totalCents: z.int() }),
});

/** As {@link OrderPlaced}, for ordered consumers. */
export const OrderChanged = defineEvent({ ...OrderPlaced, type: 'OrderChanged', sequence: true });

const data = { orderId: '42', totalCents: 4200 };

/** A random source that always returns these bytes. */
export const bytesOf = (hex: string): RandomBytes => {
  const bytes = Buffer.from(hex.replaceAll('-', ''), 'hex');
  return (count) => bytes.subarray(0, count);
};

/** Every token that is drawn is this one: how often one is drawn is not part of the stored shape. */
const random = bytesOf('5b0f3c0e7d9a4f6f8a1b2c3d4e5f6071');

/** The whole runtime on a memory table. Nothing in it is left to chance, and the clock moves only when told. */
export function shapeRig(refusal?: { readonly code: string; readonly message: string }) {
  const clock = manualClock(NOW);
  const memory = memoryTable({ clock });
  // Without the token: as all of them are alike, the second transaction would pass for a repetition of the first.
  const table: MemoryTable = { ...memory, transact: (actions) => memory.transact(actions) };
  const options: MemoryBusOptions = refusal === undefined ? {} : { failEntry: () => refusal };
  const bus = memoryBus({ clock, ...options });
  const queue = memoryQueue({ clock, visibilityTimeoutMs: consumer.visibilityTimeoutMs });
  bus.routeTo(queue);
  const telemetry = memoryTelemetry();
  const outbox = createOutbox({
    config: { ...consumer, service: 'orders' },
    table,
    clock,
    random: bytesOf(EVENT_ID),
  });
  const relay = { config: relayConfig(), table, bus, clock, random, telemetry };

  return {
    clock,
    table,
    bus,
    queue,
    random,
    commit: () => outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data })] }),
    outbox,
    commitUnique: () =>
      outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data, uniqueBy: 'order-42' })] }),
    /** Commits the event half an hour before it is due. */
    schedule: async () => {
      clock.jumpTo(NOW - 30 * MINUTE_MS);
      const deliverAt = NOW;
      await outbox.commit({ events: [OrderPlaced.create({ aggregateId: '42', data, deliverAt })] });
    },
    commitNumbered: (sequence: number) =>
      outbox.commit({ events: [OrderChanged.create({ aggregateId: '42', data, sequence })] }),
    /** What the stream relay does with all that was written so far. */
    publish: () => createRelayStream(relay)({ Records: table.stream() }),
    /** One pass of the sweep, after the stream lease and the first age of the minute. */
    sweep: async () => {
      await clock.advance(150_000);
      await createSweepPass(relay)(clock.now() + 60_000);
    },
    /** Hands the messages to the consumer of some handler, once. */
    deliver: async (handler: Handler) => {
      const handle = createConsumer({
        config: consumer,
        table,
        queue,
        handlers: [handler],
        clock,
        random,
        telemetry,
      });
      await queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs: 30_000 }));
    },
    /** The one item whose partition key and sort key begin so, as JSON has it. */
    item: (pk: string, sk = '') => onlyOne(table.items(), pk, sk),
  };
}

/** The one item whose keys begin so, with sets as sorted lists. */
export function onlyOne(items: readonly Item[], pk: string, sk = ''): unknown {
  const found = items.filter(({ PK, SK }) => String(PK).startsWith(pk) && String(SK).startsWith(sk));
  if (found.length !== 1) throw new Error(`${found.length} items begin with ${pk} / ${sk}; expected one`);
  return JSON.parse(
    JSON.stringify(found[0], (_, value: unknown) => (value instanceof Set ? [...value].sort() : value)),
  );
}
