import type { ProducerConfig } from '../config.ts';
import { errorCode, MailroomError } from '../errors.ts';
import { type EventDraft, type EventRef, validateData } from '../event.ts';
import { isDeeperThan, PAYLOAD_DEPTH_MAX } from '../json-depth.ts';

/** The most characters of a trace header (EventBridge API reference, PutEventsRequestEntry). */
const TRACE_HEADER_MAX = 500;

/**
 * Refuses an event that cannot be written as it was drafted.
 *
 * @throws `INVALID_PAYLOAD` or `INVALID_EVENT`, naming the event's type and what is wrong with it
 */
export async function checkDraft(draft: EventDraft): Promise<void> {
  const { type } = definitionOf(draft);
  await validateData(draft.definition, JSON.parse(jsonOf(type, draft.data)));
  if (!isText(draft.aggregateId)) {
    throw invalid(type, 'aggregateId', 'a text that is not empty', draft.aggregateId);
  }
  const { occurredAt, traceId, correlationId, causationId, sequence } = optionalsOf(draft);
  if (occurredAt !== undefined && !Number.isSafeInteger(occurredAt)) {
    throw invalid(type, 'occurredAt', 'whole epoch milliseconds', occurredAt);
  }
  if (traceId !== undefined && !isTraceId(traceId)) {
    throw invalid(type, 'traceId', `a text of 1 to ${TRACE_HEADER_MAX} characters`, traceId);
  }
  for (const [name, value] of Object.entries({ correlationId, causationId })) {
    if (value !== undefined && !isText(value)) throw invalid(type, name, 'a text that is not empty', value);
  }
  if (sequence !== undefined && !Number.isFinite(sequence)) {
    throw invalid(type, 'sequence', 'a finite number', sequence);
  }
}

/**
 * Refuses an event that its function does not declare. The construct that declares it also grants the rights and tells the
 * relay the source: an event that is only written would wait in the outbox.
 *
 * @throws `NOT_DECLARED`, naming the prop to change
 */
export function checkDeclared({ source, type }: EventRef, { service, publishes }: ProducerConfig): void {
  if (publishes === undefined || (source === service && publishes.includes(type))) return;
  const declared = publishes.length === 0 ? 'no events' : publishes.join(', ');
  const remedy =
    source === service
      ? `Add ${type} to \`publishes\` of its InboxConsumer, or of its mailroom.addProducer.`
      : `Only ${source} may publish it: publish it there, or correct the source in its definition.`;
  throw new MailroomError(
    'NOT_DECLARED',
    `Event ${type} of ${source} is not declared: this function of ${service} publishes ${declared}. ${remedy}`,
  );
}

/** Untyped code may hand over a payload alone, or an event of its own making. */
function definitionOf(draft: EventDraft): EventDraft['definition'] {
  const definition = draft?.definition as EventDraft['definition'] | undefined;
  if (typeof definition?.type === 'string') return definition;
  throw new MailroomError(
    'INVALID_EVENT',
    `An event is of type ${typeof draft} and has no definition. Make it by create of its definition, e.g. OrderPlaced.create({ aggregateId, data }).`,
  );
}

/** Whether a trace header fits into an event. */
export function isTraceId(value: unknown): value is string {
  return isText(value) && value.length <= TRACE_HEADER_MAX;
}

type Optional = 'occurredAt' | 'traceId' | 'correlationId' | 'causationId' | 'sequence';

/** What a draft may leave out: a `null` from untyped code leaves it out too. */
function optionalsOf(draft: EventDraft): Readonly<Record<Optional, unknown>> {
  const { occurredAt, traceId, correlationId, causationId, sequence } = draft;
  return {
    occurredAt: occurredAt ?? undefined,
    traceId: traceId ?? undefined,
    correlationId: correlationId ?? undefined,
    causationId: causationId ?? undefined,
    sequence: sequence ?? undefined,
  };
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

function invalid(type: string, name: string, allowed: string, value: unknown): MailroomError {
  return new MailroomError(
    'INVALID_EVENT',
    `Event ${type}: ${name} must be ${allowed}, but is ${shown(value)}`,
  );
}

/** A payload as JSON, so that what is validated is what will be read. */
function jsonOf(type: string, data: unknown): string {
  let problem = 'it is undefined, or a function';
  try {
    const json = JSON.stringify(data) as string | undefined;
    if (json !== undefined && isDeeperThan(json, PAYLOAD_DEPTH_MAX)) throw new RangeError();
    if (json !== undefined) return json;
  } catch (error) {
    // JSON.stringify recurses: what is far too deep ends in a RangeError of its own.
    if (error instanceof RangeError) {
      throw new MailroomError(
        'INVALID_PAYLOAD',
        `The payload of ${type} nests lists and objects more than ${PAYLOAD_DEPTH_MAX} levels deep; at most ${PAYLOAD_DEPTH_MAX} are allowed. ` +
          'Flatten it, or store the deep part elsewhere (S3) and put its address into the event.',
      );
    }
    problem = `it contains itself or a bigint, or its toJSON threw (${errorCode(error)})`; // a message would name keys
  }
  throw new MailroomError('INVALID_PAYLOAD', `The payload of ${type} cannot be written as JSON: ${problem}`);
}

/** A value in an error's text, whatever it is. */
function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value.slice(0, 100)}"` : `of type ${typeof value}`;
}
