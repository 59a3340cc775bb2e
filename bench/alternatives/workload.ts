import { createHash } from 'node:crypto';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import type { Envelope } from '../../lambdas/runtime/events/event.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { TableShape } from '../aws/metered-table.ts';
import { type ShopOrder, shopOrder } from '../corpus.ts';

/** The input of a measured system. */
export interface Workload {
  /** The number of events; the handler writes one domain row of under 1 KB with each. */
  readonly events: number;
  /** The size of each event's payload (`data`) as JSON, in bytes. */
  readonly payloadBytes: number;
  readonly consumers: number;
  /** The number of events that fail once at the bus, and that fail once in each consumer's handler. */
  readonly retries: number;
  /**
   * The number of records or rows that a relay processes at once. A consumer receives at most 10 messages, the limit of one SQS
   * receive.
   */
  readonly batchSize: number;
}

/** The EventBridge `source` of every event. */
export const SOURCE = 'orders';

/** The type of every event. */
export const EVENT = { source: SOURCE, type: 'OrderPlaced', version: 1, aggregateType: 'Order' } as const;

/** When the first order is placed, in epoch milliseconds: 21 November 2026, 01:09:07.123 UTC. */
export const START = Date.UTC(2026, 10, 21, 1, 9, 7, 123);

/** The services' own rows. */
export const DOMAIN: TableShape = { name: 'domain', keys: ['PK', 'SK'] };

/** The interval between two orders in milliseconds: 1,000 orders per second. */
const ORDER_EVERY_MS = 1;

/** Filler for an address and a basket, so that a row has about 600 bytes: one write unit. */
const DETAILS = 'x'.repeat(500);

/** The `aggregateId` of an event: the id of its order. */
export function orderId(index: number): string {
  return `order-${String(index).padStart(8, '0')}`;
}

/** The row that the producer writes with an event. */
export function orderRow(index: number): Item {
  return {
    PK: `ORDER#${orderId(index)}`,
    SK: 'ORDER',
    status: 'PLACED',
    placedAt: START + index * ORDER_EVERY_MS,
    totalCents: 4_200,
    details: DETAILS,
  };
}

/** The write of a consumer for an event: a row of one write unit that counts how often it was written. */
export function handledWrite(consumer: string, order: string) {
  return {
    Key: { PK: `HANDLED#${consumer}#${order}`, SK: 'ORDER' },
    UpdateExpression: 'SET #status = :handled, details = :details ADD times :one',
    ExpressionAttributeNames: { '#status': 'status' },
    ExpressionAttributeValues: { ':handled': 'HANDLED', ':details': DETAILS, ':one': 1 },
  };
}

/** The names of the consumers. */
export function consumerNames({ consumers }: Pick<Workload, 'consumers'>): string[] {
  return Array.from({ length: consumers }, (_, index) => `consumer-${index + 1}`);
}

/**
 * The payload of an event: an order whose JSON has exactly this many bytes.
 *
 * @throws RangeError if the size is too small for the order's id
 */
export function payload(index: number, bytes: number): ShopOrder {
  return shopOrder(orderId(index), bytes);
}

/** Random bytes that are the same in every run, so that costs do not depend on chance. */
export function fixedRandom(): (count: number) => Uint8Array {
  let drawn = 0;
  return (count) => {
    drawn += 1;
    return createHash('sha256').update(String(drawn)).digest().subarray(0, count);
  };
}

/** The same, of a seed. */
function fixedBytes(seed: number, count: number): Uint8Array {
  return Uint8Array.from({ length: count }, (_, byte) => (seed * 31 + byte * 17 + (seed >> 8) * 7) & 0xff);
}

/** An event as the alternatives publish it: the same envelope as Mailroom's, so that all send the same bytes. */
export function envelope(index: number, payloadBytes: number): Envelope {
  const occurredAt = START + index * ORDER_EVERY_MS;
  const eventId = mintEventId(occurredAt, 8, (count) => fixedBytes(index, count));
  const data = payload(index, payloadBytes);
  return { eventId, ...EVENT, aggregateId: data.orderId, occurredAt, correlationId: eventId, data };
}

/** The attributes of an event that every outbox stores. */
export interface StoredEvent {
  readonly eventId: string;
  readonly createdAt: number;
  readonly source: string;
  readonly type: string;
  /** The envelope as JSON: the EventBridge `detail`. */
  readonly envelope: string;
}

/** An event as stored in an outbox. */
export function storedEvent(index: number, payloadBytes: number): StoredEvent {
  const event = envelope(index, payloadBytes);
  const { eventId, occurredAt: createdAt, type } = event;
  return { eventId, createdAt, source: SOURCE, type, envelope: JSON.stringify(event) };
}

/** Returns true for the events that fail once; they are spread evenly. */
export function isRetried({ events, retries }: Pick<Workload, 'events' | 'retries'>, index: number): boolean {
  return Math.floor(((index + 1) * retries) / events) > Math.floor((index * retries) / events);
}

/** The orders whose events fail once. */
export function retriedOrders(workload: Workload): Set<string> {
  const indexes = Array.from({ length: workload.events }, (_, index) => index);
  return new Set(indexes.filter((index) => isRetried(workload, index)).map(orderId));
}

/**
 * Creates the injector of one failure per selected order in each consumer's handler.
 *
 * @returns throws at the first call for a consumer and a selected order
 */
export function handlerFaults(workload: Workload): (consumer: string, order: string) => void {
  const faulty = retriedOrders(workload);
  const failed = new Set<string>();
  return (consumer, order) => {
    const key = `${consumer}#${order}`;
    if (!faulty.has(order) || failed.has(key)) return;
    failed.add(key);
    throw new Error(`${consumer} fails once at ${order}`);
  };
}

/**
 * A clock on which a pause takes no time: it advances the clock and ends in the next turn. A pause that a signal can abort waits
 * for the signal, because no call here is slow enough for such a time-out or heartbeat to come first.
 */
export function jumpingClock(start = START): Clock {
  let now = start;
  return {
    now: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted === false) {
          signal.addEventListener('abort', () => resolve(), { once: true });
          return;
        }
        if (signal === undefined) now += Math.max(0, ms);
        setImmediate(resolve);
      }),
  };
}
