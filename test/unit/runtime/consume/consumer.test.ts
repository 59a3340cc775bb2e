import { describe, expect, test, vi } from 'vitest';
import { type Handler, leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/events/event.ts';
import { HEARTBEAT } from '../../../../lambdas/runtime/events/heartbeat-event.ts';
import { createOutbox } from '../../../../lambdas/runtime/store/dynamo/outbox.ts';
import { unreadableId } from '../../../../lambdas/runtime/store/event-id.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import {
  body,
  CONSUMER,
  consumer,
  envelope,
  inboxRow,
  oneMessage,
  type Parts,
  send,
} from './consumer-rig.ts';

test('a leased handler runs once, although its event arrives in two messages', async () => {
  const one = oneMessage();
  const handle = vi.fn(async () => ({ fine: true }));
  one.queue.send(body(one.event));
  await one.drain(leased(ThingHappened, handle));
  expect(handle).toHaveBeenCalledExactlyOnceWith(
    { ...one.event, source: 'things' },
    expect.objectContaining({ attempt: 1 }),
  );
  expect(one.row()).toMatchObject({
    status: 'PROCESSED',
    attempts: 1,
    result: '{"fine":true}',
    schema: 1,
    expiresAt: expect.any(Number),
  });
  expect(one.queue.messages()).toEqual([]);
  expect(one.queue.deadLetters()).toEqual([]);
});

test('a message that its function has too little time left to start waits as in an outage, longer each time', async () => {
  const one = oneMessage();
  const handle = vi.fn();
  for (const longestMs of [60_000, 120_000, 240_000]) {
    const startsAt = Math.max(one.clock.now(), one.visibleAt());
    await one.deliver(handle, { timeoutMs: 1_999 });
    expect(one.visibleAt() - startsAt).toBeGreaterThanOrEqual(longestMs * 0.8);
    expect(one.visibleAt() - startsAt).toBeLessThanOrEqual(longestMs + 1_000);
  }
  expect(handle).not.toHaveBeenCalled();
  expect(one.row()).toBeUndefined();
});

const handler = leased(ThingHappened, vi.fn());

test.each<[string, readonly unknown[], RegExp]>([
  ['a value that is not a handler', [handler, vi.fn()], /^handlers\[1\] is of type function, .* leased/],
  [
    'two handlers of one event',
    [handler, transactional(ThingHappened, vi.fn())],
    /^Two handlers take ThingHappened from things/,
  ],
])('a consumer refuses %s', (_what, handlers, message) => {
  expect(() => consumer(rig(), handlers as readonly Handler[])).toThrow(
    expect.objectContaining({ code: 'BAD_CONSUMER', message: expect.stringMatching(message) }),
  );
});

describe('the log lines', () => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const traceId = 'Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=1';
  const fieldsOf = (parts: Pick<Parts, 'telemetry'>) =>
    parts.telemetry.lines().map(({ extra }) => extra as object);

  test.each<[string, object, (fail: (fields: object) => never) => Handler]>([
    ['leased', { attempt: 1 }, (fail) => leased(ThingHappened, async (_, { logFields }) => fail(logFields))],
    [
      'transactional',
      {},
      (fail) => transactional(ThingHappened, async (_, { logFields }) => fail(logFields)),
    ],
  ])('of a message, and those of its %s handler, identify it', async (_kind, more, handlerOf) => {
    const one = oneMessage({ traceparent, traceId });
    let given: object | undefined;
    const fails = handlerOf((fields) => {
      given = fields;
      throw new Error('It failed');
    });
    await one.deliver(fails);
    const fields = {
      consumer: CONSUMER,
      eventId: one.event.eventId,
      eventType: 'ThingHappened',
      messageId: expect.any(String),
      receives: 1,
      correlation_id: 'chain',
      trace_id: '4bf92f3577b34da6a3ce929d0e0e4736',
      xrayTraceId: '1-5759e988-bd862e3fe1be46a994272793',
      ...more,
    };
    expect(given).toEqual(fields);
    expect(fieldsOf(one)).toEqual([{ ...fields, error: expect.any(Error) }]);
  });

  test('of an unreadable message identify it by its body', async () => {
    const parts = rig();
    parts.queue.send('not json');
    await consumer(parts, []).deliver();
    const [fields] = fieldsOf(parts) as { readonly messageId: string }[];
    expect(fields).toEqual({
      consumer: CONSUMER,
      eventId: unreadableId('not json'),
      messageId: expect.any(String),
      receives: 1,
      error: expect.any(Error),
    });
  });

  test('contain no malformed trace context', async () => {
    const one = oneMessage({ traceparent: 'secret', traceId: 'Root=secret' });
    await one.deliver(() => Promise.reject(new Error('It failed')));
    expect(fieldsOf(one)).toHaveLength(1);
    expect(JSON.stringify(fieldsOf(one))).not.toContain('secret');
  });
});

