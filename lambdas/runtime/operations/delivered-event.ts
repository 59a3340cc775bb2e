import { randomUUID } from 'node:crypto';
import { readDelivered } from '../consume/message.ts';

/** What {@link deliveredEvent} needs of an event: an outbox row has it. */
export interface Deliverable {
  readonly source: string;
  readonly type: string;
  /** The envelope as JSON: the `detail`, byte for byte. */
  readonly envelope: string;
}

/** Where, when and as what an event is delivered. */
export interface Delivering {
  readonly account: string;
  readonly region: string;
  /** When it was published, epoch milliseconds. */
  readonly time: number;
  /** EventBridge's own id. @default a new one: that is what every repeated delivery of an event has */
  readonly id?: string;
}

/**
 * The body of the message that a rule of EventBridge hands to a queue for an event.
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
  // As text: a number that JavaScript cannot hold stays what it is.
  return `${head.slice(0, -1)},"detail":${event.envelope}}`;
}

/**
 * The id of the event in such a body, read as a consumer reads it: `undefined` where that finds no whole envelope. Such a
 * message has an inbox row of its own, whatever id stands in it.
 */
export function deliveredEventId(body: string): string | undefined {
  try {
    return readDelivered({ body }).envelope.eventId;
  } catch {
    return undefined;
  }
}
