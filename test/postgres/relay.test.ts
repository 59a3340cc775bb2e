import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import {
  createPostgresRelay,
  createPostgresRelayHandler,
} from '../../lambdas/runtime/postgres/postgres-relay.ts';
import type { Sql } from '../../lambdas/runtime/store/postgres/sql.ts';
import { type MemoryBus, memoryBus } from '../../testing/memory-bus.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { eventually, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('relay');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

function relayOf(bus: Bus, settings = {}) {
  const telemetry = memoryTelemetry();
  const config = relayConfig(settings);
  return { telemetry, ...createPostgresRelay({ config, database: rig.database, bus, telemetry }) };
}

const publishedIds = (bus: MemoryBus) => bus.published().map(({ detail }) => JSON.parse(detail).eventId);
const pending = () =>
  rig.rows(
    'SELECT event_id::text AS id, fence, attempts, last_error, due_at <= clock_timestamp() AS due FROM mailroom.pending ORDER BY event_id',
  );

test('a pass publishes and marks every event that is due, with no transaction open', async () => {
  const ids = await rig.commit(...Array.from({ length: 250 }, (_, n) => n));
  const open: unknown[] = [];
  const bus = memoryBus();
  const watched: Bus = {
    put: async (...call) => {
      open.push(
        ...(await rig.rows("SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'")),
      );
      return bus.put(...call);
    },
  };
  const relay = relayOf(watched);
  expect(await relay.pass()).toEqual({ claimed: 250, published: 250, failed: false });
  expect(publishedIds(bus).toSorted()).toEqual(ids.toSorted());
  expect(open).toEqual([]);
  expect(await pending()).toEqual([]);
  expect(await relay.pass()).toEqual({ claimed: 0, published: 0, failed: false });
});

test('events that the bus did not accept are released without an attempt, and those of other sources go on', async () => {
  await rig.commit(1, 2);
  const bus = memoryBus({ failCall: () => ({ error: new Error('bus is down') }) });
  const relay = relayOf(bus);
  expect(await relay.pass()).toMatchObject({ claimed: 2, published: 0 });
  const row = { fence: null, attempts: 0, last_error: 'bus is down', due: false };
  expect(await pending()).toMatchObject([row, row]);
});

test('a stopped bus ends the pass, and everything stays PENDING', async () => {
  await rig.commit(...Array.from({ length: 600 }, (_, n) => n));
  const bus = memoryBus({ failCall: () => ({ error: new Error('bus is down') }) });
  const relay = relayOf(bus, { sources: ['orders'] });
  await relay.pass();
  expect(await pending()).toHaveLength(600);
  expect((await pending()).every(({ fence, attempts }) => fence === null && attempts === 0)).toBe(true);
  // Three failed calls open the breaker of a source; those in flight end, with their retries.
  expect(bus.calls().length).toBeLessThan(60);
});

test('an event that the bus refuses is DEAD, and its neighbors are published', async () => {
  const [bad] = await rig.commit(1, 2, 3);
  const bus = memoryBus({
    failEntry: ({ detail }) =>
      detail.includes(String(bad)) ? { code: 'MalformedDetail', message: 'Detail is malformed.' } : undefined,
  });
  expect(await relayOf(bus).pass()).toMatchObject({ claimed: 3, published: 2 });
  expect(await rig.rows('SELECT event_id::text AS id, last_error FROM mailroom.dead')).toEqual([
    { id: bad, last_error: 'Detail is malformed.' },
  ]);
});

/** Inserts events past the outbox. @param bytes - the size of its envelope */
async function insertEvents(count: number, bytes: number): Promise<void> {
  const checks =
    "SELECT conname FROM pg_constraint WHERE conrelid = 'mailroom.event'::regclass AND contype = 'c'";
  for (const { conname } of await rig.rows(checks))
    await rig.pool.query(`ALTER TABLE mailroom.event DROP CONSTRAINT "${conname}"`);
  await rig.pool.query(
    `WITH ids AS MATERIALIZED (SELECT overlay(gen_random_uuid()::text placing '7' from 15 for 1)::uuid AS id FROM generate_series(1, $1::int)), events AS (
      INSERT INTO mailroom.event (event_id, source, type, envelope) SELECT id, 'orders', 'Placed', '{"x":"' || repeat('x', $2::int) || '"}' FROM ids)
    INSERT INTO mailroom.pending (event_id) SELECT id FROM ids`,
    [count, bytes],
  );
}

