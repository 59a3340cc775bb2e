import { type Clock, systemClock } from '../base/clock.ts';
import type { InboxConfig, ProcessingConfig } from '../base/consumer-config.ts';
import { MailroomError } from '../base/errors.ts';
import type { Envelope } from '../events/event.ts';
import type { Payloads } from '../events/payloads.ts';
import type { Claim } from '../inbox/inbox.ts';
import { type Redact, redactingTelemetry } from '../observe/redaction.ts';
import { type LogFields, ownTelemetry, type Telemetry, type TelemetryOptions } from '../observe/telemetry.ts';
import { safeTelemetry, withLogFields } from '../observe/telemetry-wrappers.ts';
import { traceContextOf, traceIdOf, xrayTraceIdOf } from '../observe/trace-context.ts';
import { createTracer, NO_SPAN, type Tracer, type TracerSpan } from '../observe/tracer.ts';
import { createInbox } from '../store/dynamo/inbox-context.ts';
import { createOutbox, type Outbox } from '../store/dynamo/outbox.ts';
import { type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import type { EffectState } from '../store/stored-effect.ts';
import type { Table } from '../store/table.ts';
import { type Around, checkAround } from './around.ts';
import { type Delays, delaysOf } from './delays.ts';
import type { Delivery } from './delivery.ts';
import { dynamoInbox } from './dynamo-inbox.ts';
import type { Inbox } from './inbox-port.ts';

/** Dependencies of every consumer, whatever its source and its store. */
export interface ProcessingDeps extends TelemetryOptions {
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** @default Powertools, with the options `logger`, `logFields` and `metricDimensions`, which apply only to it */
  readonly telemetry?: Telemetry | undefined;
  /**
   * Redacts the text of every error and of each of its causes before it is stored in a row or logged. @default the unchanged
   * text: the messages of errors that a handler throws are stored and logged
   */
  readonly redact?: Redact | undefined;
  /** Runs around each run of each handler: see {@link Around}. @default none */
  readonly around?: Around | undefined;
  /** Loads the payloads that are not in their events, and keeps those of the events that its handlers commit. @default none */
  readonly payloads?: Payloads | undefined;
}

/** The shared dependencies of one consumer's processing. */
export interface ConsumerContext {
  readonly config: ProcessingConfig;
  /** The name of its queue in SQS. @default it has another source */
  readonly queueName?: string | undefined;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly delays: Delays;
  readonly telemetry: Telemetry;
  readonly tracer: Tracer;
  readonly inbox: Inbox;
  readonly around?: Around | undefined;
  /** @default no payload is loaded */
  readonly payloads?: Payloads | undefined;
}

/** Those of a consumer whose inbox is in DynamoDB. */
export interface DynamoContext extends ConsumerContext {
  readonly table: Table;
  readonly outbox: Outbox;
}

/** Creates the shared dependencies of one consumer's processing. */
export function consumerContext(
  deps: ProcessingDeps & { readonly config: InboxConfig; readonly table: Table },
): DynamoContext {
  const { config, table, redact, payloads } = deps;
  const parts = contextParts(deps);
  const { clock, random, telemetry } = parts;
  const outbox = createOutbox({ config, table, clock, random, telemetry, payloads });
  const inbox = dynamoInbox(createInbox({ ...config, table, clock, random, redact }), outbox);
  return { ...parts, table, outbox, inbox };
}

/** The most bytes of UTF-8 of a consumer's name: each key of its inbox contains it, and an index of PostgreSQL takes 2,704 bytes. */
const NAME_BYTES_MAX = 512;

function refuseLongName(consumer: string): void {
  const bytes = Buffer.byteLength(consumer);
  if (bytes <= NAME_BYTES_MAX) return;
  const message = `consumer has ${bytes} bytes; it must have at most ${NAME_BYTES_MAX}. Give the consumer a shorter name.`;
  throw new MailroomError('BAD_CONFIG', message);
}

/** The context of a consumer without its inbox. @throws `BAD_CONFIG` if its name is too long for a key; `BAD_CONSUMER` if `around` is not a function */
export function contextParts(
  deps: ProcessingDeps & { readonly config: ProcessingConfig & { readonly tableName?: string } },
): Omit<ConsumerContext, 'inbox'> {
  const { config, redact, around, payloads, clock = systemClock, random = systemRandomBytes } = deps;
  refuseLongName(config.consumer);
  checkAround(around);
  const telemetry = redactingTelemetry(safeTelemetry(deps.telemetry ?? ownTelemetry(config, deps)), redact);
  const delays = delaysOf(config, clock, random);
  const tracer = createTracer(redact);
  return { config, clock, random, delays, telemetry, tracer, around, payloads };
}

/** One message on its way through its consumer; each processing step is a function of this context. */
export interface Received extends ConsumerContext {
  readonly delivery: Delivery;
  readonly span: TracerSpan;
  /** The fields that identify it, in each of its log lines. */
  readonly logFields: LogFields;
}

/** A message that this worker has claimed. */
export interface ClaimedMessage extends Received {
  readonly claim: Claim;
  readonly effects: Effects;
}

/** The side effects of one claim. */
export interface Effects {
  /** Those of earlier claims, as they were when this one read the row; `undefined` for an entry that cannot be read. */
  readonly before: ReadonlyMap<string, EffectState | undefined>;
  /** Those that its handler has requested so far. */
  readonly asked: Set<string>;
  /** Those that have happened, under this claim or an earlier one. */
  readonly succeeded: Set<string>;
  /** The ends of those that this claim has run. */
  readonly ended: Map<string, EffectState>;
  readonly running: Map<string, Promise<unknown>>;
  /** The number of calls so far. */
  runs: number;
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
