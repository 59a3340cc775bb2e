import type { StandardSchemaV1 } from '@standard-schema/spec';
import { MailroomError } from '../base/errors.ts';
import {
  type AnyEventDefinition,
  type Envelope,
  type EventDefinition,
  type EventRef,
  type Numbered,
  RESERVED_SOURCE,
  type ReceivedEvent,
} from './event.ts';

/** The fields that identify an external event. */
export interface ExternalIdentity {
  /** The paths of the fields in the data, e.g. `['bucket.name', 'object.key']`. Absent: EventBridge's own id identifies the event. */
  readonly id?: readonly string[] | undefined;
  /** The path of the field with the event's time. Absent: the time of EventBridge, otherwise of the message's arrival in the queue. */
  readonly time?: string | undefined;
}

/** A subscription to an external event, as in a consumer's directory entry. Every {@link ExternalEventDefinition} is one. */
export interface ExternalSubscription extends EventRef {
  /** The fields that identify the event. */
  readonly external: ExternalIdentity;
}

/** The definition of an event that another system publishes, made by {@link externalEvent}. */
export interface ExternalEventDefinition<T extends string, S extends StandardSchemaV1>
  extends ExternalSubscription {
  /** The publishing system: the EventBridge `source`, or a name of your choice for a queue's messages. */
  readonly source: string;
  /** The name: the EventBridge `detail-type`, or a name of your choice for a queue's messages. */
  readonly type: T;
  /** Validates the data when it is read. */
  readonly schema: S;
  /** Include the validator's own messages, which may quote the data, in errors. */
  readonly exposeIssues: boolean;
}

/** A definition of an external event with any type and data. */
// biome-ignore lint/suspicious/noExplicitAny: a list of definitions holds schemas of any type
export type AnyExternalEventDefinition = ExternalEventDefinition<string, any>;

/** An external event as its handler receives it. It has no version, aggregate or outbox row: its publisher does not use Mailroom. */
export interface ExternalEvent<T extends string = string, D = unknown> {
  /** A UUIDv8, computed from the source, the type and the id fields: the same for every delivery. Use only this key to deduplicate. */
  readonly eventId: string;
  /** The value of the id field as text; with several id fields, their values as a JSON list. */
  readonly externalId: string;
  /** The publishing system, as in the definition. */
  readonly source: string;
  /** The event's name, as in the definition. */
  readonly type: T;
  /** The time of the event, epoch milliseconds: see `time` of {@link externalEvent}. */
  readonly occurredAt: number;
  /** The event's own id: an external event starts a chain. */
  readonly correlationId: string;
  /** The data, validated by the schema: the `detail` of an EventBridge event, the `Message` of an SNS notification, or the body. */
  readonly data: D;
}

/**
 * Defines an event that Mailroom did not write: an event of an AWS service, a partner or another system. A consumer handles it
 * behind the same inbox as any other event: with a lease, `ctx.once`, `ctx.commit`, retries and rejection. Mailroom does not record
 * its publication, so the audit cannot report it as missing.
 *
 * The message may be an EventBridge event, whose `detail` is the data; an SNS notification, whose `Message` is the data as JSON;
 * or any other JSON object. EventBridge events are matched by `source` and `type`. Any other message is read as the consumer's
 * external event, if the consumer has exactly one.
 *
 * @param definition.source - the EventBridge `source`, e.g. `aws.s3`, or a name of your choice; 1 to 256 characters, not `mailroom`
 * @param definition.type - the EventBridge `detail-type`, e.g. `Object Created`, or a name of your choice; 1 to 128 characters
 * @param definition.schema - any Standard Schema validator for the data
 * @param definition.id - the path of the field in the data that identifies the event, or of up to 8 fields that do so together.
 * Each must hold a string of 1 to 2,048 characters or a whole number, otherwise the message is rejected with `BAD_EXTERNAL_ID`.
 * @default the id of EventBridge, of a CloudEvent or of the broker: if the publisher publishes the event again, its id may change, and it is handled again
 * @param definition.time - the path of a field with the event's time: ISO 8601 text with a time zone, or a number of seconds,
 * milliseconds, microseconds or nanoseconds since 1970, recognized by its size. A message without it is rejected with `BAD_EXTERNAL_TIME`. @default the time of EventBridge, otherwise the
 * time at which SQS received the message
 * @param definition.exposeIssues - includes the validator's own messages, which may quote the data, in errors @default false
 * @throws `BAD_EVENT_DEFINITION` if a property is out of range
 *
 * @example
 * ```ts
 * export const ObjectCreated = externalEvent({
 *   source: 'aws.s3',
 *   type: 'Object Created',
 *   id: ['bucket.name', 'object.key', 'object.sequencer'],
 *   schema: z.object({ bucket: z.object({ name: z.string() }), object: z.object({ key: z.string() }) }),
 * });
 * ```
 */