test('an envelope of 200 MB is DEAD, and is not read, so that its neighbors are published', async () => {
  await insertEvents(1, 200_000_000);
  const ids = await rig.commit(1, 2);
  const bus = memoryBus();
  expect(await relayOf(bus).pass()).toMatchObject({ claimed: 3, published: 2 });
  expect(publishedIds(bus).toSorted()).toEqual(ids.toSorted());
  expect(await rig.rows('SELECT attempts, last_error FROM mailroom.dead')).toEqual([
    { attempts: 1, last_error: expect.stringContaining('takes 1000000 bytes or more') },
  ]);
});

test('a claim reads 8 MB of envelopes, and releases the rest of its group without an attempt', async () => {
  await insertEvents(30, 900_000);
  const claimed: number[] = [];
  const bus = memoryBus();
  const config = relayConfig();
  const database: Sql = {
    query: async (text, values) => {
      const answer = await rig.database.query(text, values);
      if (text.includes('SKIP LOCKED'))
        claimed.push(answer.rows.reduce((sum, { envelope }) => sum + String(envelope ?? '').length, 0));
      return answer;
    },
  };
  const relay = createPostgresRelay({ config, database, bus, telemetry: memoryTelemetry() });
  await eventually(async () => {
    await relay.pass();
    return (await pending()).length === 0 ? true : undefined;
  });
  expect(bus.published()).toHaveLength(30);
  expect(Math.max(...claimed)).toBeLessThan(9_000_000);
  expect(await rig.rows('SELECT 1 FROM mailroom.dead')).toEqual([]);
});

test('events of undeclared sources stay PENDING, are reported, and neither block others nor are claimed again at once', async () => {
  const forged = await rig.commit(...Array.from({ length: 150 }, (_, n) => n));
  await rig.pool.query("UPDATE mailroom.event SET source = 'payments'");
  const ids = await rig.commit(1);
  const bus = memoryBus();
  const relay = relayOf(bus);
  expect(await relay.pass()).toMatchObject({ claimed: 151, published: 1 });
  expect(publishedIds(bus)).toEqual(ids);
  expect(await relay.pass()).toMatchObject({ claimed: 0 });
  expect((await pending()).map(({ id }) => id)).toEqual(forged.toSorted());
  expect(relay.telemetry.lines()[0]).toMatchObject({ level: 'error', extra: { sources: ['payments'] } });
});

test('a relay that runs publishes until it is stopped, and a stop ends its pause', async () => {
  const bus = memoryBus();
  const relay = relayOf(bus, { pollMs: 60_000 });
  const run = relay.run();
  await eventually(async () => (relay.telemetry.durations('OldestPendingAge').length > 0 ? true : undefined));
  const [id] = await rig.commit(1);
  await eventually(async () => {
    relay.wake();
    return publishedIds(bus).includes(id) ? true : undefined;
  });
  await relay.stop();
  await run;
  await rig.commit(2);
  expect(publishedIds(bus)).toEqual([id]);
});

test('a relay survives the failure of its database', async () => {
  const bus = memoryBus();
  const relay = relayOf(bus);
  const run = relay.run();
  await rig.server.kill();
  await eventually(async () =>
    relay.telemetry.lines().some(({ message }) => message.includes('could not claim')) ? true : undefined,
  );
  await rig.server.start();
  const [id] = await rig.commit(1);
  await eventually(async () => (publishedIds(bus).includes(id) ? true : undefined));
  await relay.stop();
  await run;
});

