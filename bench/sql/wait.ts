import type { FigureTable, PartSettings } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { megabytes, percentile, producerOf, slowBus, steadily } from './events.ts';

/** The time that events wait at a steady rate. */
export interface Wait {
  readonly system: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The size of the queue with its index afterwards, MB; absent for a replication slot. */
  readonly queueMb?: number;
}

/** A steady rate. */
export interface Rate {
  readonly perSecond: number;
  readonly forMs: number;
}

/** Publishes at a steady rate with a poll, also while a snapshot is held open. */
export async function waitAtRate(
  create: (name: string) => Promise<BenchDatabase>,
  { perSecond, forMs }: Rate,
  { say }: PartSettings,
): Promise<Wait[]> {
  const waits: Wait[] = [];
  for (const isHeld of [false, true]) {
    const database = await create(isHeld ? 'wait_snapshot' : 'wait');
    const release = isHeld ? await database.holdSnapshot() : async () => {};
    const ages: number[] = [];
    const relay = database.relayOf(slowBus(0, (age) => ages.push(age)));
    const running = relay.run();
    const written = await steadily(perSecond, forMs * (isHeld ? 2 : 1), producerOf(database));
    await until(() => ages.length >= written);
    await relay.stop();
    await running;
    const queueMb = megabytes(await database.bytesOf('pending'));
    await release();
    const system = isHeld ? 'Mailroom, a snapshot is held open' : 'Mailroom, a poll every 100 ms';
    waits.push({ system, perSecond, ...percentiles(ages), queueMb });
    say(`${system}: p99 ${waits.at(-1)?.p99Ms} ms`);
    await database.close();
  }
  return waits;
}

const DEADLINE_MS = 300_000;

/** Waits for a condition. @throws Error after 5 minutes */
export async function until(isDone: () => boolean): Promise<void> {
  const endsAt = performance.now() + DEADLINE_MS;
  while (!isDone()) {
    if (performance.now() > endsAt) throw new Error(`It was not done within ${DEADLINE_MS / 1_000} s.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** The middle and the end of some times. */
export function percentiles(ages: readonly number[]): Pick<Wait, 'p50Ms' | 'p99Ms'> {
  return { p50Ms: percentile(ages, 0.5), p99Ms: percentile(ages, 0.99) };
}

/** The measurements as a table. */
export function waitTable({ name, title }: BenchServer, waits: readonly Wait[]): FigureTable {
  return {
    name: `${name}-wait`,
    title: `From the commit in ${title} to the bus at a steady rate, ms`,
    head: ['system', 'per second', 'p50', 'p99', 'queue MB'],
    rows: waits.map(({ system, perSecond, p50Ms, p99Ms, queueMb = '' }) => [
      system,
      perSecond,
      p50Ms,
      p99Ms,
      queueMb,
    ]),
  };
}
