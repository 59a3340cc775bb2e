import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import type { FigureTable } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { fill, percentile, producerOf, slowBus } from './events.ts';

/** A backlog that is published while a snapshot is held open: no dead row can be removed. */
export interface HeldDrain {
  readonly system: string;
  readonly drained: number;
  /** Per second, in each fifth of the backlog. */
  readonly perSecond: readonly number[];
}

/** The time for one backlog, milliseconds. A queue that does not end it is measured as far as it came. */
export const HELD_MS = 60_000;

/** Drains a backlog of Mailroom. */
export async function drainHeld(database: BenchDatabase, events: number): Promise<HeldDrain> {
  await fill(database, events);
  return drainBeside(database, 'Mailroom', events, async (onOne) => {
    await database.relayOf(slowBus(0, onOne)).pass(Date.now() + HELD_MS);
  });
}

/** Drains a backlog beside a snapshot. @param drain - calls `onOne` for each event */
export async function drainBeside(
  { holdSnapshot }: Pick<BenchDatabase, 'holdSnapshot'>,
  system: string,
  count: number,
  drain: (onOne: () => void, isDone: () => boolean) => Promise<void>,
): Promise<HeldDrain> {
  const release = await holdSnapshot();
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
  await release();
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

/** Measures a relay that has nothing to do. @param relayOf - creates it */
export async function idle(
  database: BenchDatabase,
  forMs: number,
  events: number,
  { name, relayOf }: { readonly name: string; readonly relayOf: (bus: Bus) => DatabaseRelay },
): Promise<IdleRelay> {
  const ages: number[] = [];
  const relay = relayOf(slowBus(0, (age) => ages.push(age)));
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
  await database.close();
  return {
    relay: name,
    cpuMsPerMinute: Math.round(((user + system) / 1_000) * (60_000 / forMs)),
    p50Ms: percentile(ages, 0.5),
    p99Ms: percentile(ages, 0.99),
  };
}

/** The drains as a table. */
export function heldTable({ name, title }: BenchServer, held: readonly HeldDrain[]): FigureTable {
  return {
    name: `${name}-held`,
    title: `A backlog of 1 KB each in ${title} beside a snapshot that is held open, per second in each fifth`,
    head: ['system', 'drained', 'first', 'second', 'third', 'fourth', 'fifth'],
    rows: held.map(({ system, drained, perSecond }) => [
      system,
      drained,
      ...Array.from({ length: 5 }, (_, n) => perSecond[n] ?? ''),
    ]),
  };
}

/** The measurements as a table. */
export function idleTable({ name, title }: BenchServer, idles: readonly IdleRelay[]): FigureTable {
  return {
    name: `${name}-idle`,
    title: `A relay of an empty queue in ${title}, and the first event after 3 seconds without one`,
    head: ['relay', 'processor ms a minute', 'p50 ms', 'p99 ms'],
    rows: idles.map(({ relay, cpuMsPerMinute, p50Ms, p99Ms }) => [relay, cpuMsPerMinute, p50Ms, p99Ms]),
  };
}
