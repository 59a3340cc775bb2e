import { attempted } from './attempted.ts';
import type { Clock } from './clock.ts';
import { withDeadline } from './deadline.ts';
import { errorCode, errorMessage } from './errors.ts';
import { type Redact, redactedError } from './redaction.ts';
import { type TraceContext, traceContextOf } from './trace-context.ts';

/** The value of a span's attribute. Never a part of a payload. */
export type SpanAttribute = string | number | boolean;

/** The description of a span that begins. */
export interface SpanOptions {
  /** Few different values: never an id. */
  readonly name: string;
  /** As OpenTelemetry defines it. */
  readonly kind: 'producer' | 'consumer' | 'client' | 'internal';
  /** The attributes that are known at its beginning. @default none */
  readonly attributes?: Readonly<Record<string, SpanAttribute | undefined>> | undefined;
  /** The span that caused it, in another process. @default the active span */
  readonly parent?: TraceContext | undefined;
  /** Spans that caused it as well. @default none */
  readonly links?: readonly TraceContext[] | undefined;
}

/** The failure of a span, without anything else that an error may carry. */
export interface SpanFailure {
  /** An error code, or the error's name. */
  readonly type: string;
  /** The error's message, redacted as in rows and logs. */
  readonly message: string;
  /** The error's stack, redacted likewise. */
  readonly stack?: string | undefined;
}

/** A span that has begun. */
export interface TracingSpan {
  /** Its context, for messages sent in it; `undefined` if there is none. */
  context(): TraceContext | undefined;
  /** Calls `work` with this span as the active one, also for what it awaits. Returns what `work` returns. */
  run<T>(work: () => T): T;
  /** Sets an attribute. */
  set(name: string, value: SpanAttribute): void;
  /** Records that it failed. */
  fail(failure: SpanFailure): void;
  /** Ends it. */
  end(): void;
}

/**
 * The port for traces; `openTelemetry()` of `cdk-mailroom/opentelemetry` implements it. What it throws is ignored: tracing never
 * fails a message or a commit.
 */
export interface Tracing {
  /** Begins a span, without making it the active one. */
  start(options: SpanOptions): TracingSpan;
  /** The context of the active span; `undefined` if there is none. */
  current(): TraceContext | undefined;
  /**
   * Exports the spans that have ended. Awaited for at most a second at the end of each invocation of a consumer and of the relay,
   * because Lambda then freezes the process. @default the exporter decides
   */
  flush?(): Promise<unknown>;
}

/** A {@link Tracing} that cannot throw, as the runtime uses it. */
export interface SafeTracing {
  /** False without a tracing port: then nothing needs to be prepared for a span. */
  readonly isOn: boolean;
  start(options: SpanOptions): SafeSpan;
  current(): TraceContext | undefined;
  flush?: (() => Promise<unknown>) | undefined;
}

/** A {@link TracingSpan} that cannot throw, and that takes errors as they were thrown. */
export interface SafeSpan extends Omit<TracingSpan, 'fail'> {
  fail(error: unknown): void;
}

/** The span of a runtime without tracing. */
export const NO_SPAN: SafeSpan = {
  context: () => undefined,
  run: (work) => work(),
  set: () => {},
  fail: () => {},
  end: () => {},
};

/** A runtime without tracing. */
export const NO_TRACING: SafeTracing = { isOn: false, start: () => NO_SPAN, current: () => undefined };

/** Protects the runtime from a tracing port that throws, and the traces from unredacted text. */
export function safeTracing(tracing: Tracing | undefined, redact?: Redact | undefined): SafeTracing {
  if (tracing === undefined) return NO_TRACING;
  const { flush } = tracing;
  return {
    isOn: true,
    start: (options) => {
      const span = attempted(() => tracing.start(options));
      return span === undefined ? NO_SPAN : safeSpan(span, redact);
    },
    current: () => traceContextOf(attempted(() => tracing.current())),
    ...(flush && { flush: async () => flush.call(tracing) }),
  };
}

function safeSpan(span: TracingSpan, redact: Redact | undefined): SafeSpan {
  return {
    context: () => traceContextOf(attempted(() => span.context())),
    run: (work) => runOnce(span, work),
    set: (name, value) => attempted(() => span.set(name, value)),
    fail: (error) => attempted(() => span.fail(failureOf(error, redact))),
    end: () => attempted(() => span.end()),
  };
}

/** Calls `work` exactly once, whatever the port does, and passes on what it returns or throws. */
function runOnce<T>(span: TracingSpan, work: () => T): T {
  let done: { readonly value: T } | { readonly thrown: unknown } | undefined;
  const watched = () => {
    if (done !== undefined) return;
    try {
      done = { value: work() };
    } catch (thrown) {
      done = { thrown };
    }
  };
  attempted(() => span.run(watched));
  if (done === undefined) watched();
  const end = done as unknown as { readonly value: T } | { readonly thrown: unknown };
  if ('thrown' in end) throw end.thrown;
  return end.value;
}

function failureOf(error: unknown, redact: Redact | undefined): SpanFailure {
  const told = redact === undefined ? error : redactedError(error, redact);
  return {
    type: errorCode(told),
    message: errorMessage(told),
    ...(told instanceof Error && { stack: told.stack }),
  };
}

/** Runs `work` in a span that is the active one, and ends with it. */
export async function inSpan<T>(
  tracing: SafeTracing,
  options: SpanOptions,
  work: (span: SafeSpan) => Promise<T>,
): Promise<T> {
  const span = tracing.start(options);
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

/**
 * Exports the spans of an invocation, before Lambda freezes the process. It never throws.
 *
 * @param endsBy - the time at which the function is stopped, epoch milliseconds; at most a quarter of the time left is spent
 * @default no limit but a second
 */
export async function flushSpans(
  { flush }: SafeTracing,
  clock: Clock,
  endsBy = Number.POSITIVE_INFINITY,
): Promise<void> {
  if (flush === undefined) return;
  const flushed = flush().then(
    () => {},
    () => {},
  );
  await withDeadline(clock, Math.min(FLUSH_MAX_MS, (endsBy - clock.now()) / 4), flushed, () => {});
}
