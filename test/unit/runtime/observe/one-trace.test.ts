import { context, trace } from '@opentelemetry/api';
import { AlwaysOffSampler, type TracerConfig } from '@opentelemetry/sdk-trace-base';
import { expect, test } from 'vitest';
import { transactionalBatch } from '../../../../lambdas/runtime/consume/batch-handler.ts';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent, type Envelope } from '../../../../lambdas/runtime/events/event.ts';
import { HEARTBEAT } from '../../../../lambdas/runtime/events/heartbeat-event.ts';
import { createRelayStream } from '../../../../lambdas/runtime/relay/relay-stream.ts';
import { createRelaySweep } from '../../../../lambdas/runtime/relay/relay-sweep.ts';
import { createConsumer } from '../../../../lambdas/runtime/sources/sqs/consumer.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { createAtOncePublisher } from '../../../../lambdas/runtime/store/dynamo/publish-at-once.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { recordedSpans, shape } from '../../../support/otel-spans.ts';
import { consumerConfig, relayConfig, rig, runThrough, ThingHappened } from '../../../support/runtime-rig.ts';

/** A producer, the relay and a consumer, all traced. */
function system(handlers: readonly Handler[], sdk: TracerConfig = {}) {
  const spans = recordedSpans(sdk);
  const parts = rig();
  const { clock, memory: table, bus, queue, telemetry } = parts;
  bus.routeTo(queue);
  const outbox = createOutbox({ config: consumerConfig, table, clock, telemetry });
  const relay = createRelayStream({ config: relayConfig, table, bus, clock, telemetry });
  const handle = createConsumer({
    config: consumerConfig,
    table,
    queue,
    handlers,
    clock,
    telemetry,
    redact: (text) => text.replace(/\d{4}/g, '#'),
  });
  return {
    ...parts,
    spans,
    outbox,
    relay: () => runThrough(clock, relay(parts.streamEvent())),
    deliver: (timeoutMs = 30_000) =>
      runThrough(clock, queue.deliver(handle, 10, lambdaContext({ clock, timeoutMs }))),
    envelopes: () => bus.published().map(({ detail }) => JSON.parse(detail) as Envelope),
  };
}

test('a commit, its publish and its processing are one trace', async () => {
  const { spans, outbox, happened, relay, deliver } = system([leased(ThingHappened, async () => {})]);
  const [event] = await outbox.commit({ events: [happened(1)] });
  await relay();
  await deliver();
  const send = spans.one('send');
  const { traceId, spanId } = send.spanContext();
  const child = { trace: traceId, parent: spanId, links: [spanId], failed: false };
  expect(event?.traceparent).toBe(`00-${traceId}-${spanId}-01`);
  expect(shape(spans.one('publish'))).toEqual(child);
  expect(shape(spans.one('process'))).toEqual(child);
  expect(spans.one('process').attributes).toEqual({
    'messaging.system': 'aws_sqs',
    'messaging.system.name': 'aws.sqs',
    'messaging.operation.name': 'process',
    'messaging.operation.type': 'process',
    'messaging.destination.name': 'queue',
    'messaging.message.id': expect.any(String),
    'messaging.message.conversation_id': event?.correlationId,
    'messaging.consumer.group.name': 'worker',
    'mailroom.event.type': 'ThingHappened',
    'mailroom.event.id': event?.eventId,
    'mailroom.outcome': 'processed',
  });
  expect(spans.all().map((span) => span.name)).toEqual(['send Mailroom', 'publish bus', 'process queue']);
});

test('each message of a batch has its own span, and the events that it causes continue its trace', async () => {
  const follows = transactionalBatch(ThingHappened, async (events) => ({
    events: events.map((cause) => ({
      cause,
      draft: ThingHappened.create({ aggregateId: `of-${cause.eventId}`, data: { n: 0 } }),
    })),
  }));
  const { spans, outbox, happened, relay, deliver, rows } = system([follows]);
  await outbox.commit({ events: [happened(1)] });
  await outbox.commit({ events: [happened(2)] });
  await relay();
  await deliver();
  const processed = spans.all().filter(({ name }) => name.startsWith('process'));
  expect(processed).toHaveLength(2);
  for (const span of processed) {
    expect(span.attributes).toMatchObject({
      'mailroom.outcome': 'processed',
      'messaging.batch.message_count': 2,
    });
    const { traceId, spanId } = span.spanContext();
    const caused = rows()
      .map(({ envelope }) => JSON.parse(String(envelope)) as Envelope)
      .find(({ aggregateId }) => aggregateId === `of-${span.attributes['mailroom.event.id']}`);
    expect(caused?.traceparent).toBe(`00-${traceId}-${spanId}-01`);
  }
});

