import type { FigureTable, PartSettings } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { BUS_MS, fill, slowBus } from './events.ts';

/** A backlog that is published. */
interface Drain {
  readonly system: string;
  readonly relays: number;
  readonly busMs: number;
  readonly perSecond: number;
  /** Bytes of the write-ahead log for each event, without its commit. */
  readonly walBytes: number;
}

/** Publishes a backlog with 1, 2 and 4 relays, on a bus that answers at once and on one that takes its time. */
export async function drainAll(
  create: (name: string) => Promise<BenchDatabase>,
  drained: number,
  { say }: PartSettings,
): Promise<Drain[]> {
  const drains: Drain[] = [];
  for (const busMs of [0, BUS_MS]) {
    for (const relays of [1, 2, 4]) {
      const database = await create(`drain_${relays}_${busMs}`);
      await fill(database, drained);
      const measured = Array.from({ length: relays }, () => database.relayOf(slowBus(busMs)));
      const logBefore = await database.logBytes();
      const beganAt = performance.now();
      const passes = await Promise.all(measured.map((relay) => relay.pass()));
      const seconds = (performance.now() - beganAt) / 1_000;
      const published = passes.reduce((sum, pass) => sum + pass.published, 0);
      if (published !== drained) throw new Error(`${published} of ${drained} events were published`);
      const walBytes = Math.round(((await database.logBytes()) - logBefore) / drained);
      const drain = { system: 'Mailroom', relays, busMs, perSecond: Math.round(drained / seconds), walBytes };
      drains.push(drain);
      say(`${relays} relays, a bus of ${busMs} ms: ${drain.perSecond} events per second`);
      await database.close();
    }
  }
  return drains;
}

/** The measurements as a table. */
export function drainTable({ name, title }: BenchServer, drains: readonly Drain[]): FigureTable {
  return {
    name: `${name}-drain`,
    title: `A backlog of events of 1 KB in ${title} on the same machine, with durable commits`,
    head: ['system', 'relays', 'bus ms', 'per second', 'log bytes each'],
    rows: drains.map(({ system, relays, busMs, perSecond, walBytes }) => [
      system,
      relays,
      busMs,
      perSecond,
      walBytes,
    ]),
  };
}