export function externalEvent<const T extends string, S extends StandardSchemaV1>(definition: {
  readonly source: string;
  readonly type: T;
  readonly schema: S;
  readonly id?: string | readonly string[];
  readonly time?: string;
  readonly exposeIssues?: boolean;
}): ExternalEventDefinition<T, S> {
  const { source, type, schema, id, time, exposeIssues = false } = definition;
  const external = { id: typeof id === 'string' ? [id] : id, time };
  const [problem] = externalEventProblems({ source, type, external });
  if (problem !== undefined)
    throw new MailroomError('BAD_EVENT_DEFINITION', `External event "${type}": ${problem}.`);
  if (typeof schema?.['~standard']?.validate !== 'function') {
    throw new MailroomError(
      'BAD_EVENT_DEFINITION',
      `External event "${type}": schema must be a Standard Schema validator, e.g. a zod 4 schema.`,
    );
  }
  return { source, type, schema, exposeIssues, external };
}

/** The maximum length of a `source`, in characters (EventBridge API reference, PutEventsRequestEntry). */
const SOURCE_MAX = 256;

/** The maximum length of a `detail-type`, in characters (EventBridge API reference, PutEventsRequestEntry). */
const DETAIL_TYPE_MAX = 128;

/** The maximum number of id fields: more than this are data rather than an identity. */
const ID_FIELDS_MAX = 8;

/** The maximum length of a path, in characters. */
const PATH_MAX = 256;

/**
 * Validates a subscription to an external event.
 *
 * @returns one sentence per problem, without a full stop
 */
export function externalEventProblems({ source, type, external }: ExternalSubscription): string[] {
  const { id, time } = external;
  const isList = id === undefined || (Array.isArray(id) && id.length >= 1 && id.length <= ID_FIELDS_MAX);
  const paths: [string, unknown][] = isList ? (id ?? []).map((path) => ['id', path]) : [];
  if (time !== undefined) paths.push(['time', time]);
  return [
    ...(isText(source, SOURCE_MAX) && source !== RESERVED_SOURCE
      ? []
      : [
          `source is ${JSON.stringify(source)}; it must be EventBridge's source of the event or a name of your choice, of 1 to ${SOURCE_MAX} characters, and not "${RESERVED_SOURCE}"`,
        ]),
    ...(isText(type, DETAIL_TYPE_MAX)
      ? []
      : [`type is ${JSON.stringify(type)}; it must have 1 to ${DETAIL_TYPE_MAX} characters`]),
    ...(isList
      ? []
      : [
          `id is ${JSON.stringify(id)}; it must be a path such as "id", or a list of 1 to ${ID_FIELDS_MAX} paths`,
        ]),
    ...paths
      .filter(([, path]) => !isPath(path))
      .map(
        ([name, path]) =>
          `${name} contains ${JSON.stringify(path)}; a path is the names of nested fields of the data, separated by dots, e.g. "object.key", of at most ${PATH_MAX} characters`,
      ),
  ];
}

function isText(value: unknown, max: number): boolean {
  return typeof value === 'string' && value.length >= 1 && value.length <= max;
}

function isPath(value: unknown): boolean {
  return isText(value, PATH_MAX) && !String(value).split('.').includes('');
}

/** The definition of an event that a handler can take: a Mailroom event of the catalog, or an external event. */
export type HandledDefinition = AnyEventDefinition | AnyExternalEventDefinition;

/** The event that a handler of this definition receives. */
export type EventOf<E extends HandledDefinition> =
  E extends EventDefinition<infer T, infer S, infer Q>
    ? ReceivedEvent<T, StandardSchemaV1.InferOutput<S>> & Numbered<Q>
    : E extends ExternalEventDefinition<infer T, infer S>
      ? ExternalEvent<T, StandardSchemaV1.InferOutput<S>>
      : never;

/** An event on its way to a handler: the envelope of a Mailroom event, or an external event. */
export type HandledEvent = Envelope | ExternalEvent;

/** Returns true for the definition of an external event. */
export function isExternal(definition: HandledDefinition): definition is AnyExternalEventDefinition {
  return 'external' in definition;
}
