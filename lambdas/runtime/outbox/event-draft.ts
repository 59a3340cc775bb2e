import type { ProducerConfig } from '../base/config.ts';
import { MailroomError } from '../base/errors.ts';
import { hasLoneSurrogate } from '../base/json.ts';
import { type JsonFault, jsonFault } from '../base/json-fault.ts';
import { DAY_MS, MINUTE_MS } from '../base/units.ts';
import type { AnyEventDefinition, EventDraft, EventRef } from '../events/event.ts';
import { payloadPath } from '../events/payload-issues.ts';
import { validateData } from '../events/payload-validation.ts';
import { AGGREGATE_ID_MAX_BYTES, PARTITION_KEY_MAX_BYTES, uniqueKey } from '../store/keys.ts';

/** The maximum length of a trace header, in characters (EventBridge API reference, PutEventsRequestEntry). */
const TRACE_HEADER_MAX = 500;

/** An event that was due up to this long ago is published at once; its caller's clock may be behind, milliseconds. */
const DUE_AGO_MAX_MS = 5 * MINUTE_MS;

/**
 * The longest time until an event is due, milliseconds. DynamoDB has no limit, but the consumers must still read the event's version
 * then.
 */
export const DUE_AHEAD_MAX_MS = 366 * DAY_MS;

/** @throws `INVALID_EVENT`, with the likely mistake: a time in seconds is long past, and one in microseconds is far ahead */
function checkDue(
  type: string,
  deliverAt: unknown,
  { sequence }: EventDraft['definition'],
  now: number,
): void {
  const allowed = 'a time in epoch milliseconds, from 5 minutes ago to 366 days ahead';
  if (sequence) {
    throw new MailroomError(
      'INVALID_EVENT',
      `Event ${type} has deliverAt, but its definition declares a sequence, and a scheduled event cannot be ordered. Schedule an event of another type, whose handler publishes this one.`,
    );
  }
  if (typeof deliverAt === 'number' && deliverAt > now + DUE_AHEAD_MAX_MS) {
    const remedy =
      'If it is in microseconds, divide it by 1000; if it is in nanoseconds, by 1000000. For a later time, schedule an event whose handler schedules the next one.';
    throw invalid(type, 'deliverAt', allowed, deliverAt, remedy);
  }
  if (!Number.isSafeInteger(deliverAt)) throw invalid(type, 'deliverAt', allowed, deliverAt);
  if (Number(deliverAt) < now - DUE_AGO_MAX_MS) {
    throw invalid(type, 'deliverAt', allowed, deliverAt, 'If it is in seconds, multiply it by 1000.');
  }
}

/**
 * Refuses an event draft that cannot be written.
 *
 * @param now - epoch milliseconds
 *
 * @throws `INVALID_PAYLOAD` or `INVALID_EVENT`, naming the event's type and the problem
 */
export async function checkDraft(draft: EventDraft, now: number): Promise<void> {
  const { type } = definitionOf(draft);
  const json = jsonOf(draft.definition, draft.data);
  await validateData(draft.definition, JSON.parse(json));
  if (!isText(draft.aggregateId)) {
    throw invalid(type, 'aggregateId', TEXT, draft.aggregateId);
  }
  const { occurredAt, traceId, correlationId, causationId, sequence, deliverAt, uniqueBy } =
    optionalsOf(draft);
  if (occurredAt !== undefined && !Number.isSafeInteger(occurredAt)) {
    throw invalid(type, 'occurredAt', 'a whole number of epoch milliseconds', occurredAt);
  }
  if (traceId !== undefined && !isTraceId(traceId)) {
    throw invalid(type, 'traceId', `a string of 1 to ${TRACE_HEADER_MAX} characters`, traceId);
  }
  for (const [name, value] of Object.entries({ correlationId, causationId })) {
    if (value !== undefined && !isText(value)) throw invalid(type, name, TEXT, value);
  }
  if (draft.definition.sequence) checkNumbered(type, draft.aggregateId, sequence);
  else if (sequence !== undefined && !Number.isFinite(sequence)) {
    throw invalid(type, 'sequence', 'a finite number', sequence);
  }
  if (deliverAt !== undefined) checkDue(type, deliverAt, draft.definition, now);
  if (uniqueBy !== undefined) checkUnique(draft, uniqueBy);
}

/** The most bytes of UTF-8 of a `uniqueBy`. */
const UNIQUE_MAX_BYTES = 1_024;

function checkUnique({ definition }: EventDraft, uniqueBy: unknown): void {
  const { type } = definition;
  const allowed = `a string of 1 to ${UNIQUE_MAX_BYTES} bytes of UTF-8 without half of a surrogate pair`;
  if (!isText(uniqueBy)) throw invalid(type, 'uniqueBy', allowed, uniqueBy);
  const bytes = Buffer.byteLength(uniqueBy);
  if (bytes > UNIQUE_MAX_BYTES) throw invalid(type, 'uniqueBy', allowed, `${bytes} bytes`);
  const keyBytes = Buffer.byteLength(uniqueKey(definition, uniqueBy).PK);
  if (keyBytes > PARTITION_KEY_MAX_BYTES)
    throw invalid(
      type,
      'uniqueBy',
      `shorter by ${keyBytes - PARTITION_KEY_MAX_BYTES} bytes: the names of the event leave no more room in its key`,
      `${bytes} bytes`,
    );
}