test('an event is published again, and never lost, if the server is killed between publish and mark', async () => {
  const ids = await rig.commit(1, 2);
  const bus = memoryBus();
  const killing: Bus = {
    put: async (...call) => {
      const results = await bus.put(...call);
      await rig.server.kill();
      return results;
    },
  };
  const crashed = relayOf(killing, { claimLeaseMs: 3_000, publishTimeoutMs: 200 });
  const pass = crashed.pass();
  await eventually(async () => (rig.server.pid() === undefined ? true : undefined));
  expect(await pass).toMatchObject({ published: 2 });
  await rig.server.start();
  expect(await pending()).toHaveLength(2);
  const relay = relayOf(bus);
  await eventually(async () => ((await relay.pass()).published === 2 ? true : undefined));
  expect(publishedIds(bus).toSorted()).toEqual([...ids, ...ids].toSorted());
  expect(await pending()).toEqual([]);
});

test('an event of a relay that was killed is published by another one when its lease ends', async () => {
  const ids = await rig.commit(1, 2);
  const child = spawn(process.execPath, ['--import', 'tsx', 'test/postgres/relay.child.ts'], {
    env: { ...process.env, POSTGRES_URL: rig.server.url },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = await once(child.stdout, 'data');
  expect(String(printed).trim().split(' ').toSorted()).toEqual(ids.toSorted());
  child.kill('SIGKILL');
  await once(child, 'exit');
  const bus = memoryBus();
  const relay = relayOf(bus);
  await eventually(async () => {
    await relay.pass();
    return bus.published().length === 2 ? true : undefined;
  });
  expect(await pending()).toEqual([]);
});

test('relays and producers at a time: what was committed is published once, and what was rolled back never', async () => {
  const bus = memoryBus();
  const relays = [1, 2, 3].map(() => relayOf(bus, { pollMs: 50 }));
  const runs = relays.map((relay) => relay.run());
  const [committed, rolledBack] = [new Set<string>(), new Set<string>()];
  const producers = Array.from({ length: 4 }, async (_, producer) => {
    for (let n = 0; n < 60; n += 1) {
      const fails = (n + producer) % 3 === 0;
      const into = fails ? rolledBack : committed;
      const written = rig.database.transaction(async (tx) => {
        const events = await rig.outbox.write(tx, [placed(n), placed(n)]);
        for (const { eventId } of events) into.add(eventId);
        if (fails) throw new Error('rolled back');
      });
      await written.catch(() => {});
    }
  });
  await Promise.all(producers);
  await eventually(async () => ((await pending()).length === 0 ? true : undefined));
  for (const relay of relays) await relay.stop();
  await Promise.all(runs);
  expect(publishedIds(bus).toSorted()).toEqual([...committed].toSorted());
  expect(publishedIds(bus).some((id) => rolledBack.has(id))).toBe(false);
  expect(committed.size).toBe(320);
});

test('the function publishes until shortly before its timeout, or for a minute', async () => {
  const ids = await rig.commit(1, 2, 3);
  const bus = memoryBus();
  const telemetry = memoryTelemetry();
  let now = Date.now();
  const clock = {
    now: () => now,
    sleep: async (ms: number) => {
      now += Math.max(1, ms);
    },
  };
  const config = relayConfig({ pollMs: 1_000 });
  const handler = createPostgresRelayHandler({ config, database: rig.database, bus, telemetry, clock });
  const startedAt = now;
  await handler({}, { getRemainingTimeInMillis: () => 30_000 });
  expect(publishedIds(bus).toSorted()).toEqual(ids.toSorted());
  expect(now - startedAt).toBe(17_000);
  await handler({}, { getRemainingTimeInMillis: () => 300_000 });
  expect(now - startedAt).toBe(77_000);
});

test('a lease that ends before a publish could is refused', () => {
  expect(() => relayOf(memoryBus(), { claimLeaseMs: 12_000 })).toThrow(/MAILROOM_CLAIM_LEASE_MS/);
});
