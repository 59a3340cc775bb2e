import { Client, Pool } from 'pg';
import type { FigureTable } from '../part.ts';
import { type BenchDatabase, percentile } from './database.ts';
import type { JobQueue } from './job-queues.ts';
import { fill, producerOf, relayOf, slowBus } from './mailroom.ts';

/** A backlog that is published while a snapshot is held open: no dead row can be removed. */
export interface HeldDrain {
  readonly system: string;
  readonly drained: number;
  /** Per second, in each fifth of the backlog. */
  readonly perSecond: readonly number[];
}

/** The time for one backlog, milliseconds. A queue that does not end it is measured as far as it came. */
const HELD_MS = 60_000;

/** Drains a backlog of Mailroom. */
export async function drainHeld(database: BenchDatabase, events: number): Promise<HeldDrain> {
  await fill(database, events);
  const pool = new Pool({ connectionString: database.url, max: 8 });
  const held = await beside(database, 'Mailroom', events, async (onOne) => {
    await relayOf({ pool }, slowBus(0, onOne)).pass(Date.now() + HELD_MS);
  });
  await pool.end();
  return held;
}

/** Drains a backlog of another queue. */
export async function drainJobsHeld(
  database: BenchDatabase,
  system: string,
  queue: JobQueue,
  jobs: number,
): Promise<HeldDrain> {
  await queue.fill(jobs);
  return beside(database, system, jobs, async (onOne, isDone) => {
    const endsAt = performance.now() + HELD_MS;
    await queue.work(onOne);
    while (!isDone() && performance.now() < endsAt) await new Promise((resolve) => setTimeout(resolve, 50));
  });
}

async function beside(
  { url }: BenchDatabase,
  system: string,
  count: number,
  drain: (onOne: () => void, isDone: () => boolean) => Promise<void>,
): Promise<HeldDrain> {
  const holder = new Client(url);
  await holder.connect();
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await holder.query('SELECT count(*) FROM pg_class');
  const part = count / 5;
  const perSecond: number[] = [];
  let drained = 0;
  let since = performance.now();
  const ended = () => {
    const now = performance.now();
    perSecond.push(Math.round(((drained % part || part) * 1_000) / (now - since)));
    since = now;
  };
  await drain(
    () => {
      drained += 1;
      if (drained % part === 0) ended();
    },
    () => drained >= count,
  );
  if (drained < count) ended();
  await holder.end();
  return { system, drained: Math.min(drained, count), perSecond };
}

/** A relay of an empty queue, and the first event after a pause. */
export interface IdleRelay {
  readonly relay: string;
  /** Of the relay's process. */
  readonly cpuMsPerMinute: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Longer than a relay waits before it falls asleep, milliseconds. */
const PAUSE_MS = 3_000;

/** Measures a relay that has nothing to do. */
export async function idle(
  database: BenchDatabase,
  forMs: number,
  events: number,
  listens: boolean,
): Promise<IdleRelay> {
  const ages: number[] = [];
  const bus = slowBus(0, (age) => ages.push(age));
  const relay = relayOf(database, bus, listens ? () => new Client(database.url) : undefined);
  const running = relay.run();
  const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
  await pause(PAUSE_MS);
  const before = process.cpuUsage();
  await pause(forMs);
  const { user, system } = process.cpuUsage(before);
  const produce = producerOf(database);
  for (let n = 0; n < events; n += 1) {
    await produce(n);
    await pause(PAUSE_MS);
  }
  await relay.stop();
  await running;
  return {
    relay: listens ? 'listens, and polls every 5 s' : 'polls every 100 ms',
    cpuMsPerMinute: Math.round(((user + system) / 1_000) * (60_000 / forMs)),
    p50Ms: percentile(ages, 0.5),
    p99Ms: percentile(ages, 0.99),
  };
}

export function heldTable(held: readonly HeldDrain[]): FigureTable {
  return {
    name: 'postgres-held',
    title: 'A backlog of 1 KB each beside a snapshot that is held open, per second in each fifth',
    head: ['system', 'drained', 'first', 'second', 'third', 'fourth', 'fifth'],
    rows: held.map(({ system, drained, perSecond }) => [
      system,
      drained,
      ...Array.from({ length: 5 }, (_, n) => perSecond[n] ?? ''),
    ]),
  };
}

export function idleTable(idles: readonly IdleRelay[]): FigureTable {
  return {
    name: 'postgres-idle',
    title: 'A relay of an empty queue, and the first event after 3 seconds without one',
    head: ['relay', 'processor ms a minute', 'p50 ms', 'p99 ms'],
    rows: idles.map(({ relay, cpuMsPerMinute, p50Ms, p99Ms }) => [relay, cpuMsPerMinute, p50Ms, p99Ms]),
  };
}
