import type { ReceivedEvent } from '../events/event.ts';

/** The headers of a forwarded event: names of Mailroom, or CloudEvents 1.0 in its binary mode. */
export type BridgeHeaders = 'mailroom' | 'cloudevents';

/**
 * The headers of a forwarded event.
 *
 * @param prefix - that of the CloudEvents attributes in the target's protocol
 */
export function eventHeaders(
  event: ReceivedEvent,
  kind: BridgeHeaders,
  prefix: string,
): Record<string, string> {
  const { eventId, type, source, aggregateId, occurredAt, sequence, traceparent, tracestate } = event;
  const trace = { ...(traceparent && { traceparent }), ...(tracestate && { tracestate }) };
  if (kind === 'mailroom') return { eventId, type, source, ...trace };
  const time = new Date(occurredAt);
  const attributes = {
    specversion: '1.0',
    id: eventId,
    source,
    type,
    subject: aggregateId,
    ...(!Number.isNaN(time.getTime()) && { time: time.toISOString() }), // later than any Date: unknown
    ...(sequence !== undefined && { sequence: String(sequence) }),
    ...trace,
  };
  const prefixed = Object.entries(attributes).map(([name, value]) => [`${prefix}${name}`, value]);
  return { 'content-type': 'application/json', ...Object.fromEntries(prefixed) };
}
