import type { StandardSchemaV1 } from '@standard-schema/spec';
import { MailroomError } from './errors.ts';
import { fullIssues, maskedIssues } from './payload-issues.ts';

/** The longest chain: an event may have so many before it. The next one is refused, with `TOO_MANY_HOPS`. */
export const HOPS_MAX = 32;

/**
 * What travels: the stored form of an event, the EventBridge `detail`, and what a handler is given. All times
 * are epoch milliseconds.
 */
export interface Envelope<T extends string = string, D = unknown> {
  /** UUIDv7, minted once when the outbox row is written. The only key that any dedup may use. */
  readonly eventId: string;
  /** The event's name and the EventBridge `detail-type`, e.g. `OrderPlaced`. */
  readonly type: T;
  /** The version of `data`'s shape, from 1. */
  readonly version: number;
  /** What kind of thing it happened to, e.g. `Order`. */
  readonly aggregateType: string;
  /** Which one, e.g. the order's id. */
  readonly aggregateId: string;
  /** When it happened, epoch milliseconds. */
  readonly occurredAt: number;
  /** Carried unchanged through the whole chain of events that the first one caused. */
  readonly correlationId: string;
  /** The id of the event that caused this one; absent on the first of a chain. */
  readonly causationId?: string | undefined;
  /** How many events of the chain came before this one, up to {@link HOPS_MAX}; absent on the first. */
  readonly hops?: number | undefined;
  /** An X-Ray trace header, carried along. */
  readonly traceId?: string | undefined;
  /** A number of the producer's own that orders the events of one aggregate; Mailroom promises no order. */
  readonly sequence?: number | undefined;
  /** The payload, valid by the catalogue's schema. */
  readonly data: D;
}

/** An event as a handler receives it: the envelope, and the service that published it. */
export interface ReceivedEvent<T extends string = string, D = unknown> extends Envelope<T, D> {
  /** The service that owns the event: the EventBridge `source` that it came with, checked against its definition. */
  readonly source: string;
}

/** Names an event: the service that owns it, and its type. Every {@link EventDefinition} is one. */
export interface EventRef {
  /** The owning service: the EventBridge `source`, e.g. `orders`. */
  readonly source: string;
  /** The event's name: the EventBridge `detail-type`, e.g. `OrderPlaced`. */
  readonly type: string;
}

/** What a producer says of an event; the outbox adds id, times and correlation. */
export interface EventInput<D> {
  /** Which thing it happened to. */
  readonly aggregateId: string;
  /** The payload, as its schema takes it. */
  readonly data: D;
  /** @default the time of the commit */
  readonly occurredAt?: number | undefined;
  /** @default inside a consumer the handled event's, else the event's own id */
  readonly correlationId?: string | undefined;
  /** @default inside a consumer the handled event's id, else absent */
  readonly causationId?: string | undefined;
  /** An X-Ray trace header, carried along. @default inside a consumer the handled event's, else none */
  readonly traceId?: string | undefined;
  /** The producer's own number, for consumers that need an order. @default none */
  readonly sequence?: number | undefined;
}

/** An event that was described but not yet written: what `commit` and `entries` take. */
export interface EventDraft<D = unknown> extends EventInput<D> {
  /** The definition that made it. */
  readonly definition: AnyEventDefinition;
}

/** One event type of the catalogue, made by {@link defineEvent}. */
export interface EventDefinition<T extends string, S extends StandardSchemaV1> {
  /** The service that owns it, the only one that publishes it: the EventBridge `source`. */
  readonly source: string;
  /** The name, and the EventBridge `detail-type`. */
  readonly type: T;
  /** The version of the payload's shape, from 1. */
  readonly version: number;
  /** What kind of thing it happens to, e.g. `Order`. */
  readonly aggregateType: string;
  /** Validates the payload, when it is written and when it is read. */
  readonly schema: S;
  /** Turns a payload of an older version into today's; absent where there is none. */
  readonly upcast: ((data: unknown, version: number) => unknown) | undefined;
  /** Whether errors say what the validator says, payload and all; absent means no. */
  readonly exposeIssues?: boolean | undefined;
  /** Describes one event of this type, to be handed to `outbox.commit`, `outbox.entries` or `ctx.commit`. */
  create(input: EventInput<StandardSchemaV1.InferInput<S>>): EventDraft<StandardSchemaV1.InferInput<S>>;
}

