import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { createConsumer } from '../../../../lambdas/runtime/consume/consumer.ts';
import { leased } from '../../../../lambdas/runtime/consume/handler.ts';
import type { Envelope } from '../../../../lambdas/runtime/events/event.ts';
import type { Telemetry } from '../../../../lambdas/runtime/observe/telemetry.ts';
import type { Tracer } from '../../../../lambdas/runtime/observe/tracer.ts';
import { createOutbox } from '../../../../lambdas/runtime/outbox/outbox.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

const fails = (): never => {
  throw new Error('the exporter is broken');
};

// TypeScript accepts an async function where a port returns nothing.
const rejects = async (): Promise<never> => fails();

const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';

/** A port whose spans do nothing. */
const idle: Tracer = {
  start: () => ({ context: () => undefined, run: (work) => work(), set() {}, fail() {}, end() {} }),
  current: () => undefined,
};

const broken: Readonly<Record<string, Tracer>> = {
  'cannot begin a span': { start: fails, current: fails },
  'cannot do anything with a span': {
    start: () => ({ context: fails, run: fails, set: fails, fail: fails, end: fails }),
    current: fails,
    flush: fails,
  },
  'rejects in each call': {
    start: () => ({
      context: () => undefined,
      run: (work) => work(),
      set: rejects,
      fail: rejects,
      end: rejects,
    }),
    current: () => undefined,
    flush: rejects,
  },
  'throws after the work, and runs it twice': {
    start: () => ({
      ...idle.start({ name: '', kind: 'internal' }),
      run: (work) => {
        work();
        work();
        return fails();
      },
    }),
    current: () => ({ traceparent: 'malformed' }),
    flush: () => Promise.reject(new Error('the exporter is broken')),
  },
  'never exports': { ...idle, flush: () => new Promise(() => {}) },
};

/** Commits, publishes and processes one event. */
async function passes(tracer: Tracer | undefined, cause: Partial<Envelope> = {}) {
  const { clock, memory: table, bus, queue, telemetry, happened, streamEvent, rows } = rig();
  const parts = { table, clock, telemetry, tracer };
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

describe('a tracer that', () => {
  test.each(Object.entries(broken))(
    '%s fails neither a commit, a publish nor a message',
    async (_, tracer) => {
      const { first, second } = await passes(tracer);
      expect(first).not.toHaveProperty('traceparent');
      expect(second).not.toHaveProperty('traceparent');
    },
  );

  test('never exports delays a sweep by no more than a second', async () => {
    const { clock, memory: table, bus, telemetry } = rig();
    const tracer: Tracer = { ...idle, flush: () => new Promise(() => {}) };
    const sweep = createRelaySweep({ config: relayConfig, table, bus, clock, telemetry, tracer });
    const began = clock.now();
    await runThrough(clock, sweep({}, lambdaContext({ clock, timeoutMs: 60_000 })));
    expect(clock.now() - began).toBeLessThanOrEqual(1_050);
  });

  test('sees the error of the handler, and the caller sees it too', async () => {
    const failures: unknown[] = [];
    const tracer: Tracer = {
      ...idle,
      start: (options) => ({ ...idle.start(options), fail: (failure) => failures.push(failure) }),
    };
    const { memory: table, clock, happened } = rig();
    const outbox = createOutbox({ config: { ...consumerConfig, publishes: [] }, table, clock, tracer });
    await expect(outbox.commit({ events: [happened(1)] })).rejects.toThrow('not declared');
    expect(failures).toMatchObject([{ type: 'NOT_DECLARED' }]);
  });
});

describe('without a tracer', () => {
  beforeEach(() => {
    vi.stubEnv('_X_AMZN_TRACE_ID', undefined);
  });
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('nothing about a trace is stored', async () => {
    const { first, second } = await passes(undefined);
    for (const name of ['traceId', 'traceparent', 'tracestate']) {
      expect(first).not.toHaveProperty(name);
      expect(second).not.toHaveProperty(name);
    }
  });

  test("the handled event's context is passed on", async () => {
    const { second } = await passes(undefined, { traceparent, tracestate: 'rojo=1' });
    expect(second).toMatchObject({ traceparent, tracestate: 'rojo=1' });
  });

  test('a malformed context of the handled event is dropped', async () => {
    const { second } = await passes(undefined, { traceparent: 'malformed', tracestate: 'rojo=1' });
    expect(second).not.toHaveProperty('traceparent');
    expect(second).not.toHaveProperty('tracestate');
  });

  const header = (root: string, sampled: 0 | 1) =>
    `Root=1-${root}-bd862e3fe1be46a994272793;Sampled=${sampled}`;

  test('an invocation that X-Ray samples is the trace of its events', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000001', 1));
    const { first, second } = await passes(undefined);
    expect([first?.traceId, second?.traceId]).toEqual([header('00000001', 1), header('00000001', 1)]);
  });

  test('an invocation that X-Ray does not sample stores nothing', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000001', 0));
    expect((await passes(undefined)).first).not.toHaveProperty('traceId');
  });

  test('a chain stays in the X-Ray trace of its first event', async () => {
    vi.stubEnv('_X_AMZN_TRACE_ID', header('00000002', 1));
    const { second } = await passes(undefined, { traceId: header('00000001', 1) });
    expect(second?.traceId).toBe(header('00000001', 1));
  });
});
