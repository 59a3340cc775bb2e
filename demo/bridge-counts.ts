import { type Arrived, bodiesOf } from '../test/brokers/clients/arrived.ts';
import { isBridged, type WrittenEvent } from './readings.ts';

/** The events that the bridge forwards, and the messages at its target. */
export interface BridgeCounts {
  /** The stream or topic. */
  readonly target: string;
  /** Events of the run in the outbox that the bridge forwards. */
  readonly sent: number;
  /** Their messages at the target. */
  readonly received: number;
  /** Their event ids at the target. */
  readonly distinct: number;
  /** Events that are not at the target. */
  readonly lost: number;
}

/** Compares the events of a run that the bridge forwards with the messages that arrived. Those of other runs are not counted. */
export function bridgeCounts(
  target: string,
  events: readonly WrittenEvent[],
  arrived: readonly Arrived[],
): BridgeCounts {
  const sent = new Set(
    events.flatMap(({ envelope: { type, eventId } }) => (isBridged(type) ? [eventId] : [])),
  );
  const received = bodiesOf(arrived)
    .map((body) => (JSON.parse(body) as { readonly eventId: string }).eventId)
    .filter((eventId) => sent.has(eventId));
  const distinct = new Set(received).size;
  return { target, sent: sent.size, received: received.length, distinct, lost: sent.size - distinct };
}
