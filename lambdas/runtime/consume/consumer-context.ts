import type { Clock } from '../base/clock.ts';
import type { ConsumerConfig } from '../base/config.ts';
import type { Envelope } from '../events/event.ts';
import type { Claim, InboxContext } from '../inbox/inbox.ts';
import type { LogFields, Telemetry } from '../observe/telemetry.ts';
import { withLogFields } from '../observe/telemetry-wrappers.ts';
import { traceContextOf, traceIdOf, xrayTraceIdOf } from '../observe/trace-context.ts';
import { NO_SPAN, type Tracer, type TracerSpan } from '../observe/tracer.ts';
import type { Outbox } from '../outbox/outbox.ts';
import type { RandomBytes } from '../store/event-id.ts';
import type { EffectState } from '../store/rows.ts';
import type { Table } from '../store/table.ts';
import type { Delivery } from './delivery.ts';
import type { Queue } from './queue.ts';

/** The shared dependencies of one consumer's processing. */
export interface ConsumerContext {
  readonly config: ConsumerConfig;
  readonly table: Table;
  readonly queue: Queue;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
  readonly inbox: InboxContext;
  readonly outbox: Outbox;
}

/** One message on its way through its consumer; each processing step is a function of this context. */
export interface Received extends ConsumerContext {
  readonly delivery: Delivery;
  /** Its span. */
  readonly span: TracerSpan;
  /** The fields that identify it, in each of its log lines. */
  readonly logFields: LogFields;
}

/** A message that this worker has claimed. */
export interface ClaimedMessage extends Received {
  readonly claim: Claim;
  readonly effects: Effects;
}

/** The side effects of one claim, as requested by its handler so far. */
export interface Effects {
  readonly asked: Set<string>;
  /** Those that have happened, under this claim or an earlier one. */
  readonly succeeded: Set<string>;
  /** The ends of those that this claim has run. */
  readonly ended: Map<string, EffectState>;
  readonly running: Map<string, Promise<unknown>>;
  /** The number of calls so far. */
  runs: number;
}

/** A message whose handler has not started. */
export function claimedOf(received: Received, claim: Claim): ClaimedMessage {
  const effects = {
    asked: new Set<string>(),
    succeeded: new Set<string>(),
    ended: new Map(),
    running: new Map(),
    runs: 0,
  };
  return { ...withFields(received, { attempt: claim.attempt }), claim, effects };
}

/** The context of one message, whose log lines all carry the fields that identify it. */
export function receivedOf(ctx: ConsumerContext, delivery: Delivery, span: TracerSpan = NO_SPAN): Received {
  const { message, receives } = delivery;
  const envelope = envelopeOf(delivery);
  const trace = span.context() ?? traceContextOf(envelope);
  const fields = {
    consumer: ctx.config.consumer,
    eventId: message.eventId,
    eventType: message.type,
    messageId: message.messageId,
    receives,
    correlation_id: envelope?.correlationId, // Powertools' name
    // The name by which OpenTelemetry's backends find the lines of a trace ("Trace Context in non-OTLP Log Formats").
    trace_id: trace && traceIdOf(trace),
    xrayTraceId: xrayTraceIdOf(envelope?.traceId),
  };
  return withFields({ ...ctx, delivery, span, logFields: {} }, fields);
}

/** The same message with more fields in its log lines. */
function withFields<R extends Received>(
  received: R,
  fields: Readonly<Record<string, string | number | undefined>>,
): R {
  const known = Object.entries(fields).filter(([, value]) => value !== undefined);
  const added = Object.fromEntries(known) as LogFields;
  const logFields = { ...received.logFields, ...added };
  return { ...received, logFields, telemetry: withLogFields(received.telemetry, added) };
}

/** The envelope of a message, if it can be read. That of an external event has no trace. */
export function envelopeOf({ content }: Delivery): Partial<Envelope> | undefined {
  return 'envelope' in content ? content.envelope : undefined;
}
