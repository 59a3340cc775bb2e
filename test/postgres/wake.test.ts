import { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../../lambdas/runtime/base/clock.ts';
import { createPostgresRelay } from '../../lambdas/runtime/postgres/postgres-relay.ts';
import type { PgListener } from '../../lambdas/runtime/postgres/wake-listener.ts';
import { memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { eventually, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('wake');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

const ADVISORY =
  "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 1296124237 AND mode = 'ExclusiveLock'";
/** The sessions of sleeping relays. */
const sleepers = () => rig.rows(`${ADVISORY} AND granted`);
const fallingAsleep = () => rig.rows(`${ADVISORY} AND NOT granted`);

/** A clock on which a sleeping relay wakes only when it is woken, or when an event is due. */
const NO_FALLBACK: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(ms === 5_000 ? 3_600_000 : ms, signal),
};

/** Runs a relay until the test has finished. */
function runRelay(listen?: () => PgListener, clock = NO_FALLBACK) {
  const bus = memoryBus();
  const telemetry = memoryTelemetry();
  const relay = createPostgresRelay({
    config: relayConfig(),
    database: rig.database,
    bus,
    telemetry,
    clock,
    listen: listen ?? (() => new Client(rig.server.url)),
  });
  const run = relay.run();
  onTestFinished(async () => {
    await relay.stop();
    await run;
  });
  const ids = () => bus.published().map(({ detail }) => JSON.parse(detail).eventId);
  return { telemetry, ids };
}

/** Waits until a relay sleeps. */
const untilAsleep = () => eventually(async () => ((await sleepers()).length > 0 ? true : undefined));

test('a relay sleeps while the queue is empty, and the commit of an event wakes it', async () => {
  const relay = runRelay();
  for (const n of [1, 2]) {
    await untilAsleep();
    const ids = await rig.commit(n);
    await eventually(async () => (relay.ids().includes(ids[0]) ? true : undefined));
  }
});

test('an event whose transaction began before the relay fell asleep is published', async () => {
  const client = await rig.pool.connect();
  onTestFinished(() => client.release(true));
  await client.query('BEGIN');
  const [event] = await rig.outbox.write(client, [placed(1)]);
  const relay = runRelay();
  await eventually(async () => ((await fallingAsleep()).length > 0 ? true : undefined));
  expect(await sleepers()).toEqual([]);
  await client.query('COMMIT');
  await eventually(async () => (relay.ids().includes(event?.eventId) ? true : undefined));
});

test('a scheduled event is published in time by a relay that sleeps', async () => {
  const relay = runRelay();
  await untilAsleep();
  const deliverAt = Date.now() + 3_000;
  const [event] = await rig.outbox.commit(async () => [placed(1, { deliverAt })]);
  await eventually(async () => (relay.ids().includes(event?.eventId) ? true : undefined));
  expect(Date.now()).toBeGreaterThanOrEqual(deliverAt - 1_000);
});

test('commits send no notification while no relay sleeps', async () => {
  const client = new Client(rig.server.url);
  await client.connect();
  onTestFinished(() => client.end());
  const heard: unknown[] = [];
  client.on('notification', (message) => heard.push(message.payload));
  await client.query('LISTEN mailroom');
  await rig.commit(1);
  await client.query("SELECT pg_notify('mailroom', 'last')");
  await eventually(async () => (heard.includes('last') ? true : undefined));
  expect(heard).toEqual(['last']);
});

test('a relay whose connection ends polls, and sleeps again on a new one', async () => {
  const relay = runRelay();
  await untilAsleep();
  await rig.pool.query(`SELECT pg_terminate_backend(pid) FROM (${ADVISORY}) s`);
  const ids = await rig.commit(1);
  await eventually(async () => (relay.ids().includes(ids[0]) ? true : undefined));
  expect(relay.telemetry.lines()).toContainEqual(
    expect.objectContaining({
      level: 'warn',
      message: 'The relay does not receive notifications, and polls',
    }),
  );
  await untilAsleep();
});

test('a relay polls if its connection does not receive notifications, as that of a pooler', async () => {
  const deaf = () => {
    const client = new Client(rig.server.url);
    const on = client.on.bind(client) as PgListener['on'];
    return Object.assign(client, {
      on: (event: never, listener: never) => (event === 'notification' ? undefined : on(event, listener)),
    }) as unknown as PgListener;
  };
  const impatient: Clock = {
    ...systemClock,
    sleep: (ms, signal) => systemClock.sleep(Math.min(ms, 100), signal),
  };
  const relay = runRelay(deaf, impatient);
  await eventually(async () =>
    relay.telemetry.lines().some(({ message }) => message.includes('does not receive')) ? true : undefined,
  );
  expect(await sleepers()).toEqual([]);
  const ids = await rig.commit(1);
  await eventually(async () => (relay.ids().includes(ids[0]) ? true : undefined));
});

test('of two relays, one that works does not keep the other one from being woken', async () => {
  const relays = [runRelay(), runRelay()];
  await untilAsleep();
  await eventually(async () => ((await fallingAsleep()).length > 0 ? true : undefined));
  const ids = await rig.commit(1, 2, 3);
  const all = () => relays.flatMap((relay) => relay.ids()).toSorted();
  await eventually(async () => (all().length === 3 ? true : undefined));
  expect(all()).toEqual(ids.toSorted());
});