/** An event definition of any type and payload. */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions holds schemas of any type
export type AnyEventDefinition = EventDefinition<string, any>;

/** The event that a handler of this definition is given. */
export type EventOf<E extends AnyEventDefinition> =
  E extends EventDefinition<infer T, infer S> ? ReceivedEvent<T, StandardSchemaV1.InferOutput<S>> : never;

/**
 * Adds an event type to the catalogue. Payloads are validated by `schema` when they are written and again when
 * they are read; a payload of an older version goes through `upcast` first.
 *
 * The service in `source` owns the event. It is the only one that may publish it, and a consumer that subscribes to it
 * rejects an event of the same type from another service (`WRONG_SOURCE`).
 *
 * @param definition.source - the owning service, as `mailroom.addProducer` and `InboxConsumer` name it; 1 to 256 characters
 * @param definition.type - the name, and the EventBridge `detail-type`; 1 to 128 characters
 * @param definition.version - a whole number from 1; raise it when the payload's shape changes
 * @param definition.schema - any Standard Schema validator: zod, valibot, arktype, …
 * @param definition.upcast - turns a payload of an older version into today's; called once per read
 * @param definition.exposeIssues - puts the validator's own messages, every key, and the texts of what `schema` and `upcast` throw
 * into errors. They may quote the payload, and errors are logged and stored. Without it, an error names the path, where only
 * names that the schema declares are shown, and the kind of issue. @default false
 * @throws `BAD_EVENT_DEFINITION` when a member is out of range
 *
 * @example
 * ```ts
 * export const OrderPlaced = defineEvent({
 *   source: 'orders',
 *   type: 'OrderPlaced',
 *   version: 2,
 *   aggregateType: 'Order',
 *   schema: z.object({ totalCents: z.int() }),
 *   upcast: (data) => ({ totalCents: (data as { total: number }).total * 100 }),
 * });
 * ```
 */
export function defineEvent<const T extends string, S extends StandardSchemaV1>(definition: {
  readonly source: string;
  readonly type: T;
  readonly version: number;
  readonly aggregateType: string;
  readonly schema: S;
  readonly upcast?: (data: unknown, version: number) => unknown;
  readonly exposeIssues?: boolean;
}): EventDefinition<T, S> {
  const { source, type, version, aggregateType, schema, upcast, exposeIssues = false } = definition;
  const bad = (what: string) =>
    new MailroomError('BAD_EVENT_DEFINITION', `Event definition "${type}": ${what}`);
  if (typeof source !== 'string' || source.length < 1 || source.length > SOURCE_MAX) {
    throw bad(
      `source is ${JSON.stringify(source)}; it must be the name of the service that owns the event, such as "orders", of 1 to ${SOURCE_MAX} characters`,
    );
  }
  if (type.length < 1 || type.length > DETAIL_TYPE_MAX) {
    throw bad(`type must have 1 to ${DETAIL_TYPE_MAX} characters, EventBridge's limit for a detail-type`);
  }
  if (!Number.isSafeInteger(version) || version < 1) {
    throw bad(`version is ${version}; it must be a whole number from 1`);
  }
  if (aggregateType === '') throw bad('aggregateType must not be empty');
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw bad('schema must be a Standard Schema validator, e.g. a zod 4 schema');
  }
  const made: EventDefinition<T, S> = {
    source,
    type,
    version,
    aggregateType,
    schema,
    upcast,
    exposeIssues,
    create: (input) => ({ ...input, definition: made }),
  };
  return made;
}

/** The longest `detail-type` (EventBridge API reference, PutEventsRequestEntry). */
const DETAIL_TYPE_MAX = 128;

/** The longest `source` (EventBridge API reference, PutEventsRequestEntry). */
const SOURCE_MAX = 256;

/**
 * Validates a payload.
 *
 * @returns the payload as the schema hands it on (with its defaults and transforms)
 * @throws `INVALID_PAYLOAD`, naming the first few fields and what is wrong with them, and nothing of the payload
 */
export async function validateData(definition: AnyEventDefinition, data: unknown): Promise<unknown> {
  const result = await definition.schema['~standard'].validate(data);
  if (result.issues === undefined) return result.value;
  const { exposeIssues, schema } = definition;
  const issues = exposeIssues ? fullIssues(result.issues) : maskedIssues(schema, result.issues);
  throw new MailroomError(
    'INVALID_PAYLOAD',
    `The payload of ${definition.type} v${definition.version} is not valid: ${issues}`,
  );
}
