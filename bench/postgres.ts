import { Client, Pool } from 'pg';
import type { FigureTable, Part, PartSettings } from './part.ts';
import {
  type BenchDatabase,
  BUS_MS,
  megabytes,
  percentile,
  steadily,
  withServer,
} from './postgres/database.ts';
import { inOrder, inOrderTable } from './postgres/in-order.ts';
import { withJobQueues } from './postgres/job-queues.ts';
import { fill, producerOf, relayOf, slowBus } from './postgres/mailroom.ts';
import { drainHeld, drainJobsHeld, heldTable, idle, idleTable } from './postgres/quiet.ts';
import { retain, retentionTable } from './postgres/retention.ts';

/** A backlog that is published. */
interface Drain {
  readonly system: string;
  readonly relays: number;
  readonly busMs: number;
  readonly perSecond: number;
  /** Bytes of the write-ahead log for each event, without its commit. */
  readonly walBytes: number;
}

/** The time that events wait at a steady rate. */
interface Wait {
  readonly system: string;
  readonly perSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** The size of the queue with its index afterwards, MB; absent for a replication slot. */
  readonly queueMb?: number;
}

type Create = (name: string) => Promise<BenchDatabase>;

/** Measures the relay of a PostgreSQL database, and beside it other ways to read one. */
export const postgres: Part = {
  name: 'postgres',
  title: 'the relay on PostgreSQL; with --install, its backlog beside two job queues',
  run: (settings) =>
    withServer(async (create) => {
      const sizes = settings.quick ? QUICK : FULL;
      const drains = await drainMailroom(create, sizes, settings);
      const waits = await waitFor(create, sizes, settings);
      const retention = await retain(await create('retention'), sizes.published, settings);
      const idles = [];
      for (const listens of [false, true]) {
        const database = await create(listens ? 'idle_listens' : 'idle_polls');
        idles.push(await idle(database, sizes.idleMs, sizes.idleEvents, listens));
        await database.close();
        settings.say(`an idle relay: ${idles.at(-1)?.cpuMsPerMinute} ms of processor a minute`);
      }
      const ofHeld = await create('held');
      const held = [await drainHeld(ofHeld, sizes.held)];
      await ofHeld.close();
      settings.say(`beside a snapshot: ${held[0]?.perSecond.join(', ')} events per second`);
      if (settings.install) {
        await withJobQueues(async (queues) => {
          for (const [system, open] of Object.entries(queues)) {
            const database = await create(`held_${system.replace(/\W.*/, '')}`);
            const queue = await open(database);
            held.push(await drainJobsHeld(database, system, queue, sizes.held));
            await queue.close();
            await database.close();
            settings.say(`${system} beside a snapshot: ${held.at(-1)?.perSecond.join(', ')} jobs per second`);
          }
        });
      }
      const ordered = await inOrder(create, sizes.drained, sizes.waiting, sizes.ofOne);
      settings.say(
        `one after another: ${ordered.map(({ perSecond }) => perSecond).join(' and ')} events per second`,
      );
      return {
        json: {
          postgresDrain: drains,
          postgresWait: waits,
          postgresHeld: held,
          postgresIdle: idles,
          postgresRetention: retention,
          postgresInOrder: ordered,
        },
        tables: [
          drainTable(drains),
          waitTable(waits),
          heldTable(held),
          idleTable(idles),
          retentionTable(retention),
          inOrderTable(ordered),
        ],
      };
    }),
};

interface Sizes {
  readonly drained: number;
  readonly perSecond: number;
  readonly forMs: number;
  readonly published: number;
  readonly held: number;
  readonly idleMs: number;
  readonly idleEvents: number;
  /** Events of one aggregate that wait, and of them those that are published. */
  readonly waiting: number;
  readonly ofOne: number;
}

const FULL: Sizes = {
  drained: 20_000,
  perSecond: 200,
  forMs: 20_000,
  published: 1_000_000,
  held: 200_000,
  idleMs: 60_000,
  idleEvents: 10,
  waiting: 100_000,
  ofOne: 1_000,
};
const QUICK: Sizes = {
  drained: 1_000,
  perSecond: 50,
  forMs: 1_000,
  published: 2_000,
  held: 2_000,
  idleMs: 1_000,
  idleEvents: 1,
  waiting: 1_000,
  ofOne: 50,
};

