import type { StandardSchemaV1 } from '@standard-schema/spec';
import { type EventDefinition, type EventRef, RESERVED_SOURCE } from './event.ts';

/** A heartbeat's payload is for EventBridge: a text at each path by which a consumer's rule groups messages. */
const ANY_PAYLOAD: StandardSchemaV1<object> = {
  '~standard': { version: 1, vendor: 'mailroom', validate: (value) => ({ value: Object(value) }) },
};

/**
 * The event that a scheduled heartbeat commits. Every consumer subscribes to it, and its runtime acknowledges it without a handler.
 * `defineEvent` refuses its source, so it is written out here.
 */
export const HEARTBEAT: EventDefinition<'Heartbeat', typeof ANY_PAYLOAD, false> = {
  source: RESERVED_SOURCE,
  type: 'Heartbeat',
  version: 1,
  aggregateType: 'Mailroom',
  schema: ANY_PAYLOAD,
  upcast: undefined,
  sequence: false,
  create: (input) => ({ ...input, definition: HEARTBEAT }),
};

/** Returns true if an event is a heartbeat, by its source and type. */
export function isHeartbeat({ source, type }: EventRef): boolean {
  return source === HEARTBEAT.source && type === HEARTBEAT.type;
}
