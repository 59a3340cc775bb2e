import type { Envelope } from '../../lambdas/runtime/event.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import type { Item } from '../../lambdas/runtime/store/table.ts';
import type { TableShape } from '../aws/metered-table.ts';
import type { Workload } from './system.ts';

/** The EventBridge `source` of every event. */
export const SOURCE = 'orders';

/** The type of every event. */
export const EVENT = { source: SOURCE, type: 'OrderPlaced', version: 1, aggregateType: 'Order' } as const;

/** When the first order is placed, epoch milliseconds: 21 November 2026, 01:09:07.123 UTC. */
export const START = Date.UTC(2026, 10, 21, 1, 9, 7, 123);

/** The services' own rows. */
export const DOMAIN: TableShape = { name: 'domain', keys: ['PK', 'SK'] };

/** The time between two orders, milliseconds: 1,000 of them a second. */
const ORDER_EVERY_MS = 1;

/** What an address and a basket take in a row, so that it has about 600 bytes: one write unit. */
const DETAILS = 'x'.repeat(500);

/** The id of the order that an event is about: its `aggregateId`. */
export function orderId(index: number): string {
  return `order-${String(index).padStart(8, '0')}`;
}

/** The row that the producer writes beside an event. */
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

/** What a consumer writes for an event: a row of one write unit, which counts how often it was written. */
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
 * The payload of an event: an object whose JSON has exactly so many bytes.
 *
 * @throws RangeError when so few bytes do not hold the order's id
 */
export function payload(index: number, bytes: number): { readonly orderId: string; readonly note: string } {
  const empty = { orderId: orderId(index), note: '' };
  return { ...empty, note: 'x'.repeat(bytes - JSON.stringify(empty).length) };
}

/** Random bytes that are the same in every run. */
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

/** What every outbox stores of an event. */
export interface StoredEvent {
  readonly eventId: string;
  readonly createdAt: number;
  readonly source: string;
  readonly type: string;
  /** The envelope as JSON: the EventBridge `detail`. */
  readonly envelope: string;
}

/** An event as an outbox stores it. */
export function storedEvent(index: number, payloadBytes: number): StoredEvent {
  const event = envelope(index, payloadBytes);
  const { eventId, occurredAt: createdAt, type } = event;
  return { eventId, createdAt, source: SOURCE, type, envelope: JSON.stringify(event) };
}

/** Whether an event is one of those that fail once: they are spread evenly. */
export function isRetried({ events, retries }: Pick<Workload, 'events' | 'retries'>, index: number): boolean {
  return Math.floor(((index + 1) * retries) / events) > Math.floor((index * retries) / events);
}

/** The orders whose events fail once. */
export function retriedOrders(workload: Workload): Set<string> {
  const indexes = Array.from({ length: workload.events }, (_, index) => index);
  return new Set(indexes.filter((index) => isRetried(workload, index)).map(orderId));
}

/**
 * Makes what fails once in each consumer's handler.
 *
 * @returns throws at the first call for a consumer and an order that is to fail once
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
