import { z } from 'zod/mini';
import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import { type BridgeTarget, bridge } from '../../../lambdas/runtime/bridge.ts';
import { defineEvent } from '../../../lambdas/runtime/events/event.ts';
import { createConsumer, createOutbox } from '../../../lambdas/runtime/index.ts';
import type { InboxRow } from '../../../lambdas/runtime/store/inbox-row.ts';
import { INBOX_PREFIX } from '../../../lambdas/runtime/store/keys.ts';
import { asRow } from '../../../lambdas/runtime/store/row-schema.ts';
import {
  consumerConfig,
  manualClock,
  memoryBus,
  memoryQueue,
  memoryRelay,
  memoryTable,
  memoryTelemetry,
} from '../../../testing/index.ts';
import type { Arrived } from '../clients/arrived.ts';
import type { Counted } from '../receipts.ts';

/** The event that the bridges of these tests forward. */
export const ParcelPacked = defineEvent({
  source: 'parcels',
  type: 'ParcelPacked',
  aggregateType: 'Parcel',
  version: 1,
  schema: z.object({ n: z.int(), filling: z.string() }),
});

/** Messages that take longer will never be settled. */
const SETTLE_DEADLINE_MS = 120_000;

/** Options of {@link Bridge.publish}. */
interface PublishOptions {
  /** The number of aggregates, which take turns. @default 1 */
  readonly aggregates?: number;
  /** A text in each event. */
  readonly filling?: string;
}

/** A bridge whose Mailroom is in memory and whose target is real. */
export interface Bridge {
  /** Publishes events through the outbox, the relay and the bus to the bridge's queue. @returns them, in their order */
  readonly publish: (count: number, options?: PublishOptions) => Promise<Counted[]>;
  /** Puts a message into the queue, as any sender can. */
  readonly sendToQueue: (body: string) => void;
  /** Invokes the bridge with a batch. @returns the code and the text of each error */
  readonly deliver: () => Promise<string[]>;
  /** Delivers, and lets the time pass for which messages wait, until each is processed or rejected. */
  readonly settle: () => Promise<void>;
  /** Lets the time pass until the next message is visible. */
  readonly pass: () => Promise<void>;
  readonly rows: () => InboxRow[];
  /** The bodies of the messages in the queue, for another process. */
  readonly bodies: () => string[];
}

/** The settings of the bridge, in every process. */
export const bridgeConfig = consumerConfig({
  service: 'parcels',
  publishes: 'any',
  consumer: 'bridge',
  maxAttempts: 100,
});

/**
 * Makes a bridge.
 *
 * @param timeoutMs - the time that the target has to answer
 * @param now - its time, at which its events occur
 * @param consumer - its name
 */
export function bridgeTo(
  to: BridgeTarget,
  timeoutMs = 10_000,
  now = Date.now(),
  consumer = bridgeConfig.consumer,
): Bridge {
  const clock = manualClock(now);
  const telemetry = memoryTelemetry();
  const table = memoryTable({ clock });
  const queue = memoryQueue({ clock });
  const bus = memoryBus({ clock });
  bus.routeTo(queue);
  const relay = memoryRelay({ table, bus, clock, telemetry });
  const outbox = createOutbox({ config: bridgeConfig, table, clock, telemetry });
  const handlers = bridge({ to, events: [ParcelPacked], timeoutMs });
  const config = { ...bridgeConfig, consumer };
  const consume = createConsumer({ config, table, queue, clock, telemetry, handlers });

  const rows = () =>
    table
      .items()
      .filter(({ PK, SK }) => PK.startsWith(INBOX_PREFIX) && SK === 'MESSAGE')
      .map((item) => asRow<InboxRow>(item));
  const deliver = async () => {
    const { errors = {}, error } = await queue.deliver(consume);
    if (error !== undefined) throw error;
    return Object.values(errors).map((each) => `${errorCode(each)}: ${errorMessage(each)}`);
  };
  const pass = async () => {
    const next = Math.min(...queue.messages().map(({ visibleAt }) => visibleAt));
    if (Number.isFinite(next)) await clock.advance(Math.max(0, next - clock.now()));
  };
  const isSettled = () => {
    const settled = rows().filter(({ status }) => status === 'PROCESSED' || status === 'REJECTED');
    const rejected = settled.filter(({ status }) => status === 'REJECTED').length;
    return settled.length === rows().length && queue.messages().length === rejected;
  };
  return {
    publish: async (count, { aggregates = 1, filling = '' } = {}) => {
      const events = Array.from({ length: count }, (_, n) =>
        ParcelPacked.create({ aggregateId: `parcel-${n % aggregates}`, data: { n, filling } }),
      );
      const ids: string[] = [];
      for (const event of events) {
        const envelopes = await outbox.commit({ events: [event] });
        ids.push(...envelopes.map(({ eventId }) => eventId));
        await clock.advance(1);
      }
      await relay();
      return events.map(({ aggregateId }, n) => ({ id: ids[n] ?? '', key: aggregateId }));
    },
    sendToQueue: (body) => void queue.send(body),
    deliver,
    settle: async () => {
      const until = Date.now() + SETTLE_DEADLINE_MS;
      while (!isSettled()) {
        const errors = await deliver();
        if (Date.now() > until) throw new Error(`Some messages are not settled: ${errors.join(', ')}`);
        await pass();
      }
    },
    pass,
    rows,
    bodies: () => queue.messages().map(({ body }) => body),
  };
}

/** The event of a message at the target. */
export function countedAt({ body }: Arrived): Counted {
  const { eventId, aggregateId } = JSON.parse(body);
  return { id: eventId, key: aggregateId };
}
