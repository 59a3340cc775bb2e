import {
  type Attributes,
  context,
  createTraceState,
  isSpanContextValid,
  ProxyTracerProvider,
  type Span,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { type Clock, withDeadline } from '../base/clock.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import { type Redact, redactedError } from './redaction.ts';
import { attempted } from './telemetry-wrappers.ts';
import { type TraceContext, traceContextOf, traceIdOf } from './trace-context.ts';

/*
 * Mailroom's spans, through the OpenTelemetry API: it does nothing until the application registers an SDK. No SDK can fail a commit
 * or a message, whatever it throws.
 */

/** The value of a span's attribute. Never a part of a payload. */
export type SpanAttribute = string | number | boolean;

/** The description of a span that starts. */
export interface SpanOptions {
  /** A name with few different values: never an id. */
  readonly name: string;
  readonly kind: 'producer' | 'consumer' | 'client' | 'internal';
  /** The attributes that are known when it starts. @default none */
  readonly attributes?: Readonly<Record<string, SpanAttribute | undefined>> | undefined;
  /** The span that caused it, in another process. @default the active span */
  readonly parent?: TraceContext | undefined;
  /** Other spans that caused it. @default none */
  readonly links?: readonly TraceContext[] | undefined;
}

/** A span that has started. It cannot throw. */
export interface TracerSpan {
  /** Its context, for messages sent in it; `undefined` without an SDK. */
  context(): TraceContext | undefined;
  /** Calls `work` with this span as the active one, also for what it awaits. Returns what `work` returns. */
  run<T>(work: () => T): T;
  set(name: string, value: SpanAttribute): void;
  /** Marks it as failed, with the error's redacted text. */
  fail(error: unknown): void;
  end(): void;
}

/** Starts spans. It cannot throw. */
export interface Tracer {
  /** Starts a span, without making it the active one. */
  start(options: SpanOptions): TracerSpan;
  /** The context of the active span; `undefined` without one. */
  current(): TraceContext | undefined;
}

/** The span of a runtime without an SDK. */
export const NO_SPAN: TracerSpan = {
  context: () => undefined,
  run: (work) => work(),
  set: () => {},
  fail: () => {},
  end: () => {},
};

/** The name of the instrumentation. */
const NAME = 'cdk-mailroom';

const KINDS = {
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
} as const;

/** True if the application has registered an SDK. Without one, nothing needs to be prepared for a span. */
export function isTraced(): boolean {
  const isRegistered = () => {
    const provider = trace.getTracerProvider();
    // The SDK of a layer registers a proxy from its own copy of the API.
    return !(provider instanceof ProxyTracerProvider) || provider.getDelegateTracer(NAME) !== undefined;
  };
  return attempted(isRegistered) ?? false;
}

/** Creates a tracer. @param redact - redacts the text of errors in spans @default the unchanged text */
export function createTracer(redact?: Redact): Tracer {
  return {
    start: (options) => {
      if (!isTraced()) return NO_SPAN;
      return attempted(() => startSpan(options, redact)) ?? NO_SPAN;
    },
    current: () => attempted(() => contextOf(trace.getSpanContext(context.active()))),
  };
}

function startSpan({ name, kind, attributes, parent, links = [] }: SpanOptions, redact?: Redact): TracerSpan {
  const active = context.active();
  const from = parent === undefined ? active : trace.setSpanContext(active, spanContextOf(parent));
  const options = {
    kind: KINDS[kind],
    attributes: { ...attributes } satisfies Attributes,
    links: links.map((link) => ({ context: spanContextOf(link) })),
  };
  const span = trace.getTracer(NAME).startSpan(name, options, from);
  const within = trace.setSpan(active, span);
  return {
    context: () => attempted(() => contextOf(span.spanContext())),
    run: (work) => runOnce((watched) => context.with(within, watched), work),
    set: (attribute, value) => void attempted(() => span.setAttribute(attribute, value)),
    fail: (error) => recordFailure(span, error, redact),
    end: () => void attempted(() => span.end()),
  };
}

/** Calls `work` exactly once, whatever `run` does, and returns its result or throws its error. */
function runOnce<T>(run: (work: () => void) => void, work: () => T): T {
  let done: { readonly value: T } | { readonly thrown: unknown } | undefined;
  const watched = () => {
    if (done !== undefined) return;
    try {
      done = { value: work() };
    } catch (thrown) {
      done = { thrown };
    }
  };
  attempted(() => run(watched));
  if (done === undefined) watched();
  const end = done as unknown as { readonly value: T } | { readonly thrown: unknown };
  if ('thrown' in end) throw end.thrown;
  return end.value;
}

function recordFailure(span: Span, error: unknown, redact: Redact | undefined): void {
  const redacted = redact === undefined ? error : attempted(() => redactedError(error, redact));
  const [type, message] = [errorCode(redacted), errorMessage(redacted)];
  const { stack } = redacted instanceof Error ? redacted : {};
  attempted(() => span.setAttribute('error.type', type));
  attempted(() => span.setStatus({ code: SpanStatusCode.ERROR, message }));
  attempted(() => span.recordException({ name: type, message, ...(stack !== undefined && { stack }) }));
}

/** The trace context of a span as its messages carry it; `undefined` if no SDK made the span. */
function contextOf(span: SpanContext | undefined): TraceContext | undefined {
  if (span === undefined || !isSpanContextValid(span)) return undefined;
  const flags = (span.traceFlags & 0xff).toString(16).padStart(2, '0');
  const traceparent = `00-${span.traceId}-${span.spanId}-${flags}`;
  return traceContextOf({ traceparent, tracestate: span.traceState?.serialize() || undefined });
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

/** Runs `work` in a span that is the active one, and ends with it. */
export async function inSpan<T>(
  tracer: Tracer,
  options: SpanOptions,
  work: (span: TracerSpan) => Promise<T>,
): Promise<T> {
  const span = tracer.start(options);
  try {
    return await span.run(() => work(span));
  } catch (error) {
    span.fail(error);
    throw error;
  } finally {
    span.end();
  }
}

/** The maximum wait for an exporter at the end of an invocation, milliseconds. */
const FLUSH_MAX_MS = 1_000;

/** The SDK's tracer provider, which can flush, or the API's proxy for it. */
interface FlushingProvider extends TracerProvider {
  forceFlush?(): Promise<void>;
  getDelegate?(): FlushingProvider;
}

/**
 * Exports the spans of an invocation, before Lambda freezes the process. It never throws.
 *
 * @param endsBy - the time at which the function is stopped, epoch milliseconds; at most a quarter of the time left is spent
 * @default at most a second is spent
 */
export async function flushSpans(clock: Clock, endsBy = Number.POSITIVE_INFINITY): Promise<void> {
  if (!isTraced()) return;
  const flush = async () => {
    // Not `instanceof`: see `isTraced`.
    const provider: FlushingProvider = trace.getTracerProvider();
    await (provider.getDelegate?.() ?? provider).forceFlush?.();
  };
  const flushed = flush().catch(() => {});
  await withDeadline(clock, Math.min(FLUSH_MAX_MS, (endsBy - clock.now()) / 4), flushed, () => {});
}
