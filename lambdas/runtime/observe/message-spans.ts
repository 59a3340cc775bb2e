import type { ProducerConfig } from '../base/config.ts';
import { explainedBy, MailroomError } from '../base/errors.ts';
import { jsonObject, textOf } from '../base/json.ts';
import type { Bus, BusEntry } from '../bus/event-bus.ts';
import type { Envelope, EventDraft } from '../events/event.ts';
import { type TraceContext, traceContextOf } from './trace-context.ts';
import { createTracer, inSpan, isTraced, type SpanAttribute, type SpanOptions } from './tracer.ts';

/*
 * The spans of Mailroom by the OpenTelemetry semantic conventions for messaging, version 1.45.0 ("Semantic conventions for
 * messaging spans"). `messaging.system` is set beside its successor `messaging.system.name`, because backends still read it.
 */

/** The outcome of a message, in the span that processes it. */
export const OUTCOME = 'mailroom.outcome';

/** The event's id, in every span of one event. */
export const EVENT_ID = 'mailroom.event.id';

/** The commit of events to the outbox. Its context is stored in them: it is their creation context. */
export function sendSpan(
  { tableName }: Pick<ProducerConfig, 'tableName'>,
  events: readonly EventDraft[],
): SpanOptions {
  const types = new Set(events.map((draft) => draft?.definition?.type)); // untyped code may pass anything
  const [type] = types;
  return {
    name: `send ${tableName}`,
    kind: 'producer',
    attributes: {
      ...system('mailroom', 'mailroom'),
      ...operation('send', 'send', tableName),
      'messaging.batch.message_count': events.length > 1 ? events.length : undefined,
      'mailroom.event.type': types.size === 1 && typeof type === 'string' ? type : undefined,
    },
  };
}

/** One PutEvents call. It continues the trace of a single event, and is linked to those of several. */
function publishSpan(busName: string, entries: readonly BusEntry[]): SpanOptions {
  const bus = busName.slice(busName.lastIndexOf('/') + 1); // the name, or the last part of an ARN
  const envelopes = entries.map(({ detail }) => jsonObject(detail)); // PutEvents refuses other text, and the event becomes DEAD
  const links = envelopes.flatMap((envelope) => traceContextOf(envelope) ?? []);
  const [only] = entries.length === 1 ? envelopes : [];
  return {
    name: `publish ${bus}`,
    kind: 'client',
    parent: only && traceContextOf(only),
    links,
    attributes: {
      ...system('aws.eventbridge', 'aws.eventbridge'),
      ...operation('publish', 'send', bus),
      'messaging.batch.message_count': entries.length > 1 ? entries.length : undefined,
      ...(entries.length === 1 ? { 'mailroom.event.type': entries[0]?.detailType } : {}),
      [EVENT_ID]: typeof only?.eventId === 'string' ? only.eventId : undefined,
    },
  };
}

/** The ids of a message, and the type of its event. */
interface NamedMessage {
  readonly messageId: string;
  readonly eventId: string;
  readonly type?: string | undefined;
}

/**
 * The processing of one message. It continues the event's trace and is linked to it, as the conventions require, and to the active
 * span: that of the invocation, if an instrumentation traces it.
 */
export function processSpan(
  consumer: string,
  queueName: string | undefined,
  { messageId, eventId, type }: NamedMessage,
  envelope: Partial<Envelope> | undefined,
  active: TraceContext | undefined,
): SpanOptions {
  const parent = traceContextOf(envelope);
  return {
    name: queueName === undefined ? 'process' : `process ${queueName}`,
    kind: 'consumer',
    parent,
    links: parent === undefined ? [] : [parent, ...(active === undefined ? [] : [active])],
    attributes: {
      ...(queueName === undefined ? {} : system('aws_sqs', 'aws.sqs')),
      ...operation('process', 'process', queueName),
      'messaging.message.id': messageId,
      'messaging.message.conversation_id': textOf(envelope?.correlationId),
      'messaging.consumer.group.name': consumer,
      'mailroom.event.type': type,
      [EVENT_ID]: eventId,
      [OUTCOME]: 'waiting', // until a later step decides
    },
  };
}

/** A side effect that runs. Its name may contain an id, so it is an attribute. */
export function effectSpan(name: string): SpanOptions {
  return { name: 'once', kind: 'internal', attributes: { 'mailroom.effect.name': name } };
}

function system(earlier: string, name: string): Record<string, SpanAttribute> {
  return { 'messaging.system': earlier, 'messaging.system.name': name };
}

function operation(
  name: string,
  type: 'send' | 'process',
  destination: string | undefined,
): Record<string, SpanAttribute | undefined> {
  return {
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'messaging.destination.name': destination,
  };
}

/**
 * A bus whose calls are spans.
 *
 * @param busName - the name or ARN of the bus
 */
export function tracedBus(bus: Bus, busName: string): Bus {
  const tracer = createTracer();
  return {
    put: async (entries, timeoutMs) => {
      // The description of a span parses every envelope.
      if (!isTraced()) return bus.put(entries, timeoutMs);
      return inSpan(tracer, publishSpan(busName, entries), async (span) => {
        const results = await bus.put(entries, timeoutMs);
        const refused = results.find(({ ok }) => !ok);
        if (refused?.ok === false)
          span.fail(explainedBy(new MailroomError(refused.code, refused.message), undefined));
        return results;
      });
    },
  };
}
