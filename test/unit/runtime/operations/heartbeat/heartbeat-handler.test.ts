import { expect, test } from 'vitest';
import type { HeartbeatConfig } from '../../../../../lambdas/runtime/base/config.ts';
import { leased } from '../../../../../lambdas/runtime/consume/handler.ts';
import { HEARTBEAT } from '../../../../../lambdas/runtime/events/heartbeat-event.ts';
import type { ConsumerEntry } from '../../../../../lambdas/runtime/operations/directory.ts';
import { createHeartbeatHandler } from '../../../../../lambdas/runtime/operations/heartbeat/heartbeat-handler.ts';
import { mintEventId, outboxKeyOf } from '../../../../../lambdas/runtime/store/event-id.ts';
import { HEARTBEAT_STATE_KEY, inboxKey } from '../../../../../lambdas/runtime/store/keys.ts';
import { readable, readOutboxRow } from '../../../../../lambdas/runtime/store/stored-rows.ts';
import { memoryTelemetry, producerConfig } from '../../../../../testing/index.ts';
import { runThrough, ThingHappened } from '../../../../support/runtime-rig.ts';
import { directory, mailroomInMemory, worker } from '../../../cli/support/mailroom-in-memory.ts';

const EVERY_MS = 5 * 60_000;

const config: HeartbeatConfig = {
  ...producerConfig({ service: HEARTBEAT.source, shards: 2, publishes: [HEARTBEAT.type] }),
  everyMs: EVERY_MS,
};

const subscribed: ConsumerEntry = { ...worker, events: [...worker.events, HEARTBEAT] };

/** A Mailroom with a heartbeat. @param consumers - the consumers of its directory; only `worker` has a function */
function beating(consumers: readonly ConsumerEntry[] = [subscribed]) {
  const mailroom = mailroomInMemory([leased(ThingHappened, async () => {})]);
  const { clock, table } = mailroom;
  const telemetry = memoryTelemetry();
  const gauges: number[] = [];
  telemetry.gauge = (name, value) => {
    if (name === 'HeartbeatsLate') gauges.push(value);
  };
  const beat = createHeartbeatHandler({
    config,
    table,
    clock,
    telemetry,
    directory: async () => ({ ...directory, consumers }),
  });
  return {
    ...mailroom,
    telemetry,
    gauges,
    beat,
    /** Waits until the next heartbeat is due. */
    wait: () => clock.advance(EVERY_MS),
    warnings: () => telemetry.lines().filter(({ level }) => level === 'warn'),
  };
}

test('a heartbeat passes outbox, relay, bus, queue and inbox, and the next run reports it as acknowledged', async () => {
  const { beat, publish, deliver, wait, gauges, warnings, memory, telemetry } = beating();
  const { sent } = await beat();
  if (sent === null) throw new Error('No heartbeat was sent');
  await publish();
  await deliver();
  expect(memory.item(outboxKeyOf(sent))).toMatchObject({ status: 'PUBLISHED', source: 'mailroom' });
  expect(memory.item(inboxKey(worker.name, sent))).toMatchObject({ status: 'PROCESSED' });
  await wait();
  const report = await beat();
  expect(report).toMatchObject({ late: [], acknowledged: 1 });
  expect(report.slowestMs).toBeGreaterThan(0);
  expect(report.slowestMs).toBeLessThan(EVERY_MS);
  expect(gauges).toEqual([0, 0]);
  expect(warnings()).toEqual([]);
  // The metric would cost more than the events.
  expect(telemetry.counted('EventsCommitted')).toBe(0);
});

test('a consumer that has not acknowledged a heartbeat when the next is due is late, and named in the log', async () => {
  const stalled = { ...subscribed, name: 'stalled' };
  const { beat, publish, deliver, wait, gauges, warnings } = beating([subscribed, stalled]);
  const { sent } = await beat();
  await publish();
  await deliver();
  await wait();
  expect(await beat()).toMatchObject({ late: ['stalled'], acknowledged: 1 });
  expect(gauges).toEqual([0, 1]);
  expect(warnings().map(({ extra }) => extra)).toMatchObject([{ consumers: ['stalled'], eventId: sent }]);
});

