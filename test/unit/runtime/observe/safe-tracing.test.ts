import {
  type ContextManager,
  context,
  INVALID_SPAN_CONTEXT,
  ROOT_CONTEXT,
  type Span,
  type TracerProvider,
  trace,
} from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/events/event.ts';
import type { Telemetry } from '../../../../lambdas/runtime/observe/telemetry.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { recordedSpans } from '../../../support/otel-spans.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

const fails = (): never => {
  throw new Error('the exporter is broken');
};

// TypeScript accepts an async function where a port returns nothing.
const rejects = async (): Promise<never> => fails();

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** An SDK that an application may register. */
interface Sdk {
  readonly startSpan?: () => Span;
  readonly forceFlush?: () => unknown;
  /** Calls the work of an active span. */
  readonly with?: (work: () => unknown) => unknown;
}

/** A span that records nothing. */
const idleSpan = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);

const broken: Readonly<Record<string, Sdk>> = {
  'cannot begin a span': { startSpan: fails },
  'cannot do anything with a span': {
    startSpan: () => new Proxy({} as Span, { get: () => fails }),
    forceFlush: fails,
    with: fails,
  },
  'rejects in each call': {
    startSpan: () =>
      new Proxy({} as Span, {
        get: (_, name) => (name === 'spanContext' ? () => INVALID_SPAN_CONTEXT : rejects),
      }),
    forceFlush: rejects,
  },
  'throws after the work, and runs it twice': {
    forceFlush: rejects,
    with: (work) => {
      work();
      work();
      return fails();
    },
  },
  'never exports': { forceFlush: () => new Promise(() => {}) },
};

/** Registers an SDK for one test. */
function register({ startSpan = () => idleSpan, forceFlush, with: call = (work) => work() }: Sdk): void {
  const tracer = { startSpan, startActiveSpan: fails };
  trace.setGlobalTracerProvider({ getTracer: () => tracer, forceFlush } as TracerProvider);
  const contexts = {
    active: () => ROOT_CONTEXT,
    with: (_: unknown, work: () => unknown) => call(work),
    bind: (_: unknown, target: unknown) => target,
    enable: () => contexts,
    disable: () => contexts,
  } as ContextManager;
  context.setGlobalContextManager(contexts);
  onTestFinished(() => {
    trace.disable();
    context.disable();
  });
}

/** Commits, publishes and processes one event. */
async function passes(cause: Partial<Envelope> = {}) {
  const { clock, memory: table, bus, queue, telemetry, happened, streamEvent, rows } = rig();
  const parts = { table, clock, telemetry };
  const outbox = createOutbox({ ...parts, config: consumerConfig });
  const relay = createRelayStream({ ...parts, config: relayConfig, bus });
  const runs: string[] = [];
  const handler = leased(ThingHappened, async (event, ctx) => {
    const ran = await ctx.once('charge', async (key) => {
      runs.push(key);
      return 'charged';
    });
    runs.push(ran);
    await ctx.commit({ events: [ThingHappened.create({ aggregateId: 'next', data: event.data })] });
  });
  const handle = createConsumer({ ...parts, config: consumerConfig, queue, handlers: [handler] });
  const [event] = await outbox.commit({ events: [happened(1)] });
  await runThrough(clock, relay(streamEvent()));
  queue.send({ source: 'things', 'detail-type': 'ThingHappened', detail: { ...event, ...cause } });
  await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
  expect(bus.published()).toHaveLength(1);
  expect(telemetry.counted('MessagesProcessed')).toBe(1);
  expect(runs).toEqual([expect.stringContaining(':charge'), 'charged']);
  const envelopes = rows().map((row) => JSON.parse(row.envelope) as Envelope);
  return { first: event, second: envelopes.find(({ eventId }) => eventId !== event?.eventId) };
}

test('telemetry that throws fails neither a commit nor a message, so that neither is made again', async () => {
  const { clock, memory: table, queue, happened } = rig();
  const log = { debug: fails, info: fails, warn: fails, error: fails };
  const telemetry: Telemetry = { log, count: fails, gauge: rejects, duration: fails, flush: rejects };
  const parts = { table, clock, telemetry, config: consumerConfig };
  const [event] = await createOutbox(parts).commit({ events: [happened(1)] });
  let runs = 0;
  const refuse = leased(ThingHappened, async () => {
    runs += 1;
    throw new Error('no');
  });
  const handle = createConsumer({ ...parts, queue, handlers: [refuse] });
  queue.send({ source: 'things', 'detail-type': 'ThingHappened', detail: event });
  await runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock })));
  expect(runs).toBe(1);
  expect(table.items().map(({ status }) => status)).toEqual(expect.arrayContaining(['PENDING', 'FAILED']));
});

describe('an SDK that', () => {
  test.each(Object.entries(broken))('%s fails neither a commit, a publish nor a message', async (_, sdk) => {
    register(sdk);
    const { first, second } = await passes();
    expect(first).not.toHaveProperty('traceparent');
    expect(second).not.toHaveProperty('traceparent');
  });

  test('never exports delays a sweep by no more than a second', async () => {
    const { clock, memory: table, bus, telemetry } = rig();
    register({ forceFlush: () => new Promise(() => {}) });
    const sweep = createRelaySweep({ config: relayConfig, table, bus, clock, telemetry });
    const began = clock.now();
    await runThrough(clock, sweep({}, lambdaContext({ clock, timeoutMs: 60_000 })));
    expect(clock.now() - began).toBeLessThanOrEqual(1_050);
  });

  test('records spans sees the error of a commit, and the caller sees it too', async () => {
    const spans = recordedSpans();
    const { memory: table, clock, happened } = rig();
    const outbox = createOutbox({ config: { ...consumerConfig, publishes: [] }, table, clock });
    await expect(outbox.commit({ events: [happened(1)] })).rejects.toThrow('not declared');
    expect(spans.one('send').attributes).toMatchObject({ 'error.type': 'NOT_DECLARED' });
  });
});

describe('without an SDK', () => {
  beforeEach(() => {
    vi.stubEnv('_X_AMZN_TRACE_ID', undefined);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('nothing about a trace is stored', async () => {
    const { first, second } = await passes();
    for (const name of ['traceId', 'traceparent', 'tracestate']) {
      expect(first).not.toHaveProperty(name);
      expect(second).not.toHaveProperty(name);
    }
  });

  test("the handled event's context is passed on", async () => {
    const { second } = await passes({ traceparent, tracestate: 'rojo=1' });
    expect(second).toMatchObject({ traceparent, tracestate: 'rojo=1' });
  });

  test('a malformed context of the handled event is dropped', async () => {
    const { second } = await passes({ traceparent: 'malformed', tracestate: 'rojo=1' });
    expect(second).not.toHaveProperty('traceparent');
    expect(second).not.toHaveProperty('tracestate');
  });

  const header = (root: string, sampled: 0 | 1) =>
    `Root=1-${root}-bd862e3fe1be46a994272793;Sampled=${sampled}`;

  test('an invocation that X-Ray samples is the trace of its events', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000001', 1));
    const { first, second } = await passes();
    expect([first?.traceId, second?.traceId]).toEqual([header('00000001', 1), header('00000001', 1)]);
  });

  test('an invocation that X-Ray does not sample stores nothing', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000001', 0));
    expect((await passes()).first).not.toHaveProperty('traceId');
  });

  test('a chain stays in the X-Ray trace of its first event', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000002', 1));
    const { second } = await passes({ traceId: header('00000001', 1) });
    expect(second?.traceId).toBe(header('00000001', 1));
  });
});
