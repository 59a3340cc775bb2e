import { errorClass, errorMessage, isMailroomError } from '../base/errors.ts';
import { parseJson, TOO_DEEP, textOf } from '../base/json.ts';
import { poison } from '../base/poison.ts';
import type { AnyEventDefinition, Envelope, EventRef, ReceivedEvent } from '../events/event.ts';
import {
  type ExternalEvent,
  type ExternalSubscription,
  type HandledDefinition,
  type HandledEvent,
  isExternal,
} from '../events/external-event.ts';
import { HEARTBEAT } from '../events/heartbeat-event.ts';
import { validateData } from '../events/payload-validation.ts';
import { referenceProblem } from '../events/payloads.ts';
import { isEventId } from '../store/event-id.ts';
import { readExternal, unwrapped } from './external-message.ts';
import type { Handler } from './handler.ts';
import { formOf, isS3TestEvent, textFormOf } from './message-form.ts';

/** The maximum number of characters of a name from a message that an error quotes. */
const QUOTED_MAX = 100;

/** A delivery from EventBridge: its own `source` and `detail-type`, and the envelope, which may claim another type. */
export interface DeliveredEvent<E extends HandledEvent = HandledEvent> {
  /**
   * The publishing service and the type, as EventBridge received them. Empty strings if the message does not contain them. For an external
   * event, those of its definition.
   */
  readonly bus: EventRef;
  readonly envelope: E;
}

/** The external events of a consumer, and the time of arrival of a message that does not contain its own time, epoch milliseconds. */
export interface ExternalReading {
  readonly subscriptions: readonly ExternalSubscription[];
  readonly arrivedAt: number;
  /** The remedy for a body that is not JSON. @default for a message in a queue */
  readonly remedy?: string | undefined;
}

/**
 * Reads the body of a message: an external event of the consumer, or an EventBridge event as JSON whose `detail` is the envelope.
 *
 * @param external - the consumer's external events @default none
 * @throws `NO_EVENT` if it is healthy and carries no event, `UNREADABLE_MESSAGE` if it is neither, `BAD_EXTERNAL_ID`, `BAD_EXTERNAL_TIME`; a retry cannot succeed
 */
export function readDelivered(body: string): DeliveredEvent<Envelope>;
export function readDelivered(body: string, external: ExternalReading): DeliveredEvent;
export function readDelivered(body: string, external?: ExternalReading): DeliveredEvent {
  const parsed = parseBody(body, external?.remedy ?? SENDER);
  if (isS3TestEvent(parsed) || (isSnsText(parsed) && isS3TestEvent(unwrapped(parsed))))
    throw poison(
      'NO_EVENT',
      'The message is a test of S3 (s3:TestEvent), which carries no event. Delete it.',
    );
  const event = external && readExternal(parsed, external.subscriptions, external.arrivedAt);
  return event === undefined ? readMailroomEvent(parsed) : { bus: event, envelope: event };
}

/** A cheap look at the kind of a body, before its message is parsed a second time. */
function isSnsText(body: unknown): boolean {
  const { Type: kind, Message: text } = Object(body) as Readonly<Record<string, unknown>>;
  return kind === 'Notification' && typeof text === 'string' && text.includes('s3:TestEvent');
}

function readMailroomEvent(body: unknown): DeliveredEvent<Envelope> {
  if (typeof body !== 'object' || body === null || !('detail' in body)) {
    const form = formOf(body);
    if (form !== undefined) throw poison('UNREADABLE_MESSAGE', `The message's body is ${form}`);
    throw poison(
      'UNREADABLE_MESSAGE',
      `The message's body is not an EventBridge event: it has no detail. ${SENDER}`,
    );
  }
  const { source, 'detail-type': type, detail } = body as Readonly<Record<string, unknown>>;
  const problem = envelopeProblem(detail);
  if (problem !== undefined)
    throw poison('UNREADABLE_MESSAGE', `The message's detail is not an envelope: ${problem}. ${SENDER}`);
  return { bus: { source: textOf(source) ?? '', type: textOf(type) ?? '' }, envelope: detail as Envelope };
}

function parseBody(body: unknown, remedy: string): unknown {
  const text = typeof body === 'string' ? body : ''; // a test of a consumer passes anything
  try {
    return parseJson(text.charCodeAt(0) === BYTE_ORDER_MARK ? text.slice(1) : text);
  } catch (error) {
    if (isMailroomError(error, 'JSON_TOO_DEEP'))
      throw poison('UNREADABLE_MESSAGE', `The message's body is ${TOO_DEEP}. ${SENDER}`);
    // The parser's own message quotes the body, and this message is logged.
    const form = textFormOf(text);
    const problem = form === undefined ? 'not JSON' : `${form}, not JSON`;
    throw poison('UNREADABLE_MESSAGE', `The message's body is ${problem}. ${remedy}`);
  }
}

const BYTE_ORDER_MARK = 0xfeff;

function envelopeProblem(detail: unknown): string | undefined {
  if (typeof detail !== 'object' || detail === null) return 'detail is not an object';
  const fields = detail as Record<string, unknown>;
  const { eventId, type, version, aggregateType, aggregateId, occurredAt, correlationId, hops } = fields;
  if (!isEventId(eventId)) return 'eventId is not a UUIDv7 in lowercase';
  const texts = { type, aggregateType, aggregateId, correlationId };
  for (const [name, value] of Object.entries(texts)) {
    if (typeof value !== 'string' || value === '') return `${name} is not a non-empty string`;
  }
  if (!Number.isSafeInteger(version) || Number(version) < 1) return 'version is not a whole number from 1';
  if (!Number.isSafeInteger(occurredAt)) return 'occurredAt is not a time in epoch milliseconds';
  // A lower number would restart the count of an endless loop.
  if (hops !== undefined && (!Number.isSafeInteger(hops) || Number(hops) < 1))
    return 'hops is not a whole number from 1';
  return 'data' in detail ? undefined : referenceProblem(fields);
}

