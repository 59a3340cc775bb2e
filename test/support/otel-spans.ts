import { context, propagation, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
  type TracerConfig,
} from '@opentelemetry/sdk-trace-base';
import { onTestFinished } from 'vitest';

/** Registers an OpenTelemetry SDK for one test, with its in-memory exporter. @param sdk - settings in place of the default */
export function recordedSpans(sdk: TracerConfig = {}) {
  const exporter = new InMemorySpanExporter();
  const spanProcessors = [new SimpleSpanProcessor(exporter)];
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors, ...sdk }));
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  onTestFinished(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });
  const all = () => exporter.getFinishedSpans();
  return {
    all,
    /** The only span whose name begins so. @throws Error if there is another number of them */
    one(name: string): ReadableSpan {
      const found = all().filter((span) => span.name.startsWith(name));
      if (found[0] === undefined || found.length > 1)
        throw new Error(`${found.length} spans ${name}; there are ${all().map((span) => span.name)}`);
      return found[0];
    },
  };
}

/** What a test compares of a span. */
export function shape(span: ReadableSpan) {
  return {
    trace: span.spanContext().traceId,
    parent: span.parentSpanContext?.spanId,
    links: span.links.map((link) => link.context.spanId),
    failed: span.status.code === SpanStatusCode.ERROR,
  };
}
