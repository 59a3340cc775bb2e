import { expect, test } from 'vitest';
import { leased, transactional } from '../../../../lambdas/runtime/consume/handler.ts';
import { defineEvent } from '../../../../lambdas/runtime/event.ts';
import { HEARTBEAT } from '../../../../lambdas/runtime/heartbeat-event.ts';
import { createOutbox } from '../../../../lambdas/runtime/write/outbox.ts';
import { lambdaContext } from '../../../../testing/index.ts';
import { consumerConfig, rig, ThingHappened } from '../../../support/runtime-rig.ts';
import { body, consumer, envelope, inboxRow, type Parts, send } from './consumer-rig.ts';

/** Puts a heartbeat into the queue, as the bus delivers it. */
async function sendHeartbeat(parts: Parts) {
  const outbox = createOutbox({ ...parts, config: { ...consumerConfig, service: HEARTBEAT.source } });
  const [heartbeat] = await outbox.commit({
    events: [HEARTBEAT.create({ aggregateId: 'table', data: {} })],
  });
  if (heartbeat === undefined) throw new Error('Nothing was committed');
  parts.queue.send({ source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type, detail: heartbeat });
  return heartbeat;
}

test.each([
  ['leased', leased],
  ['transactional', transactional],
])('a heartbeat is claimed and completed without the %s handler', async (_kind, make) => {
  const parts = rig();
  const run: unknown[] = [];
  const handler = make(ThingHappened, async (event) => {
    run.push(event);
    return {};
  });
  const heartbeat = await sendHeartbeat(parts);
  await consumer(parts, [handler]).deliver();
  expect(inboxRow(parts, heartbeat)).toMatchObject({ status: 'PROCESSED', attempts: 1, type: 'Heartbeat' });
  expect(parts.queue.messages()).toEqual([]);
  expect(run).toEqual([]);
});

test('a consumer without handlers acknowledges heartbeats', async () => {
  const parts = rig();
  const heartbeat = await sendHeartbeat(parts);
  await consumer(parts, []).deliver();
  expect(inboxRow(parts, heartbeat)).toMatchObject({ status: 'PROCESSED' });
});

test('a heartbeat that is redelivered is a duplicate', async () => {
  const parts = rig();
  const { deliver } = consumer(parts, []);
  const heartbeat = await sendHeartbeat(parts);
  await deliver();
  parts.queue.send({ source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type, detail: heartbeat });
  await deliver();
  expect(inboxRow(parts, heartbeat)).toMatchObject({ status: 'PROCESSED', attempts: 1 });
  expect(parts.telemetry.counted('MessagesDuplicate')).toBe(1);
});

test('the metrics of messages and of latency leave heartbeats out', async () => {
  const parts = rig();
  const { telemetry, clock } = parts;
  await sendHeartbeat(parts);
  await clock.advance(60_000);
  const thing = send(parts);
  const { deliver } = consumer(parts, [leased(ThingHappened, async () => {})]);
  await deliver();
  expect(inboxRow(parts, thing)).toMatchObject({ status: 'PROCESSED' });
  expect(telemetry.counted('MessagesReceived')).toBe(1);
  expect(telemetry.counted('MessagesProcessed')).toBe(1);
  expect(telemetry.durations('ProcessLatency').filter((ms) => ms >= 60_000)).toEqual([]);
  expect(telemetry.durations('ProcessLatency')).toHaveLength(1);
});

test('a heartbeat of another source is not one', async () => {
  const parts = rig();
  const stranger = envelope(parts, { type: HEARTBEAT.type, version: 1, data: {} });
  parts.queue.send(body(stranger));
  const { telemetry } = parts;
  await consumer(parts, [leased(ThingHappened, async () => {})]).deliver();
  expect(inboxRow(parts, stranger)).toMatchObject({ status: 'REJECTED', reason: 'UNKNOWN_EVENT_TYPE' });
  expect(telemetry.counted('MessagesReceived')).toBe(1);
});

test('the check of dead letters reports that a heartbeat can be read', async () => {
  const parts = rig();
  const heartbeat = envelope(parts, { type: HEARTBEAT.type, version: 1, data: {} });
  const bodies = [
    JSON.stringify({ source: HEARTBEAT.source, 'detail-type': HEARTBEAT.type, detail: heartbeat }),
  ];
  const request = { mailroomCheck: { bodies } } as never;
  expect(await consumer(parts, []).handle(request, lambdaContext(parts))).toMatchObject({
    checks: [{ ok: true, type: HEARTBEAT.type }],
  });
});

test('an event definition of the reserved source is refused', () => {
  expect(() => defineEvent({ ...ThingHappened, source: 'mailroom' })).toThrow(
    /source is "mailroom", which is reserved; use the owning service/,
  );
});