/** @throws `INVALID_EVENT` if an event has a `uniqueBy` where it cannot be kept */
export function refuseUnique({ definition: { type }, uniqueBy }: EventDraft): void {
  if (uniqueBy === undefined || uniqueBy === null) return;
  throw new MailroomError(
    'INVALID_EVENT',
    `Event ${type} has uniqueBy, which only outbox.commit of an outbox in DynamoDB keeps. Remove it: a handler commits once for each message, a transaction of your own can put a row of its own under a condition, and a database of SQL has unique indexes.`,
  );
}

/** An ordered consumer keeps the last number under a key that contains the aggregate's id. */
function checkNumbered(type: string, aggregateId: string, sequence: unknown): void {
  if (!Number.isSafeInteger(sequence) || Number(sequence) < 1) {
    throw invalid(type, 'sequence', 'a whole number from 1', sequence);
  }
  const bytes = Buffer.byteLength(aggregateId);
  if (bytes > AGGREGATE_ID_MAX_BYTES)
    throw invalid(type, 'aggregateId', `at most ${AGGREGATE_ID_MAX_BYTES} bytes of UTF-8`, `${bytes} bytes`);
}

/**
 * Refuses an event that the function does not declare. The construct that declares an event also grants the permissions and
 * adds the source to the relay's list: an undeclared event would be written but stay in the outbox.
 *
 * @throws `NOT_DECLARED`, naming the prop to change
 */
export function checkDeclared(
  { source, type }: EventRef,
  { service, publishes }: Pick<ProducerConfig, 'service' | 'publishes'>,
): void {
  if (publishes === 'any' || (source === service && (publishes?.includes(type) ?? true))) return;
  const declared = publishes === undefined ? 'its own events' : publishes.join(', ') || 'no events';
  const remedy =
    source === service
      ? `Add ${type} to \`publishes\` in its InboxConsumer or in its mailroom.addProducer call, and deploy.`
      : `Only ${source} may publish it; publish it there, or correct the source in its definition.`;
  throw new MailroomError(
    'NOT_DECLARED',
    `Event ${type} of ${source} is not declared: this function of ${service} publishes ${declared}. ${remedy}`,
  );
}

/** @throws `BAD_CONFIG` if the service's name begins with `aws.` */
export function refuseReserved(service: string): void {
  if (!/^aws\./i.test(service)) return;
  throw new MailroomError(
    'BAD_CONFIG',
    `The service is named "${service}", but EventBridge reserves sources that begin with "aws." for AWS. Choose another name.`,
  );
}

/** Untyped code may pass only a payload, or an object that no definition created. */
function definitionOf(draft: EventDraft): EventDraft['definition'] {
  const definition = draft?.definition as EventDraft['definition'] | undefined;
  if (typeof definition?.type === 'string') return definition;
  throw new MailroomError(
    'INVALID_EVENT',
    `An event (of type ${typeof draft}) has no definition. Create it from its definition, e.g. OrderPlaced.create({ aggregateId, data }).`,
  );
}

/** Returns true for a non-empty trace header that fits into an event. */
function isTraceId(value: unknown): value is string {
  return isText(value) && value.length <= TRACE_HEADER_MAX;
}

type Optional =
  | 'occurredAt'
  | 'traceId'
  | 'correlationId'
  | 'causationId'
  | 'sequence'
  | 'deliverAt'
  | 'uniqueBy';

/** The optional properties of a draft; `null` from untyped code counts as absent. */
function optionalsOf(draft: EventDraft): Readonly<Record<Optional, unknown>> {
  const { occurredAt, traceId, correlationId, causationId, sequence, deliverAt, uniqueBy } = draft;
  return {
    occurredAt: occurredAt ?? undefined,
    traceId: traceId ?? undefined,
    correlationId: correlationId ?? undefined,
    causationId: causationId ?? undefined,
    sequence: sequence ?? undefined,
    deliverAt: deliverAt ?? undefined,
    uniqueBy: uniqueBy ?? undefined,
  };
}

/** The values of {@link isText}, for errors. */
const TEXT = 'a non-empty string without half of a surrogate pair';

/** A text that is cut through a character would be stored, and found, as another one. */
function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && !hasLoneSurrogate(value);
}

function invalid(
  type: string,
  name: string,
  allowed: string,
  value: unknown,
  remedy?: string,
): MailroomError {
  return new MailroomError(
    'INVALID_EVENT',
    `Event ${type}: ${name} must be ${allowed}, but it is ${shown(value)}.${remedy === undefined ? '' : ` ${remedy}`}`,
  );
}

/**
 * Serializes a payload to JSON, so that the value that is validated is the value that will be read. A Date is refused, because
 * consumers receive a string, which a schema can accept.
 *
 * @throws `INVALID_PAYLOAD`, naming the path and the kind of a value that JSON does not write as it is
 */
function jsonOf(definition: AnyEventDefinition, data: unknown): string {
  const fault = jsonFault(data, { dates: 'refused' });
  const json = fault === undefined ? (JSON.stringify(data) as string | undefined) : undefined;
  if (json !== undefined) return json;
  const { path, kind, remedy } = fault ?? NOTHING;
  throw new MailroomError(
    'INVALID_PAYLOAD',
    `The payload of ${definition.type} cannot be written as JSON: ${payloadPath(definition, path)} is ${kind}. ${remedy}`,
  );
}

const NOTHING: JsonFault = { path: [], kind: 'undefined', remedy: 'Pass data, or null.' };

/** Formats any value for an error message. */
function shown(value: unknown): string {
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? `"${value.slice(0, 100)}"` : `of type ${typeof value}`;
}
