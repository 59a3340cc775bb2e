import { attempted } from '../base/attempted.ts';
import type { Clock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import { errorCode, errorMessage } from '../base/errors.ts';
import { type Redact, redactedError } from './redaction.ts';
import { type TraceContext, traceContextOf } from './trace-context.ts';

/** The value of a span's attribute. Never a part of a payload. */
export type SpanAttribute = string | number | boolean;

/** The description of a span that starts. */
export interface SpanOptions {
  /** A name with few different values: never an id. */
  readonly name: string;
  /** The span kind, as in OpenTelemetry. */
  readonly kind: 'producer' | 'consumer' | 'client' | 'internal';
  /** The attributes that are known when it starts. @default none */
  readonly attributes?: Readonly<Record<string, SpanAttribute | undefined>> | undefined;
  /** The span that caused it, in another process. @default the active span */
  readonly parent?: TraceContext | undefined;
  /** Other spans that caused it. @default none */
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

/** A span that has started. */
export interface TracerSpan {
  /** Its context, for messages sent in it; `undefined` without one. */
  context(): TraceContext | undefined;
  /** Calls `work` with this span as the active one, also for what it awaits. Returns what `work` returns. */
  run<T>(work: () => T): T;
  /** Sets an attribute. */
  set(name: string, value: SpanAttribute): void;
  /** Marks it as failed. */
  fail(failure: SpanFailure): void;
  /** Ends it. */
  end(): void;
}

/**
 * Starts the spans of a producer, a consumer or a relay; `openTelemetry()` of `cdk-mailroom/opentelemetry` is one. Its errors are
 * ignored: tracing never fails a message or a commit.
 *
 * @example
 * ```ts
 * const tracer: Tracer = openTelemetry();
 * export const outbox = lambdaOutbox({ tracer });
 * ```
 */
export interface Tracer {
  /** Starts a span, without making it the active one. */
  start(options: SpanOptions): TracerSpan;
  /** The context of the active span; `undefined` without one. */
  current(): TraceContext | undefined;
  /**
   * Exports the spans that have ended. Awaited for at most a second at the end of each invocation of a consumer and of the relay,
   * because Lambda then freezes the process. @default the exporter decides
   */
  flush?(): Promise<unknown>;
}

/** A {@link Tracer} that cannot throw, as the runtime uses it. */
export interface SafeTracer {
  /** False without a tracer: nothing needs to be prepared for a span. */
  readonly isOn: boolean;
  start(options: SpanOptions): SafeSpan;
  current(): TraceContext | undefined;
  flush?: (() => Promise<unknown>) | undefined;
}

/** A {@link TracerSpan} that cannot throw, and that takes errors as they were thrown. */
export interface SafeSpan extends Omit<TracerSpan, 'fail'> {
  fail(error: unknown): void;
}

/** The span of a runtime without a tracer. */
export const NO_SPAN: SafeSpan = {
  context: () => undefined,
  run: (work) => work(),
  set: () => {},
  fail: () => {},
  end: () => {},
};

/** The tracer of a runtime without one. */
export const NO_TRACER: SafeTracer = { isOn: false, start: () => NO_SPAN, current: () => undefined };

/** Protects the runtime from a tracer that throws, and the traces from unredacted text. */
export function safeTracer(tracer: Tracer | undefined, redact?: Redact | undefined): SafeTracer {
  if (tracer === undefined) return NO_TRACER;
  const { flush } = tracer;
  return {
    isOn: true,
    start: (options) => {
      const span = attempted(() => tracer.start(options));
      return span === undefined ? NO_SPAN : safeSpan(span, redact);
    },
    current: () => traceContextOf(attempted(() => tracer.current())),
    ...(flush && { flush: async () => flush.call(tracer) }),
  };
}

function safeSpan(span: TracerSpan, redact: Redact | undefined): SafeSpan {
  return {
    context: () => traceContextOf(attempted(() => span.context())),
    run: (work) => runOnce(span, work),
    set: (name, value) => attempted(() => span.set(name, value)),
    fail: (error) => attempted(() => span.fail(failureOf(error, redact))),
    end: () => attempted(() => span.end()),
  };
}

/** Calls `work` exactly once, whatever the tracer does, and returns its result or throws its error. */
function runOnce<T>(span: TracerSpan, work: () => T): T {
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
  const redacted = redact === undefined ? error : redactedError(error, redact);
  return {
    type: errorCode(redacted),
    message: errorMessage(redacted),
    ...(redacted instanceof Error && { stack: redacted.stack }),
  };
}

/** Runs `work` in a span that is the active one, and ends with it. */
export async function inSpan<T>(
  tracer: SafeTracer,
  options: SpanOptions,
  work: (span: SafeSpan) => Promise<T>,
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

/**
 * Exports the spans of an invocation, before Lambda freezes the process. It never throws.
 *
 * @param endsBy - the time at which the function is stopped, epoch milliseconds; at most a quarter of the time left is spent
 * @default at most a second is spent
 */
export async function flushSpans(
  { flush }: SafeTracer,
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
