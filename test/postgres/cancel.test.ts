import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../lambdas/runtime/base/clock.ts';
import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { careForTables } from '../../lambdas/runtime/postgres/postgres-care.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { systemRandomBytes } from '../../lambdas/runtime/store/event-id.ts';
import { postgresTransitions } from '../../lambdas/runtime/store/postgres/relay-transitions.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { relayConfig } from './support/relay-config.ts';
import { PRODUCER, placed, type Rig, startRig } from './support/rig.ts';

let rig: Rig;

beforeAll(async () => {
  rig = await startRig('cancel');
});
beforeEach(() => rig.clear());
afterAll(() => rig.close());

const relayParts = () => ({
  config: relayConfig(),
  clock: systemClock,
  random: systemRandomBytes,
  telemetry: memoryTelemetry(),
});
const relay = () => postgresTransitions({ ...relayParts(), database: rig.database });

async function schedule(inMs: number): Promise<string> {
  const [event] = await rig.outbox.commit(async () => [placed(1, { deliverAt: Date.now() + inMs })]);
  return event?.eventId ?? '';
}

const cancel = (eventId: string) => rig.database.transaction((tx) => rig.outbox.cancel(tx, eventId));

test('a scheduled event is cancelled once, and says so again', async () => {
  const eventId = await schedule(60_000);
  expect(await cancel(eventId)).toBe('cancelled');
  expect(await cancel(eventId)).toBe('cancelled');
  expect(await rig.rows('SELECT 1 FROM mailroom.pending')).toEqual([]);
  expect(await relay().claim(10)).toEqual([]);
});

test('a cancellation that is rolled back cancels nothing', async () => {
  const eventId = await schedule(60_000);
  await rig.database
    .transaction(async (tx) => {
      await rig.outbox.cancel(tx, eventId);
      throw new Error('no');
    })
    .catch(() => {});
  expect(await rig.rows('SELECT event_id::text AS id FROM mailroom.pending')).toEqual([{ id: eventId }]);
});

test('an event that a relay has taken, released or failed, an ordinary and an unknown one are too late', async () => {
  const taken = await schedule(1);
  const ordinary = (await rig.commit(7))[0] ?? '';
  expect(await cancel(ordinary)).toBe('too-late');
  const transitions = relay();
  await expect
    .poll(
      async () => (await rig.rows('SELECT 1 FROM mailroom.pending WHERE due_at <= clock_timestamp()')).length,
    )
    .toBe(2);
  const rows = await transitions.claim(10);
  expect(rows.map(({ eventId }) => eventId).toSorted()).toEqual([taken, ordinary].toSorted());
  expect(await cancel(taken)).toBe('too-late');
  await transitions.release(rows, 60_000);
  expect(await cancel(taken)).toBe('too-late');
  expect(await cancel('01a1fba6-4458-7a41-9c37-3f5d2b8e1103')).toBe('too-late');
});

test('an event of another service is not cancelled', async () => {
  const eventId = await schedule(60_000);
  const foreign = createPostgresOutbox({
    config: { ...PRODUCER, service: 'payments' },
    database: nodePostgres(rig.pool),
  });
  expect(await rig.database.transaction((tx) => foreign.cancel(tx, eventId))).toBe('too-late');
  expect(await cancel(eventId)).toBe('cancelled');
});

test('a cancellation and a claim at the same time: one of them takes the event', async () => {
  const ROUNDS = 40;
  const ids = await Promise.all(Array.from({ length: ROUNDS }, () => schedule(300)));
  await expect
    .poll(
      async () => (await rig.rows('SELECT 1 FROM mailroom.pending WHERE due_at <= clock_timestamp()')).length,
    )
    .toBe(ROUNDS);
  const claimed = new Set<string>();
  const transitions = relay();
  const claims = async () => {
    for (let n = 0; n < ROUNDS; n += 1)
      for (const { eventId } of await transitions.claim(1)) claimed.add(eventId);
  };
  const [answers] = await Promise.all([Promise.all(ids.map(cancel)), claims(), claims()]);
  for (const { eventId } of await transitions.claim(ROUNDS)) claimed.add(eventId);
  const cancelled = ids.filter((_, n) => answers[n] === 'cancelled');
  expect([...claimed, ...cancelled].toSorted()).toEqual(ids.toSorted());
});

test('a cancellation that waits for another one of the same event says that it is cancelled', async () => {
  const eventId = await schedule(60_000);
  const client = await rig.pool.connect();
  await client.query('BEGIN');
  expect(await rig.outbox.cancel(client, eventId)).toBe('cancelled');
  const second = cancel(eventId);
  await expect
    .poll(
      async () => (await rig.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'")).length,
    )
    .toBe(1);
  await client.query('COMMIT');
  client.release();
  expect(await second).toBe('cancelled');
});

test('a cancelled event of another service is too late', async () => {
  const eventId = await schedule(60_000);
  await cancel(eventId);
  const foreign = createPostgresOutbox({
    config: { ...PRODUCER, service: 'payments' },
    database: nodePostgres(rig.pool),
  });
  expect(await rig.database.transaction((tx) => foreign.cancel(tx, eventId))).toBe('too-late');
});

test('a cancelled event is deleted after the retention of published ones', async () => {
  const [old, recent] = [await schedule(60_000), await schedule(60_000)];
  for (const eventId of [old, recent]) await cancel(eventId);
  const age =
    "UPDATE mailroom.cancelled SET cancelled_at = cancelled_at - interval '8 days' WHERE event_id = $1";
  await rig.pool.query(age, [old]);
  await careForTables({ ...relayParts(), database: rig.database });
  for (const table of ['cancelled', 'event'])
    expect(await rig.rows(`SELECT event_id::text AS id FROM mailroom.${table}`)).toEqual([{ id: recent }]);
});