/** The remedy for a message that is not an event. A rule that changes events makes each of them one. */
const SENDER =
  'If a rule of Mailroom sent it, that rule changes events, and `npx cdk-mailroom status` names it. Otherwise, find its sender, and discard the message.';

/** The handlers of a consumer, keyed by the {@link refText} of their events. */
export type Handlers = ReadonlyMap<string, Handler>;

/** A unique text for each event reference: no `source` or `detail-type` contains a line break. */
export function refText({ source, type }: EventRef): string {
  return `${source}\n${type}`;
}

/**
 * Finds the handler of an event. The type alone does not determine it, because another service may publish a type of the same
 * name.
 *
 * @throws `WRONG_TYPE` if the envelope's type differs from EventBridge's, `WRONG_SOURCE` if a service other than the owner
 * published the event, `UNKNOWN_EVENT_TYPE` if the consumer has no handler for its type; a retry cannot succeed
 */
export function handlerOf(handlers: Handlers, consumer: string, { bus, envelope }: DeliveredEvent): Handler {
  const { type } = envelope;
  if (bus.type !== type) {
    throw poison(
      'WRONG_TYPE',
      `This message was delivered as ${quoted(bus.type)}, but its envelope is of type ${quoted(type)}. ` +
        'Mailroom writes the same type in both: identify the sender before you redrive the message.',
    );
  }
  const handler = handlers.get(refText(bus));
  if (handler !== undefined) return handler;
  const owners = [...handlers.values()]
    .map((one) => one.definition)
    .filter((one) => one.type === type && one !== HEARTBEAT);
  if (owners.length === 0) {
    throw poison(
      'UNKNOWN_EVENT_TYPE',
      `Consumer ${consumer} has no handler for ${type}. Add one, or remove the event from the subscription.`,
    );
  }
  throw poison(
    'WRONG_SOURCE',
    `${type} came from ${quoted(bus.source)}; consumer ${consumer} accepts it only from ` +
      `${owners.map(({ source }) => quoted(source)).join(', ')}. If that service owns the event now, change the source in ` +
      'its definition and redrive; otherwise discard the message.',
  );
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_MAX));
}

/**
 * Converts an envelope to the event that the handler receives: the payload in its current version, validated by its schema.
 *
 * @throws `UNKNOWN_EVENT_VERSION` or `INVALID_PAYLOAD`; a retry cannot succeed
 */
export async function readEvent(definition: AnyEventDefinition, envelope: Envelope): Promise<ReceivedEvent>;
export async function readEvent(
  definition: HandledDefinition,
  event: HandledEvent,
): Promise<ReceivedEvent | ExternalEvent>;
export async function readEvent(
  definition: HandledDefinition,
  event: HandledEvent,
): Promise<ReceivedEvent | ExternalEvent> {
  // A handler of an external event only receives messages that were read by its definition, and the other way round.
  if (isExternal(definition))
    return { ...(event as ExternalEvent), data: await validData(definition, event.data) };
  return currentEvent(definition, event as Envelope);
}

/**
 * As {@link readEvent}, from a copy of the message's content: what a handler changes in the event of one run is not in that of the next.
 * The result is not copied, because a schema may have made instances of classes.
 */
export async function freshEvent(definition: HandledDefinition, event: HandledEvent): Promise<HandledEvent> {
  return readEvent(definition, structuredClone(event));
}

async function currentEvent(definition: AnyEventDefinition, envelope: Envelope): Promise<ReceivedEvent> {
  const { version } = envelope;
  if (version > definition.version) {
    throw poison(
      'UNKNOWN_EVENT_VERSION',
      `${envelope.type} has version ${version}, but this consumer supports versions up to ${definition.version}. Deploy the consumer ` +
        'with the newer definition, then redrive.',
    );
  }
  const data = version < definition.version ? upcast(definition, envelope) : envelope.data;
  const valid = await validData(definition, data);
  return { ...envelope, source: definition.source, version: definition.version, data: valid };
}

async function validData(definition: HandledDefinition, data: unknown): Promise<unknown> {
  try {
    return await validateData(definition, data);
  } catch (error) {
    if (isMailroomError(error, 'INVALID_PAYLOAD')) throw poison('INVALID_PAYLOAD', errorMessage(error));
    throw poison(
      'INVALID_PAYLOAD',
      `The schema of ${definition.type} failed: ${thrownText(definition, error)}`,
    );
  }
}

function upcast(definition: AnyEventDefinition, envelope: Envelope): unknown {
  if (definition.upcast === undefined) {
    throw poison(
      'UNKNOWN_EVENT_VERSION',
      `${envelope.type} has version ${envelope.version}; this consumer supports only ${definition.version} and has no upcast. Add one to ` +
        'its definition, then redrive.',
    );
  }
  try {
    return definition.upcast(envelope.data, envelope.version);
  } catch (error) {
    throw poison(
      'INVALID_PAYLOAD',
      `The upcast of ${envelope.type} v${envelope.version} failed: ${thrownText(definition, error)}`,
    );
  }
}

/** The message of an error that the definition's own code threw for a payload; a parser's message may quote the payload. */
function thrownText({ exposeIssues }: HandledDefinition, error: unknown): string {
  return exposeIssues ? errorMessage(error) : errorClass(error);
}
