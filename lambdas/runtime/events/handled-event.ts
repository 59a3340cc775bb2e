import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { AnyEventDefinition, Envelope, EventDefinition, ReceivedEvent } from './event.ts';
import type { AnyForeignEventDefinition, ForeignEvent, ForeignEventDefinition } from './foreign-event.ts';

/** The definition of an event that a handler can take: a Mailroom event of the catalogue, or a foreign event. */
export type HandledDefinition = AnyEventDefinition | AnyForeignEventDefinition;

/** The event that a handler of this definition receives. */
export type EventOf<E extends HandledDefinition> =
  E extends EventDefinition<infer T, infer S>
    ? ReceivedEvent<T, StandardSchemaV1.InferOutput<S>>
    : E extends ForeignEventDefinition<infer T, infer S>
      ? ForeignEvent<T, StandardSchemaV1.InferOutput<S>>
      : never;

/** An event on its way to a handler: the envelope of a Mailroom event, or a foreign event. */
export type HandledEvent = Envelope | ForeignEvent;

/** Returns true for the definition of a foreign event. */
export function isForeign(definition: HandledDefinition): definition is AnyForeignEventDefinition {
  return 'foreign' in definition;
}