test('a heartbeat is processed without a span', async () => {
  const { spans, queue, deliver, clock, memory: table } = system([leased(ThingHappened, async () => {})]);
  const heartbeats = createOutbox({ config: { ...consumerConfig, service: HEARTBEAT.source }, table, clock });
  const [heartbeat] = await heartbeats.commit({
    events: [HEARTBEAT.create({ aggregateId: 'table', data: {} })],
  });
  queue.send({ source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type, detail: heartbeat });
  await deliver();
  expect(queue.messages()).toEqual([]);
  expect(spans.all().map(({ name }) => name)).toEqual(['send Mailroom']);
});

test('the span of a commit contains the error of a schema as redacted', async () => {
  const spans = recordedSpans();
  const { clock, memory: table } = rig();
  const validate = () => {
    throw new Error('no bank has 4111 1111');
  };
  const schema = { '~standard': { version: 1, vendor: 'own', validate } } as const;
  const Strict = defineEvent({
    source: 'things',
    type: 'Strict',
    version: 1,
    aggregateType: 'thing',
    schema,
  });
  const redact = (text: string) => text.replace(/\d{4}/g, '#');
  const outbox = createOutbox({
    config: { ...consumerConfig, publishes: ['Strict'] },
    table,
    clock,
    redact,
  });
  const draft = Strict.create({ aggregateId: '1', data: {} as never });
  await expect(outbox.commit({ events: [draft] })).rejects.toThrow('no bank has 4111 1111');
  const { status, events } = spans.one('send');
  expect(status.message).toBe('no bank has # #');
  expect(JSON.stringify(events)).not.toContain('4111');
});

test('a call that publishes several events is linked to each of their traces', async () => {
  const { spans, outbox, happened, relay } = system([]);
  await outbox.commit({ events: [happened(1)] });
  await outbox.commit({ events: [happened(2)] });
  await relay();
  const sent = spans.all().filter(({ name }) => name.startsWith('send'));
  const publish = spans.one('publish');
  expect(shape(publish)).toMatchObject({ parent: undefined, failed: false });
  expect(shape(publish).links.sort()).toEqual(sent.map((span) => span.spanContext().spanId).sort());
  expect(publish.attributes).toMatchObject({ 'messaging.batch.message_count': 2 });
});

test.each<[string, Handler]>([
  [
    'leased',
    leased(ThingHappened, async (event, ctx) => {
      trace.getActiveSpan()?.setAttribute('test.of', 'handler');
      await ctx.once('charge', async () => {
        trace.getActiveSpan()?.setAttribute('test.of', 'effect');
      });
      await ctx.commit({ events: [ThingHappened.create({ aggregateId: 'next', data: event.data })] });
    }),
  ],
  [
    'transactional',
    transactional(ThingHappened, async (event) => {
      trace.getActiveSpan()?.setAttribute('test.of', 'handler');
      return { events: [ThingHappened.create({ aggregateId: 'next', data: event.data })] };
    }),
  ],
])("a %s handler runs in its message's span, whose context its events carry", async (kind, handler) => {
  const { spans, outbox, happened, relay, deliver, rows, envelopes } = system([handler]);
  const [first] = await outbox.commit({ events: [happened(1)] });
  await relay();
  await deliver();
  const process = spans.one('process');
  expect(process.attributes).toMatchObject({ 'test.of': 'handler' });
  if (kind === 'leased') {
    const effect = spans.one('once');
    expect(shape(effect).parent).toBe(process.spanContext().spanId);
    expect(effect.attributes).toEqual({ 'mailroom.effect.name': 'charge', 'test.of': 'effect' });
  }
  expect(rows()).toHaveLength(2);
  const second = rows()
    .map(({ envelope }) => JSON.parse(envelope) as Envelope)
    .find(({ eventId }) => eventId !== first?.eventId);
  const { traceId, spanId } = process.spanContext();
  expect(second?.traceparent).toBe(`00-${traceId}-${spanId}-01`);
  expect(traceId).toBe(spans.one('send').spanContext().traceId);
  expect(envelopes()).toHaveLength(1);
});

