import type { SQSRecord } from 'aws-lambda';
import { errorCode, errorMessage, isMailroomError, type MailroomError, PoisonMessage } from '../errors.ts';
import {
  type AnyEventDefinition,
  type Envelope,
  type EventRef,
  type ReceivedEvent,
  validateData,
} from '../event.ts';
import { parseJson, TOO_DEEP } from '../json-depth.ts';
import { isEventId } from '../store/event-id.ts';
import type { Handler } from './handler.ts';

/** The most characters of a name from a message in an error's text. */
const QUOTED_MAX = 100;

/** What EventBridge delivered: its own `source` and `detail-type`, and the envelope. The envelope may claim another type. */
export interface DeliveredEvent {
  /** Who published it, and as what. Empty texts where the message does not say. */
  readonly bus: EventRef;
  readonly envelope: Envelope;
}

/**
 * Reads an SQS record: the body is EventBridge's event as JSON, its `detail` the envelope.
 *
 * @throws `UNREADABLE_MESSAGE` when it is not; trying again cannot help
 */
export function readDelivered(record: Pick<SQSRecord, 'body'>): DeliveredEvent {
  const { source, 'detail-type': type, detail } = parseBody(record.body);
  const problem = envelopeProblem(detail);
  if (problem !== undefined)
    throw poison('UNREADABLE_MESSAGE', `The message's detail is no envelope: ${problem}`);
  return { bus: { source: textOf(source), type: textOf(type) }, envelope: detail as Envelope };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function parseBody(body: unknown): Record<string, unknown> {
  let event: unknown;
  try {
    event = parseJson(String(body));
  } catch (error) {
    if (isMailroomError(error, 'JSON_TOO_DEEP'))
      throw poison('UNREADABLE_MESSAGE', `The message's body is ${TOO_DEEP}`);
    // The parser's own message quotes the body, and what this says is logged.
    throw poison('UNREADABLE_MESSAGE', "The message's body is no JSON");
  }
  if (typeof event !== 'object' || event === null || !('detail' in event)) {
    throw poison('UNREADABLE_MESSAGE', "The message's body is no EventBridge event: it has no detail");
  }
  return { ...event };
}

function envelopeProblem(detail: unknown): string | undefined {
  if (typeof detail !== 'object' || detail === null) return 'detail is no object';
  const { eventId, type, version, aggregateType, aggregateId, occurredAt, correlationId } = detail as Record<
    string,
    unknown
  >;
  if (!isEventId(eventId)) return 'eventId is no UUIDv7 in lower case';
  const texts = { type, aggregateType, aggregateId, correlationId };
  for (const [name, value] of Object.entries(texts)) {
    if (typeof value !== 'string' || value === '') return `${name} is no text`;
  }
  if (!Number.isSafeInteger(version) || Number(version) < 1) return 'version is no whole number from 1';
  if (!Number.isSafeInteger(occurredAt)) return 'occurredAt is no time in epoch milliseconds';
  return 'data' in detail ? undefined : 'data is missing';
}

/** The handlers of a consumer, by {@link refText} of the events that they handle. */
export type Handlers = ReadonlyMap<string, Handler>;

/** A text that is the same for the same event only: no `source` and no `detail-type` has a line break. */
export function refText({ source, type }: EventRef): string {
  return `${source}\n${type}`;
}

/**
 * The handler of an event. Its type alone does not choose it: another service may publish a type of the same name.
 *
 * @throws `WRONG_TYPE` when the envelope claims another type than EventBridge, `WRONG_SOURCE` when another service published
 * it than the one that owns it, `UNKNOWN_EVENT_TYPE` when the consumer has no handler for its type; trying again cannot help
 */
export function handlerOf(handlers: Handlers, consumer: string, { bus, envelope }: DeliveredEvent): Handler {
  const { type } = envelope;
  if (bus.type !== type) {
    throw poison(
      'WRONG_TYPE',
      `EventBridge delivered this message as ${quoted(bus.type)}, but its envelope is of type ${quoted(type)}. ` +
        'Mailroom writes the same in both: find out who sent it before you redrive it.',
    );
  }
  const handler = handlers.get(refText(bus));
  if (handler !== undefined) return handler;
  const owners = [...handlers.values()].map((one) => one.definition).filter((one) => one.type === type);
  if (owners.length === 0) {
    throw poison(
      'UNKNOWN_EVENT_TYPE',
      `Consumer ${consumer} has no handler for ${type}. Add one, or take the event out of its subscription.`,
    );
  }
  throw poison(
    'WRONG_SOURCE',
    `${type} came from ${quoted(bus.source)}; consumer ${consumer} takes it from ` +
      `${owners.map(({ source }) => quoted(source)).join(', ')} only. If that service owns the event now, change the source in ` +
      'its definition and redrive; otherwise discard the message.',
  );
}

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, QUOTED_MAX));
}

/**
 * Turns an envelope into what the handler is given: today's version of the payload, valid by its schema.
 *
 * @throws `UNKNOWN_EVENT_VERSION` or `INVALID_PAYLOAD`; trying again cannot help
 */
export async function readEvent(definition: AnyEventDefinition, envelope: Envelope): Promise<ReceivedEvent> {
  const { version } = envelope;
  if (version > definition.version) {
    throw poison(
      'UNKNOWN_EVENT_VERSION',
      `${envelope.type} is of version ${version}, but this consumer knows up to ${definition.version}. Deploy the consumer ` +
        'with the newer definition, then redrive.',
    );
  }
  const data = version < definition.version ? upcast(definition, envelope) : envelope.data;
  try {
    const valid = await validateData(definition, data);
    return { ...envelope, source: definition.source, version: definition.version, data: valid };
  } catch (error) {
    if (isMailroomError(error, 'INVALID_PAYLOAD')) throw poison('INVALID_PAYLOAD', errorMessage(error));
    throw poison(
      'INVALID_PAYLOAD',
      `The schema of ${envelope.type} failed: ${thrownText(definition, error)}`,
    );
  }
}

function upcast(definition: AnyEventDefinition, envelope: Envelope): unknown {
  if (definition.upcast === undefined) {
    throw poison(
      'UNKNOWN_EVENT_VERSION',
      `${envelope.type} is of version ${envelope.version}; this consumer knows ${definition.version} and has no upcast. Add one to ` +
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

/** What a definition's own code threw at a payload: a parser's message quotes what it could not read. */
function thrownText({ exposeIssues }: AnyEventDefinition, error: unknown): string {
  return exposeIssues ? errorMessage(error) : errorCode(error);
}

/** An error of a message that no retry can help. */
export function poison(code: string, message: string): MailroomError {
  return new PoisonMessage(message, { code });
}