describe('a heartbeat', () => {
  const delivered = (detail: object) => ({
    source: HEARTBEAT.source,
    'detail-type': HEARTBEAT.type,
    detail,
  });

  /** Puts a heartbeat into the queue, as the bus delivers it. */
  async function sendHeartbeat(parts: Parts) {
    const outbox = createOutbox({ ...parts, config: { ...consumerConfig, service: HEARTBEAT.source } });
    const [heartbeat] = await outbox.commit({
      events: [HEARTBEAT.create({ aggregateId: 'table', data: {} })],
    });
    if (heartbeat === undefined) throw new Error('Nothing was committed');
    parts.queue.send(delivered(heartbeat));
    return heartbeat;
  }

  test.each<[string, (run: () => Promise<object>) => Handler[]]>([
    ['a leased handler', (run) => [leased(ThingHappened, run)]],
    ['a transactional handler', (run) => [transactional(ThingHappened, run)]],
    ['no handler', () => []],
  ])('is claimed and completed once by a consumer with %s, which does not run', async (_what, handlersOf) => {
    const parts = rig();
    const run = vi.fn(async () => ({}));
    const { deliver } = consumer(parts, handlersOf(run));
    const heartbeat = await sendHeartbeat(parts);
    await deliver();
    parts.queue.send(delivered(heartbeat)); // a duplicate
    await deliver();
    expect(inboxRow(parts, heartbeat)).toMatchObject({ status: 'PROCESSED', attempts: 1, type: 'Heartbeat' });
    expect(parts.queue.messages()).toEqual([]);
    expect(parts.telemetry.counted('MessagesDuplicate')).toBe(1);
    expect(run).not.toHaveBeenCalled();
  });

  test('is not part of the metrics of messages and of latency', async () => {
    const parts = rig();
    const { telemetry, clock } = parts;
    await sendHeartbeat(parts);
    await clock.advance(60_000);
    const thing = send(parts);
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, thing)).toMatchObject({ status: 'PROCESSED' });
    expect(telemetry.counted('MessagesReceived')).toBe(1);
    expect(telemetry.counted('MessagesProcessed')).toBe(1);
    expect(telemetry.durations('ProcessLatency')).toHaveLength(1);
    expect(telemetry.durations('ProcessLatency').filter((ms) => ms >= 60_000)).toEqual([]);
  });

  test('of another source is an event without a handler', async () => {
    const parts = rig();
    const stranger = envelope(parts, { type: HEARTBEAT.type, version: 1, data: {} });
    parts.queue.send(body(stranger));
    await consumer(parts, [handler]).deliver();
    expect(inboxRow(parts, stranger)).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
    expect(parts.telemetry.counted('MessagesReceived')).toBe(1);
  });

  test('has a source that no event definition may have', () => {
    expect(() => defineEvent({ ...ThingHappened, source: 'mailroom' })).toThrow(
      /source is "mailroom", which is reserved; use the owning service/,
    );
  });
});
