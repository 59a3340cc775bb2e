import type { SQSRecord } from 'aws-lambda';
import { errorCode, errorMessage, isErrorWithCode, type MailroomError, PoisonMessage } from '../errors.ts';
import { type AnyEventDefinition, type Envelope, validateData } from '../event.ts';
import { isEventId } from '../event-id.ts';
import { parseJson, TOO_DEEP } from '../json-depth.ts';
import type { Handler } from './handler.ts';

/**
 * Reads the envelope out of an SQS record: the body is EventBridge's event as JSON, its `detail` the envelope.
 *
 * @throws `UNREADABLE_MESSAGE` when it is not; trying again cannot help
 */
export function readEnvelope(record: Pick<SQSRecord, 'body'>): Envelope {
  const detail = parseBody(record.body);
  const problem = envelopeProblem(detail);
  if (problem !== undefined)
    throw poison('UNREADABLE_MESSAGE', `The message's detail is no envelope: ${problem}`);
  return detail as Envelope;
}

function parseBody(body: unknown): unknown {
  let event: unknown;
  try {
    event = parseJson(String(body));
  } catch (error) {
    if (isErrorWithCode(error, 'JSON_TOO_DEEP'))
      throw poison('UNREADABLE_MESSAGE', `The message's body is ${TOO_DEEP}`);
    // The parser's own message quotes the body, and what this says is logged.
    throw poison('UNREADABLE_MESSAGE', "The message's body is no JSON");
  }
  if (typeof event !== 'object' || event === null || !('detail' in event)) {
    throw poison('UNREADABLE_MESSAGE', "The message's body is no EventBridge event: it has no detail");
  }
  return event.detail;
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

/**
 * The handler of an event type.
 *
 * @throws `UNKNOWN_EVENT_TYPE` when the consumer has none; trying again cannot help
 */
export function handlerOf(handlers: ReadonlyMap<string, Handler>, consumer: string, type: string): Handler {
  const handler = handlers.get(type);
  if (handler !== undefined) return handler;
  throw poison(
    'UNKNOWN_EVENT_TYPE',
    `Consumer ${consumer} has no handler for ${type}. Add one, or take the type out of its rule.`,
  );
}

/**
 * Turns an envelope into what the handler is given: today's version of the payload, valid by its schema.
 *
 * @throws `UNKNOWN_EVENT_VERSION` or `INVALID_PAYLOAD`; trying again cannot help
 */
export async function readEvent(definition: AnyEventDefinition, envelope: Envelope): Promise<Envelope> {
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
    return { ...envelope, version: definition.version, data: await validateData(definition, data) };
  } catch (error) {
    if (isErrorWithCode(error, 'INVALID_PAYLOAD')) throw poison('INVALID_PAYLOAD', errorMessage(error));
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