test('a handler that fails is an error on its span, in redacted words', async () => {
  const fails = leased(ThingHappened, async (_, ctx) => {
    await ctx.once('charge', () => Promise.reject(new RangeError('card 4111 refused')));
  });
  const { spans, outbox, happened, relay, deliver } = system([fails]);
  await outbox.commit({ events: [happened(1)] });
  await relay();
  await deliver();
  for (const name of ['process', 'once']) {
    const span = spans.one(name);
    expect(span.status).toEqual({ code: 2, message: 'card # refused' });
    expect(span.attributes).toMatchObject({ 'error.type': 'RangeError' });
    expect(span.events).toMatchObject([{ attributes: { 'exception.message': 'card # refused' } }]);
    expect(JSON.stringify(span.events)).not.toContain('4111');
  }
  expect(spans.one('process').attributes).toMatchObject({ 'mailroom.outcome': 'failed' });
});

test('a duplicate, a rejected message and a waiting message have different outcomes', async () => {
  const handlers = [leased(ThingHappened, async () => {})];
  const { spans, clock, queue, outbox, happened, relay, deliver } = system(handlers);
  const [event] = await outbox.commit({ events: [happened(1)] });
  await relay();
  const outcome = (n: number) => spans.all().filter(({ name }) => name.startsWith('process'))[n];
  await deliver(1_000);
  expect(outcome(0)?.attributes).toMatchObject({ 'mailroom.outcome': 'waiting' });
  await clock.advance(900_000);
  await deliver();
  queue.send({ source: 'things', 'detail-type': 'ThingHappened', detail: event });
  await deliver();
  queue.send({ source: 'things', 'detail-type': 'Other', detail: { ...event, type: 'Other' } });
  queue.send('no json');
  await deliver();
  expect(outcome(1)?.attributes).toMatchObject({ 'mailroom.outcome': 'processed' });
  expect(outcome(2)?.attributes).toMatchObject({ 'mailroom.outcome': 'duplicate' });
  expect([0, 1, 2].map((n) => outcome(n)?.status.code)).toEqual([0, 0, 0]);
  const unreadable = spans.all().find(({ attributes }) => attributes['error.type'] === 'UNREADABLE_MESSAGE');
  expect(unreadable?.attributes).toMatchObject({ 'mailroom.outcome': 'rejected' });
});

test('messages of one batch that run at the same time keep their own spans', async () => {
  let waiting = 0;
  let bothRun = () => {};
  const together = new Promise<void>((resolve) => {
    bothRun = resolve;
  });
  const handler = leased(ThingHappened, async (event, ctx) => {
    waiting += 1;
    if (waiting === 2) bothRun();
    await together;
    await ctx.once('charge', async () => {});
    await ctx.commit({ events: [ThingHappened.create({ aggregateId: 'next', data: event.data })] });
  });
  const { spans, outbox, happened, relay, deliver, rows } = system([handler]);
  for (const n of [1, 2]) await outbox.commit({ events: [happened(n)] });
  await relay();
  await deliver();
  const processed = spans.all().filter(({ name }) => name.startsWith('process'));
  const ids = processed.map((span) => span.spanContext().spanId).sort();
  const effects = spans.all().filter(({ name }) => name === 'once');
  expect(effects.map((effect) => shape(effect).parent).sort()).toEqual(ids);
  const written = rows().map(({ envelope }) => JSON.parse(envelope) as Envelope);
  for (const { eventId, causationId, traceparent } of written.filter((event) => event.causationId)) {
    const parent = processed.find(({ attributes }) => attributes['mailroom.event.id'] === causationId);
    expect(traceparent?.split('-')[2], eventId).toBe(parent?.spanContext().spanId);
  }
  expect(ids).toHaveLength(2);
});

test('the span of an invocation is linked, and the renewals of a lease are outside of the handler', async () => {
  const seen: (string | undefined)[] = [];
  const slow = leased(ThingHappened, async () => {
    await parts.clock.sleep(consumerConfig.leaseMs);
  });
  const parts = system([slow]);
  const { changeVisibility } = parts.queue;
  parts.queue.changeVisibility = async (...call) => {
    seen.push(trace.getSpanContext(context.active())?.spanId);
    return changeVisibility.call(parts.queue, ...call);
  };
  await parts.outbox.commit({ events: [parts.happened(1)] });
  await parts.relay();
  const invocation = trace.getTracer('lambda').startSpan('invocation');
  await context.with(trace.setSpan(context.active(), invocation), () => parts.deliver());
  const { spanId } = invocation.spanContext();
  expect(shape(parts.spans.one('process')).links).toContain(spanId);
  expect(seen.length).toBeGreaterThan(0);
  expect(new Set(seen)).toEqual(new Set([spanId]));
});