/** Publishes a backlog with 1, 2 and 4 relays, on a bus that answers at once and on one that takes its time. */
async function drainMailroom(create: Create, { drained }: Sizes, { say }: PartSettings): Promise<Drain[]> {
  const drains: Drain[] = [];
  for (const busMs of [0, BUS_MS]) {
    for (const relays of [1, 2, 4]) {
      const database = await create(`drain_${relays}_${busMs}`);
      await fill(database, drained);
      const pools = Array.from(
        { length: relays },
        () => new Pool({ connectionString: database.url, max: 8 }),
      );
      const walBefore = await database.walBytes();
      const beganAt = performance.now();
      const passes = await Promise.all(pools.map((pool) => relayOf({ pool }, slowBus(busMs)).pass()));
      const seconds = (performance.now() - beganAt) / 1_000;
      const published = passes.reduce((sum, pass) => sum + pass.published, 0);
      if (published !== drained) throw new Error(`${published} of ${drained} events were published`);
      const walBytes = Math.round(((await database.walBytes()) - walBefore) / drained);
      const drain = { system: 'Mailroom', relays, busMs, perSecond: Math.round(drained / seconds), walBytes };
      drains.push(drain);
      say(`${relays} relays, a bus of ${busMs} ms: ${drain.perSecond} events per second`);
      await Promise.all([...pools.map((pool) => pool.end()), database.close()]);
    }
  }
  return drains;
}

/** Publishes at a steady rate: with a poll, while a snapshot is held open, and by a logical replication slot. */
async function waitFor(create: Create, sizes: Sizes, { say }: PartSettings): Promise<Wait[]> {
  const { perSecond } = sizes;
  const waits: Wait[] = [];
  for (const snapshot of [false, true]) {
    const database = await create(snapshot ? 'wait_snapshot' : 'wait');
    const holder = new Client(database.url);
    await holder.connect();
    if (snapshot) await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    if (snapshot) await holder.query('SELECT count(*) FROM mailroom.pending');
    const ages: number[] = [];
    const relay = relayOf(
      database,
      slowBus(0, (age) => ages.push(age)),
    );
    const running = relay.run();
    const written = await steadily(perSecond, sizes.forMs * (snapshot ? 2 : 1), producerOf(database));
    await until(() => ages.length >= written);
    await relay.stop();
    await running;
    const { rows } = await database.pool.query("SELECT pg_total_relation_size('mailroom.pending') AS bytes");
    await holder.end();
    const system = snapshot ? 'Mailroom, a snapshot is held open' : 'Mailroom, a poll every 100 ms';
    waits.push({ system, perSecond, ...percentiles(ages), queueMb: megabytes(rows[0]?.bytes) });
    say(`${system}: p99 ${waits.at(-1)?.p99Ms} ms`);
    await database.close();
  }
  waits.push(await readSlot(create, sizes));
  say(`a replication slot: p99 ${waits.at(-1)?.p99Ms} ms`);
  return waits;
}

/** Reads the inserted events from a logical replication slot, as CDC does, every 100 ms. */
async function readSlot(create: Create, { perSecond, forMs }: Sizes): Promise<Wait> {
  const database = await create('slot');
  await database.pool.query("SELECT pg_create_logical_replication_slot('bench', 'test_decoding')");
  const ages: number[] = [];
  let isOpen = true;
  const reading = (async () => {
    while (isOpen) {
      const { rows } = await database.pool.query<{ data: string }>(
        "SELECT data FROM pg_logical_slot_get_changes('bench', NULL, NULL) WHERE data LIKE 'table mailroom.event: INSERT%'",
      );
      const now = Date.now();
      for (const { data } of rows) ages.push(now - Number(/"occurredAt":(\d+)/.exec(data)?.[1]));
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  })();
  const written = await steadily(perSecond, forMs, producerOf(database));
  await until(() => ages.length >= written);
  isOpen = false;
  await reading;
  await database.pool.query("SELECT pg_drop_replication_slot('bench')");
  await database.close();
  return { system: 'a replication slot, read every 100 ms', perSecond, ...percentiles(ages) };
}

const DEADLINE_MS = 300_000;

async function until(isDone: () => boolean): Promise<void> {
  const endsAt = performance.now() + DEADLINE_MS;
  while (!isDone()) {
    if (performance.now() > endsAt) throw new Error(`It was not done within ${DEADLINE_MS / 1_000} s.`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function percentiles(ages: readonly number[]) {
  return { p50Ms: percentile(ages, 0.5), p99Ms: percentile(ages, 0.99) };
}

function drainTable(drains: readonly Drain[]): FigureTable {
  return {
    name: 'postgres-drain',
    title: 'A backlog of events of 1 KB in a PostgreSQL on the same machine, with durable commits',
    head: ['system', 'relays', 'bus ms', 'per second', 'WAL bytes each'],
    rows: drains.map(({ system, relays, busMs, perSecond, walBytes }) => [
      system,
      relays,
      busMs,
      perSecond,
      walBytes,
    ]),
  };
}

function waitTable(waits: readonly Wait[]): FigureTable {
  return {
    name: 'postgres-wait',
    title: 'From the commit to the bus at a steady rate, ms',
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
