import { isTime } from '../../../lambdas/runtime/base/clock.ts';
import { jsonObject, textOf } from '../../../lambdas/runtime/base/json.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import {
  hasReference,
  type PayloadReference,
  referenceProblem,
} from '../../../lambdas/runtime/events/payloads.ts';
import { traceContextOf, traceIdOf, xrayTraceIdOf } from '../../../lambdas/runtime/observe/trace-context.ts';
import { isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { Key } from '../../../lambdas/runtime/store/table.ts';

/** The members of an envelope that the command shows. A stored envelope may lack any of them. */
export type StoredEnvelope = Partial<
  Pick<Envelope, 'aggregateType' | 'aggregateId' | 'occurredAt' | 'correlationId' | 'causationId' | 'data'>
> & {
  /** Its number among the events of its aggregate; absent if it has no usable one. */
  readonly sequence?: number | undefined;
  /** The trace id of its W3C trace context, or else of its X-Ray header. */
  readonly trace?: string | undefined;
  /** The object that holds its data, if it has none itself. */
  readonly payload?: PayloadReference | undefined;
};

/** Reads an outbox row's envelope without its invalid members; `undefined` if it is not a JSON object. */
export function envelopeOf(stored: unknown): StoredEnvelope | undefined {
  const envelope = jsonObject(stored);
  if (envelope === undefined) return undefined;
  const { occurredAt, sequence, data } = envelope;
  const payload =
    hasReference(envelope) && referenceProblem({ ...envelope }) === undefined ? envelope.payload : undefined;
  return {
    aggregateType: textOf(envelope.aggregateType),
    aggregateId: textOf(envelope.aggregateId),
    occurredAt: isTime(occurredAt) ? occurredAt : undefined,
    correlationId: textOf(envelope.correlationId),
    causationId: textOf(envelope.causationId),
    sequence: typeof sequence === 'number' && Number.isSafeInteger(sequence) ? sequence : undefined,
    trace: traceOf(envelope),
    ...(payload && { payload }),
    data,
  };
}

function traceOf(envelope: Readonly<Record<string, unknown>>): string | undefined {
  const context = traceContextOf(envelope);
  return context === undefined ? xrayTraceIdOf(envelope.traceId) : traceIdOf(context);
}

/** The event id of an outbox row; `undefined` if the id does not lead back to this row. */
export function storedEventId({ PK, SK }: Key): string | undefined {
  const eventId = String(SK).slice('EVENT#'.length);
  return isEventId(eventId) && outboxKeyOf(eventId).PK === PK ? eventId : undefined;
}

/** Ids that every JSON writer writes as they are. Others may be escaped, so the table cannot compare them. */
const PLAIN_ID = /^[\w.:@+ -]+$/;

/** The text in the envelopes that may hold an id; `undefined` if the table cannot tell. */
export function containingId(id: string): string | undefined {
  return PLAIN_ID.test(id) ? id : undefined;
}
