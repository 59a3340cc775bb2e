import type { StandardSchemaV1 } from '@standard-schema/spec';
import { MailroomError } from '../base/errors.ts';
import { hasLoneSurrogate } from '../base/json.ts';
import type { PayloadReference } from './payloads.ts';

/** The source of Mailroom's own events, which no service may use. */
export const RESERVED_SOURCE = 'mailroom';

/** The maximum number of events that may precede an event in its chain; one more fails with `TOO_MANY_HOPS`. */
export const HOPS_MAX = 32;

/**
 * An event as it is stored in the outbox, published as the EventBridge `detail`, and passed to handlers. All times are epoch
 * milliseconds.
 */
export interface Envelope<T extends string = string, D = unknown> {
  /** A UUIDv7, created once when the outbox row is written. Use only this key to deduplicate. */
  readonly eventId: string;
  /** The event's name and the EventBridge `detail-type`, e.g. `OrderPlaced`. */
  readonly type: T;
  /** The version of `data`'s shape, from 1. */
  readonly version: number;
  /** The kind of entity that the event is about, e.g. `Order`. */
  readonly aggregateType: string;
  /** The id of that entity, e.g. the order's id. */
  readonly aggregateId: string;
  /** The time of the event, epoch milliseconds. */
  readonly occurredAt: number;
  /** Shared by the first event of a chain and every event that it causes, directly or indirectly. */
  readonly correlationId: string;
  /** The id of the event that caused this one; absent on the first of a chain. */
  readonly causationId?: string | undefined;
  /** The number of events before this one in the chain, up to {@link HOPS_MAX}; absent on the first. */
  readonly hops?: number | undefined;
  /** An X-Ray trace header, passed on unchanged. */
  readonly traceId?: string | undefined;
  /** The W3C trace context of the span that wrote the event. Anyone may have written it: it can be malformed. */
  readonly traceparent?: string | undefined;
  /** The `tracestate` that belongs to `traceparent`. */
  readonly tracestate?: string | undefined;
  /** The number of the event among its aggregate's, from the producer. Only an ordered consumer applies events in that order. */
  readonly sequence?: number | undefined;
  /** The object in S3 that holds the payload, if it is above the threshold of its Mailroom: the published event then has no `data`. */
  readonly payload?: PayloadReference | undefined;
  /** The payload, validated by the schema of its definition. */
  readonly data: D;
}

/** An event as a handler receives it: the envelope, and the service that published it. */
export interface ReceivedEvent<T extends string = string, D = unknown> extends Envelope<T, D> {
  /** The service that owns the event: the EventBridge `source` of the message, checked against the event's definition. */
  readonly source: string;
}

/** Names an event: the service that owns it, and its type. Every {@link EventDefinition} is one. */
export interface EventRef {
  /** The owning service: the EventBridge `source`, e.g. `orders`. */
  readonly source: string;
  /** The event's name: the EventBridge `detail-type`, e.g. `OrderPlaced`. */
  readonly type: string;
}