test('an explicit trace context wins, a malformed one does not, and neither fails the commit', async () => {
  const { outbox, spans } = system([]);
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const create = (context: object) => ThingHappened.create({ aggregateId: '1', data: { n: 1 }, ...context });
  const [explicit, malformed] = await outbox.commit({
    events: [
      create({ traceparent, tracestate: 'rojo=1' }),
      create({ traceparent: 'malformed', tracestate: 'rojo=1' }),
    ],
  });
  expect(explicit).toMatchObject({ traceparent, tracestate: 'rojo=1' });
  expect(malformed?.traceparent).toContain(spans.one('send').spanContext().spanId);
  expect(malformed).not.toHaveProperty('tracestate');
});

test('an unsampled commit tells its consumers not to sample', async () => {
  const { spans, outbox, happened, relay, deliver } = system([leased(ThingHappened, async () => {})], {
    sampler: new AlwaysOffSampler(),
  });
  const [event] = await outbox.commit({ events: [happened(1)] });
  expect(event?.traceparent).toMatch(/^00-[\da-f]{32}-[\da-f]{16}-00$/);
  await relay();
  await deliver();
  expect(spans.all()).toEqual([]);
});

test('a processor of spans that throws fails neither a commit nor a message', async () => {
  const fails = (): never => {
    throw new Error('the exporter is broken');
  };
  const processor = { onStart: fails, onEnd: fails, shutdown: async () => {}, forceFlush: fails };
  const { outbox, happened, relay, deliver, telemetry } = system([leased(ThingHappened, async () => {})], {
    spanProcessors: [processor],
  });
  await outbox.commit({ events: [happened(1)] });
  await relay();
  await deliver();
  expect(telemetry.counted('MessagesProcessed')).toBe(1);
});

test('spans contain no payload, even of a message that its schema refuses', async () => {
  const { spans, queue, outbox, relay, deliver } = system([leased(ThingHappened, async () => {})]);
  const secret = 4_111_111;
  const [event] = await outbox.commit({
    events: [ThingHappened.create({ aggregateId: '1', data: { n: secret } })],
  });
  await relay();
  const detail = {
    ...event,
    eventId: event?.eventId.replace(/.$/, 'f'),
    data: { n: `${secret}`, [secret]: 1 },
  };
  queue.send({ source: 'things', 'detail-type': 'ThingHappened', detail });
  await deliver();
  const read = spans
    .all()
    .map(({ name, attributes, events, status }) => ({ name, attributes, events, status }));
  expect(read.filter(({ attributes }) => attributes['error.type'] === 'INVALID_PAYLOAD')).toHaveLength(1);
  expect(JSON.stringify(read)).not.toContain(`${secret}`);
});

test('a sweep, and a producer that publishes at once, make one span of each call', async () => {
  const spans = recordedSpans();
  const { clock, memory: table, bus, telemetry, happened } = rig();
  const config = { busName: 'arn:aws:events:eu-west-1:111122223333:event-bus/shop', timeoutMs: 1_000 };
  const publishAtOnce = createAtOncePublisher({ config: { ...config, publishedRetentionDays: 7 }, bus });
  const parts = { config: consumerConfig, table, clock, telemetry };
  await createOutbox({ ...parts, publishAtOnce }).commit({ events: [happened(1)] });
  expect(shape(spans.one('publish shop')).parent).toBe(spans.one('send').spanContext().spanId);

  await createOutbox(parts).commit({ events: [happened(2)] });
  await clock.advance(120_000);
  const sweep = createRelaySweep({ ...parts, config: relayConfig, bus });
  await runThrough(clock, sweep({}, lambdaContext({ clock, timeoutMs: 55_000 })));
  expect(bus.published()).toHaveLength(2);
  expect(spans.one('publish bus').attributes).toMatchObject({ 'mailroom.event.type': 'ThingHappened' });
});

test('a refused entry is an error on the span of its call', async () => {
  const spans = recordedSpans();
  const failEntry = () => ({ code: 'MalformedDetail', message: 'Detail is malformed.' });
  const { clock, memory: table, bus, telemetry, outbox, happened, streamEvent } = rig({ bus: { failEntry } });
  await outbox.commit({ events: [happened(1)] });
  const relay = createRelayStream({ config: relayConfig, table, bus, clock, telemetry });
  await runThrough(clock, relay(streamEvent()));
  const { attributes, status } = spans.one('publish');
  expect(attributes).toMatchObject({ 'error.type': 'MalformedDetail' });
  expect(status).toEqual({ code: 2, message: 'Detail is malformed.' });
});
