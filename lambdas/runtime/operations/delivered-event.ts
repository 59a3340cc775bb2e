import { randomUUID } from 'node:crypto';
import { readDelivered } from '../consume/message.ts';
import type { ExternalSubscription, HandledEvent } from '../events/external-event.ts';

/** The properties of an event that {@link deliveredEvent} needs; an outbox row has them. */
export interface Deliverable {
  readonly source: string;
  readonly type: string;
  /** The envelope as JSON: the `detail`, byte for byte. */
  readonly envelope: string;
}

/** The target, the time and the id of a delivery. */
export interface Delivering {
  readonly account: string;
  readonly region: string;
  /** The time of the publish, epoch milliseconds. */
  readonly time: number;
  /** EventBridge's own id. @default a new one, as for every repeated delivery of an event */
  readonly id?: string;
}

/**
 * Makes the body of the message that an EventBridge rule sends to a queue for an event.
 *
 * @example
 * ```ts
 * await queues.send(url, deliveredEvent(row, { account, region, time: Date.now() }));
 * ```
 */
export function deliveredEvent(event: Deliverable, { account, region, time, id }: Delivering): string {
  const head = JSON.stringify({
    version: '0',
    id: id ?? randomUUID(),
    'detail-type': event.type,
    source: event.source,
    account,
    time: new Date(time).toISOString().replace(/\.\d+Z$/, 'Z'),
    region,
    resources: [],
  });
  // Concatenated as text, because a number that JavaScript cannot represent must not change.
  return `${head.slice(0, -1)},"detail":${event.envelope}}`;
}

/**
 * Returns the id and the type of the event in a message, read as its consumer reads it; `undefined` if it cannot be read. Such a
 * message has its own inbox row, whatever id its body contains.
 *
 * @param subscriptions - the consumer's external events
 */
export function deliveredIdentity(
  body: string,
  subscriptions: readonly ExternalSubscription[] = [],
): Pick<HandledEvent, 'eventId' | 'type'> | undefined {
  try {
    return readDelivered(body, { subscriptions, arrivedAt: 0 }).envelope;
  } catch {
    return undefined;
  }
}
