import { beforeEach, expect, test } from 'vitest';
import { type PgListener, wakeListener } from '../../../../lambdas/runtime/postgres/wake-listener.ts';
import type { WakeListener } from '../../../../lambdas/runtime/relay/database-relay.ts';
import { systemRandomBytes } from '../../../../lambdas/runtime/store/event-id.ts';
import { type ManualClock, manualClock } from '../../../../testing/manual-clock.ts';
import { type MemoryTelemetry, memoryTelemetry } from '../../../../testing/memory-telemetry.ts';

type Emit = (event: 'notification' | 'error' | 'end', value?: unknown) => void;

let clock: ManualClock;
let telemetry: MemoryTelemetry;
let listener: WakeListener;
let wakes: number;
let queries: string[];
let connections: Emit[];
/** Answers a statement; by default at once. */
let answer: (text: string) => Promise<unknown>;
let isDeaf: boolean;

beforeEach(() => {
  clock = manualClock();
  telemetry = memoryTelemetry();
  wakes = 0;
  queries = [];
  connections = [];
  answer = async () => {};
  isDeaf = false;
  const wake = () => {
    wakes += 1;
  };
  listener = wakeListener({ listen: connection, wake, clock, random: systemRandomBytes, telemetry });
});

/** A connection that notifies itself as a server does. */
function connection(): PgListener {
  const listeners = new Map<string, (value: never) => void>();
  const emit: Emit = (event, value) => listeners.get(event)?.(value as never);
  connections.push(emit);
  return {
    connect: async () => {},
    on: (event: string, listen: (value: never) => void) => listeners.set(event, listen),
    query: async (text: string, [payload]: unknown[] = []) => {
      const name = /LISTEN|notify|advisory_lock|advisory_unlock|SELECT 1/.exec(text)?.[0] ?? text;
      queries.push(name);
      await answer(name);
      if (name === 'notify' && !isDeaf) emit('notification', { payload });
    },
    end: async () => {
      queries.push('end');
    },
  };
}

/** Lets everything happen that waits for no time. */
const settle = () => clock.advance(0).then(() => new Promise((resolve) => setImmediate(resolve)));

async function asleep(): Promise<Emit> {
  listener.fallAsleep();
  await settle();
  expect(listener.isAsleep()).toBe(true);
  return connections.at(-1) as Emit;
}

test('a relay falls asleep with the lock, and is woken for its last look at the queue', async () => {
  await asleep();
  expect(queries).toEqual(['LISTEN', 'notify', 'advisory_lock']);
  expect(wakes).toBe(1);
});

test('a notification wakes the relay, and releases the lock', async () => {
  const emit = await asleep();
  emit('notification', { payload: '' });
  expect([wakes, listener.isAsleep(), queries.at(-1)]).toEqual([2, false, 'advisory_unlock']);
  await asleep();
  expect(connections).toHaveLength(1);
});

test('a relay that has work releases the lock once', async () => {
  await asleep();
  listener.awake();
  listener.awake();
  expect(queries.filter((name) => name === 'advisory_unlock')).toHaveLength(1);
});

test('a connection that does not receive its own notification takes no lock, and is replaced after a pause', async () => {
  isDeaf = true;
  listener.fallAsleep();
  await settle();
  await clock.advance(5_000);
  await settle();
  expect(queries).toEqual(['LISTEN', 'notify', 'end']);
  expect(telemetry.lines()).toMatchObject([{ level: 'warn' }]);
  listener.fallAsleep();
  await settle();
  expect(connections).toHaveLength(1);
  isDeaf = false;
  await clock.advance(60_000);
  await asleep();
});

test.each(['error', 'end'] as const)('after the %s of its connection, the relay polls', async (event) => {
  const emit = await asleep();
  emit(event, new Error('gone'));
  expect([wakes, listener.isAsleep()]).toEqual([2, false]);
});

test('a lock that others hold for too long is tried again a second later', async () => {
  answer = (name) => (name === 'advisory_lock' ? Promise.reject(new Error('55P03')) : Promise.resolve());
  listener.fallAsleep();
  await settle();
  expect([wakes, listener.isAsleep()]).toEqual([0, false]);
  listener.fallAsleep();
  await settle();
  expect(queries).toHaveLength(3);
  answer = async () => {};
  await clock.advance(1_000);
  await asleep();
});

test('a connection that does not answer is replaced', async () => {
  await asleep();
  listener.check();
  await settle();
  listener.check();
  expect(listener.isAsleep()).toBe(true);
  await settle();
  answer = () => new Promise(() => {});
  listener.check();
  listener.check();
  expect([listener.isAsleep(), queries.at(-1)]).toEqual([false, 'end']);
});

test('a relay that stops closes its connection, and logs nothing', async () => {
  const emit = await asleep();
  await listener.close();
  emit('end');
  expect(queries.at(-1)).toBe('end');
  expect(telemetry.lines()).toEqual([]);
});
