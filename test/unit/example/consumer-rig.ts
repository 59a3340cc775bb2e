import {
  createConsumer,
  createOutbox,
  type Envelope,
  type EventDraft,
  type Handler,
} from '../../../lambdas/runtime/index.ts';
import { outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import {
  consumerConfig,
  eventBridgeMessage,
  lambdaContext,
  type MemoryTable,
  memoryQueue,
  memoryTable,
  memoryTelemetry,
} from '../../../testing/index.ts';
import { envelopeOf } from '../../support/envelope-of.ts';

const PATIENCE_MS = 3_600_000;

/** A consumer over an in-memory table, and the ways to hand it events. */
export interface ConsumerRig {
  readonly table: MemoryTable;
  /** Announces an event as its producer would. */
  announce(draft: EventDraft): Promise<Envelope>;
  /** Hands one event to the consumer, as its own message, or several in one batch. @returns whether a message is redelivered */
  deliver(...events: readonly Envelope[]): Promise<'done' | 'is redelivered'>;
  /** The stored items under a partition key's beginning. */
  rows(prefix: string): Record<string, unknown>[];
  /** The events of one type that are in the outbox. */
  announced(type: string): Envelope[];
}

/** Makes a consumer of the given handlers. @param consumer - its name, where several share a table */
export function consumerRig(
  handlers: (table: MemoryTable) => readonly Handler[],
  table: MemoryTable = memoryTable(),
  consumer = 'rig',
): ConsumerRig {
  // On the machine's clock: no lease and no timeout may pass, however slow it is.
  const config = consumerConfig({ service: 'rig', publishes: 'any', consumer, leaseMs: PATIENCE_MS });
  const outbox = createOutbox({ config, table });
  const rows = (prefix: string) => table.items().filter((item) => String(item.PK).startsWith(prefix));

  return {
    table,
    rows,
    announce: async (draft) => {
      const [event] = await outbox.commit({ events: [draft] });
      if (event === undefined) throw new Error('no event was written');
      return event;
    },
    deliver: async (...events) => {
      const queue = memoryQueue();
      const consume = createConsumer({
        config,
        table,
        queue,
        handlers: handlers(table),
        telemetry: memoryTelemetry(),
      });
      for (const event of events) {
        const { source } = table.item(outboxKeyOf(event.eventId)) ?? {};
        queue.send(messageOf(event, String(source)));
      }
      const context = lambdaContext({ timeoutMs: PATIENCE_MS });
      const { failed, error } = await queue.deliver(consume, events.length, context);
      if (error !== undefined) throw error;
      return failed.length === 0 ? 'done' : 'is redelivered';
    },
    announced: (type) =>
      rows('OUTBOX#')
        .map((row) => envelopeOf(row))
        .filter((event) => event.type === type),
  };
}

/** The event as it arrives from the bus. */
function messageOf(event: Envelope, source: string): string {
  const entry = { source, detailType: event.type, detail: JSON.stringify(event) };
  return eventBridgeMessage({ ...entry, id: event.eventId, publishedAt: event.occurredAt });
}