/** The producer's description of an event; the outbox adds the id, times and correlation. */
export interface EventInput<D> {
  /** The id of the entity that the event is about. */
  readonly aggregateId: string;
  /** The payload, as the schema's input type. */
  readonly data: D;
  /** @default the time of the commit */
  readonly occurredAt?: number | undefined;
  /** @default the handled event's correlation id inside a consumer; otherwise the event's own id */
  readonly correlationId?: string | undefined;
  /** @default the handled event's id inside a consumer; otherwise absent */
  readonly causationId?: string | undefined;
  /**
   * An X-Ray trace header of at most 500 characters. EventBridge and later events of the chain get it unchanged, if it is well-formed.
   *
   * @default the handled event's inside a consumer; otherwise that of the current invocation, if X-Ray samples it
   */
  readonly traceId?: string | undefined;
  /**
   * A W3C trace context. A malformed one is ignored, so you can pass on a request's header.
   *
   * @default the active span's, with an OpenTelemetry SDK; otherwise the handled event's inside a consumer, and none elsewhere
   */
  readonly traceparent?: string | undefined;
  /** The `tracestate` that belongs to `traceparent`; ignored if it is malformed or has more than 512 characters. @default none */
  readonly tracestate?: string | undefined;
  /**
   * The number of the event among its aggregate's, for consumers that need an order. Required if the definition declares it: then a whole
   * number from 1. @default none
   */
  readonly sequence?: number | undefined;
  /**
   * The time before which the event is not published, epoch milliseconds, at most 366 days ahead. If it has passed, up to 5 minutes ago,
   * the event is an ordinary one. @default the event is published at once
   */
  readonly deliverAt?: number | undefined;
  /**
   * Names a business fact that is committed once, e.g. `invoice-2026-07`: the commit of a second event of this type under the same text is refused
   * with `ALREADY_COMMITTED`, whose `firstEventId` is the first one. 1 to 1,024 bytes. The text is taken for 35 days from the commit, or from
   * `deliverAt`, also if the event is cancelled. Only for `outbox.commit` of an outbox in DynamoDB: in SQL, use a unique index. @default none
   */
  readonly uniqueBy?: string | undefined;
}

/** An event that is not yet written: the input of `commit` and `entries`. */
export interface EventDraft<D = unknown> extends EventInput<D> {
  /** The definition that created it. */
  readonly definition: AnyEventDefinition;
}

/** One event type of the catalog, made by {@link defineEvent}. */
export interface EventDefinition<T extends string, S extends StandardSchemaV1, Q extends boolean = boolean> {
  /** The owning service, and the only one that publishes the event: the EventBridge `source`. */
  readonly source: string;
  /** The name: the EventBridge `detail-type`. */
  readonly type: T;
  /** The version of the payload's shape, from 1. */
  readonly version: number;
  /** The kind of entity that the event is about, e.g. `Order`. */
  readonly aggregateType: string;
  /** Validates the payload, on write and on read. */
  readonly schema: S;
  /** Converts a payload of an older version to the current one; absent if older versions are not supported. */
  readonly upcast: ((data: unknown, version: number) => unknown) | undefined;
  /** Each event has a `sequence`: the numbers of its aggregate's events are 1, 2, 3 and so on. */
  readonly sequence: Q;
  /** Include the validator's own messages, which may quote the payload, in errors; absent means no. */
  readonly exposeIssues?: boolean | undefined;
  /** Describes one event of this type, to pass to `outbox.commit`, `outbox.entries` or `ctx.commit`. */
  create(
    input: EventInput<StandardSchemaV1.InferInput<S>> & Numbered<Q>,
  ): EventDraft<StandardSchemaV1.InferInput<S>>;
}

/** The `sequence` of an event whose definition declares it: a whole number from 1. Such an event cannot be scheduled. */
export type Numbered<Q> = [Q] extends [true] ? { readonly sequence: number } : unknown;

/** An event definition with any type and payload. */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions holds schemas of any type
export type AnyEventDefinition = EventDefinition<string, any, boolean>;