test('every consumer is late while the relay publishes nothing', async () => {
  const { beat, wait, gauges } = beating([subscribed, { ...subscribed, name: 'other' }]);
  await beat();
  await wait();
  await beat();
  expect(gauges).toEqual([0, 2]);
});

test('a heartbeat whose message was rejected is not acknowledged', async () => {
  const { beat, wait, gauges, table } = beating();
  const { sent } = await beat();
  if (sent === null) throw new Error('No heartbeat was sent');
  await table.write({ Put: { Item: { ...inboxKey(worker.name, sent), schema: 1, status: 'REJECTED' } } });
  await wait();
  await beat();
  expect(gauges).toEqual([0, 1]);
});

test('a consumer that was deployed before there were heartbeats is not late', async () => {
  const { beat, wait, gauges } = beating([worker]);
  await beat();
  await wait();
  await beat();
  expect(gauges).toEqual([0, 0]);
});

test('a consumer whose entry changed less than a minute before a heartbeat is not late for it', async () => {
  const consumers: ConsumerEntry[] = [];
  const { beat, wait, gauges, clock } = beating(consumers);
  consumers.push({ ...subscribed, changedAt: clock.now() });
  await clock.advance(59_000);
  await beat();
  await wait();
  await beat();
  expect(gauges).toEqual([0, 0]);
  await wait();
  await beat();
  expect(gauges).toEqual([0, 0, 1]);
});

test('a run that is started twice sends one heartbeat', async () => {
  const { beat, clock, gauges, rows } = beating();
  await beat();
  await clock.advance(1_000);
  expect(await beat()).toMatchObject({ sent: null, late: [] });
  expect(rows()).toHaveLength(1);
  expect(gauges).toEqual([0]);
});

test('a heartbeat of the future, from a wrong clock, does not delay the next one', async () => {
  const { beat, clock, table } = beating();
  const future = mintEventId(clock.now() + 3_600_000, 2);
  await table.write({ Put: { Item: { ...HEARTBEAT_STATE_KEY, schema: 1, latest: future } } });
  const { sent } = await beat();
  expect(await table.get(HEARTBEAT_STATE_KEY)).toMatchObject({ latest: sent, previous: future });
});

test('a run that cannot commit reports nothing, so that its silence raises the alarm', async () => {
  const { table, telemetry, gauges, clock } = beating();
  const failing = createHeartbeatHandler({
    config,
    table: { ...table, transact: () => Promise.reject(new Error('no permission')) },
    clock,
    telemetry,
    directory: async () => directory,
  });
  await expect(runThrough(clock, failing())).rejects.toThrow('no permission');
  expect(gauges).toEqual([]);
});

test('a state that was changed by hand starts over', async () => {
  const { beat, table, gauges } = beating();
  await table.write({ Put: { Item: { ...HEARTBEAT_STATE_KEY, latest: 'yesterday', previous: 7 } } });
  const { sent } = await beat();
  expect(gauges).toEqual([0]);
  const state = await table.get(HEARTBEAT_STATE_KEY);
  expect(state).toEqual({ ...HEARTBEAT_STATE_KEY, schema: 1, latest: sent });
});

test('a heartbeat has a text at each path by which a consumer groups messages', async () => {
  const paths = [
    '$.detail.data.tenantId',
    '$.detail.data.a.b',
    '$.detail.data.a.__proto__.c',
    '$.detail.type',
  ];
  const { beat, memory } = beating(paths.map((fairBy, i) => ({ ...subscribed, name: `c-${i}`, fairBy })));
  const { sent } = await beat();
  if (sent === null) throw new Error('No heartbeat was sent');
  const row = readable(readOutboxRow(memory.item(outboxKeyOf(sent))));
  expect(row?.envelope).toContain(
    '"data":{"tenantId":"mailroom","a":{"b":"mailroom","__proto__":{"c":"mailroom"}}}',
  );
  expect({}).not.toHaveProperty('c');
});
