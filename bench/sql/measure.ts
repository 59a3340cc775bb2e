import type { Bus } from '../../lambdas/runtime/bus/event-bus.ts';
import type { DatabaseRelay } from '../../lambdas/runtime/relay/database-relay.ts';
import type { PartResult, PartSettings } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { drainAll, drainTable } from './drain.ts';
import { inOrder, inOrderTable, ORDER_SIZES } from './in-order.ts';
import { drainHeld, type HeldDrain, heldTable, type IdleRelay, idle, idleTable } from './quiet.ts';
import { retain, retentionTable } from './retention.ts';
import { countStatements, statementsTable } from './statements.ts';
import { type Rate, type Wait, waitAtRate, waitTable } from './wait.ts';

/** The sizes of the measurements. */
export interface Sizes extends Rate {
  readonly drained: number;
  readonly published: number;
  readonly held: number;
  readonly idleMs: number;
  readonly idleEvents: number;
}

const FULL: Sizes = {
  drained: 20_000,
  perSecond: 200,
  forMs: 20_000,
  published: 200_000,
  held: 200_000,
  idleMs: 60_000,
  idleEvents: 10,
};
const QUICK: Sizes = {
  drained: 1_000,
  perSecond: 50,
  forMs: 1_000,
  published: 2_000,
  held: 2_000,
  idleMs: 1_000,
  idleEvents: 1,
};

/** Measurements that only one kind of database has. */
export interface OwnMeasurements<Database extends BenchDatabase> {
  /** Other readers at the same rate. */
  readonly waits?: (sizes: Sizes) => Promise<Wait[]>;
  /** Other queues beside a snapshot. */
  readonly held?: (sizes: Sizes) => Promise<HeldDrain[]>;
  /** Relays that do not only poll. */
  readonly idle?: {
    readonly name: string;
    readonly relayOf: (database: Database, bus: Bus) => DatabaseRelay;
  };
}

/** Measures the relay of one kind of database. The names of its figures begin with that of the server. */
export async function measure<Database extends BenchDatabase>(
  server: BenchServer<Database>,
  create: (name: string) => Promise<Database>,
  settings: PartSettings,
  own: OwnMeasurements<Database> = {},
): Promise<PartResult> {
  const { name } = server;
  const { say } = settings;
  const sizes = settings.quick ? QUICK : FULL;
  const drains = await drainAll(create, sizes.drained, settings);
  const statements = await countStatements(await create('statements'));
  const waits = await waitAtRate(create, sizes, settings);
  waits.push(...((await own.waits?.(sizes)) ?? []));
  const ordered = await inOrder(create, ORDER_SIZES[settings.quick ? 'quick' : 'full']);
  say(`one after another: ${ordered.map(({ perSecond }) => perSecond).join(' and ')} events per second`);
  const retention = await retain(await create('retention'), sizes.published, settings);
  const idles: IdleRelay[] = [];
  const polling = { name: 'polls every 100 ms', relayOf: (of: Database, bus: Bus) => of.relayOf(bus) };
  for (const relay of own.idle === undefined ? [polling] : [polling, own.idle]) {
    const database = await create(`idle_${idles.length}`);
    const of = { name: relay.name, relayOf: (bus: Bus) => relay.relayOf(database, bus) };
    idles.push(await idle(database, sizes.idleMs, sizes.idleEvents, of));
    say(`an idle relay: ${idles.at(-1)?.cpuMsPerMinute} ms of processor a minute`);
  }
  const held = [await drainHeld(await create('held'), sizes.held)];
  say(`beside a snapshot: ${held[0]?.perSecond.join(', ')} events per second`);
  held.push(...((await own.held?.(sizes)) ?? []));
  return {
    json: {
      [`${name}Drain`]: drains,
      [`${name}Statements`]: statements,
      [`${name}Wait`]: waits,
      [`${name}Held`]: held,
      [`${name}Idle`]: idles,
      [`${name}Retention`]: retention,
      [`${name}InOrder`]: ordered,
    },
    tables: [
      drainTable(server, drains),
      statementsTable(server, statements),
      waitTable(server, waits),
      heldTable(server, held),
      idleTable(server, idles),
      retentionTable(server, retention),
      inOrderTable(server, ordered),
    ],
  };
}