/**
 * Defines an event type. `schema` validates payloads when they are written and again when they are read; a payload of an older
 * version is converted by `upcast` first.
 *
 * The service in `source` owns the event. Only that service may publish it, and a consumer that subscribes to it rejects
 * events of the same type from any other service (`WRONG_SOURCE`).
 *
 * @param definition.source - the owning service, by the name that `mailroom.addProducer` and `InboxConsumer` use; 1 to 256 characters,
 * not `mailroom`
 * @param definition.type - the name: the EventBridge `detail-type`; 1 to 128 characters
 * @param definition.version - a whole number from 1; increase it when the shape of the payload changes
 * @param definition.schema - any Standard Schema validator: zod, valibot, arktype, …
 * @param definition.upcast - converts a payload of an older version to the current one; called once per read
 * @param definition.exposeIssues - includes in errors the validator's own messages, every key, and the messages of errors that
 * `schema` and `upcast` throw. They may quote the payload, and errors are logged and stored. By default, an error contains only
 * the kind of issue and its path, in which only names that the schema declares are shown. @default false
 * @param definition.sequence - each event carries a `sequence`, the number of its aggregate's event, so that consumers can be ordered:
 * `latest` and `strict`. {@link nextVersion} makes the numbers @default false
 * @throws `BAD_EVENT_DEFINITION` if a property is out of range, `source` is `mailroom`, which is reserved, or the names of a numbered event have
 * more than 900 bytes
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
export function defineEvent<
  const T extends string,
  S extends StandardSchemaV1,
  const Q extends boolean = false,
>(definition: {
  readonly source: string;
  readonly type: T;
  readonly version: number;
  readonly aggregateType: string;
  readonly schema: S;
  readonly upcast?: (data: unknown, version: number) => unknown;
  readonly exposeIssues?: boolean;
  readonly sequence?: Q;
}): EventDefinition<T, S, Q> {
  const { source, type, version, aggregateType, schema, upcast, exposeIssues = false } = definition;
  const sequence = (definition.sequence ?? false) as Q;
  const bad = (what: string) =>
    new MailroomError('BAD_EVENT_DEFINITION', `Event definition "${type}": ${what}.`);
  if (typeof source !== 'string' || source.length < 1 || source.length > SOURCE_MAX) {
    throw bad(
      `source is ${JSON.stringify(source)}; it must be the name of the service that owns the event, such as "orders", of 1 to ${SOURCE_MAX} characters`,
    );
  }
  if (source === RESERVED_SOURCE) {
    throw bad(`source is "${RESERVED_SOURCE}", which is reserved; use the owning service's name`);
  }
  if (type.length < 1 || type.length > DETAIL_TYPE_MAX) {
    throw bad(`type must have 1 to ${DETAIL_TYPE_MAX} characters, EventBridge's limit for a detail-type`);
  }
  if (!Number.isSafeInteger(version) || version < 1) {
    throw bad(`version is ${version}; it must be a whole number from 1`);
  }
  if (aggregateType === '') throw bad('aggregateType must not be empty');
  for (const [name, text] of Object.entries({ source, type, aggregateType }))
    if (hasLoneSurrogate(text)) throw bad(`${name} has half of a surrogate pair`);
  const bytes = namesBytes({ source, type, aggregateType });
  if (sequence && bytes > NUMBERED_NAMES_MAX_BYTES) {
    throw bad(
      `source, type and aggregateType have ${bytes} bytes together; with a sequence they may have ${NUMBERED_NAMES_MAX_BYTES}, percent-encoded, because ordered consumers use them as a key. Shorten one`,
    );
  }
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw bad('schema must be a Standard Schema validator, e.g. a zod 4 schema');
  }
  const made: EventDefinition<T, S, Q> = {
    source,
    type,
    version,
    aggregateType,
    schema,
    upcast,
    exposeIssues,
    sequence,
    create: (input) => ({ ...input, definition: made }),
  };
  return made;
}

/** The maximum length of a `detail-type`, in characters (EventBridge API reference, PutEventsRequestEntry). */
const DETAIL_TYPE_MAX = 128;

/**
 * The most bytes of the names of a numbered event, percent-encoded: an ordered consumer's key also contains its own name, a group and the
 * aggregate's id, and DynamoDB takes 2,048 bytes.
 */
export const NUMBERED_NAMES_MAX_BYTES = 900;

function namesBytes(names: Readonly<Record<string, string>>): number {
  return encodeURIComponent(Object.values(names).join('')).length;
}

/** The maximum length of a `source`, in characters (EventBridge API reference, PutEventsRequestEntry). */
const SOURCE_MAX = 256;
