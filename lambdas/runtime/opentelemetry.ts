/**
 * `cdk-mailroom/opentelemetry`: Mailroom's spans with the OpenTelemetry API (`@opentelemetry/api`, an optional peer dependency).
 */
import {
  type Attributes,
  context,
  createTraceState,
  isSpanContextValid,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { type TraceContext, traceIdOf } from './observe/trace-context.ts';
import type { SpanOptions, Tracer } from './observe/tracer.ts';

/** The SDK's tracer provider, which can flush, or the API's proxy for it. */
interface FlushingProvider extends TracerProvider {
  forceFlush?(): Promise<void>;
  getDelegate?(): FlushingProvider;
}

const KINDS = {
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const;

/**
 * Mailroom's spans with OpenTelemetry, for the option `tracer` of `lambdaOutbox`, `lambdaConsumer`, `createOutbox` and
 * `createConsumer`. They follow the semantic conventions for messaging, version 1.45.0:
 *
 * - `send <table>` (producer): a commit of events. Its context is stored in them as `traceparent`.
 * - `publish <bus>` (client): a PutEvents call of the relay, or of a producer that publishes at once.
 * - `process <queue>` (consumer): a message at its consumer, a child of the span that wrote its event. The handler runs in it.
 * - `once` (internal): an effect that runs.
 *
 * Register an SDK and a context manager before the first call, e.g. in a file that you load with `NODE_OPTIONS: '--import …'`, or
 * with a layer. Without them, nothing is recorded. No span contains a payload; errors are redacted as in the logs.
 *
 * @example
 * ```ts
 * export const handler = lambdaConsumer([chargeOrder], { tracer: openTelemetry() });
 * ```
 */
export function openTelemetry(): Tracer {
  return {
    start: (options) => startSpan(options),
    current: () => contextOf(trace.getSpanContext(context.active())),
    flush: async () => {
      // Not `instanceof`: the SDK of a layer registers a proxy from its own copy of the API.
      const provider: FlushingProvider = trace.getTracerProvider();
      await (provider.getDelegate?.() ?? provider).forceFlush?.();
    },
  };
}

function startSpan({ name, kind, attributes, parent, links = [] }: SpanOptions): ReturnType<Tracer['start']> {
  const active = context.active();
  const from = parent === undefined ? active : trace.setSpanContext(active, spanContextOf(parent));
  const options = {
    kind: KINDS[kind],
    attributes: { ...attributes } satisfies Attributes,
    links: links.map((link) => ({ context: spanContextOf(link) })),
  };
  const span = trace.getTracer('cdk-mailroom').startSpan(name, options, from);
  const within = trace.setSpan(active, span);
  return {
    context: () => contextOf(span.spanContext()),
    run: (work) => context.with(within, work),
    set: (attribute, value) => void span.setAttribute(attribute, value),
    fail: ({ type, message, stack }) => {
      span.setAttribute('error.type', type);
      span.setStatus({ code: SpanStatusCode.ERROR, message });
      span.recordException({ name: type, message, ...(stack !== undefined && { stack }) });
    },
    end: () => span.end(),
  };
}

/** The trace context of a span as its messages carry it; `undefined` if no SDK made the span. */
function contextOf(span: SpanContext | undefined): TraceContext | undefined {
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  const tracestate = span.traceState?.serialize();
  return { traceparent: `00-${span.traceId}-${span.spanId}-${flags}`, ...(tracestate && { tracestate }) };
}

function spanContextOf(remote: TraceContext): SpanContext {
  const { traceparent, tracestate } = remote;
  return {
    traceId: traceIdOf(remote),
    spanId: traceparent.slice(36, 52),
    traceFlags: Number.parseInt(traceparent.slice(53, 55), 16),
    isRemote: true,
    ...(tracestate !== undefined && { traceState: createTraceState(tracestate) }),
  };
}
