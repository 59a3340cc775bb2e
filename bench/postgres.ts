import type { Part, PartSettings } from './part.ts';
import { withJobQueues } from './postgres/job-queues.ts';
import { ordinalCosts, ordinalTable } from './postgres/ordinal.ts';
import { type PostgresBenchDatabase, postgresServer } from './postgres/postgres-database.ts';
import { readSlot } from './postgres/slot.ts';
import { measure, type Sizes } from './sql/measure.ts';
import { drainBeside, HELD_MS, type HeldDrain } from './sql/quiet.ts';

type Create = (name: string) => Promise<PostgresBenchDatabase>;

/** Measures the relay of a PostgreSQL database, and beside it other ways to read one. */
export const postgres: Part = {
  name: 'postgres',
  title: 'the relay on PostgreSQL; with --install, its backlog beside two job queues',
  run: (settings) =>
    postgresServer.run(async (create) => {
      const { say, quick, install } = settings;
      const { json, tables } = await measure(postgresServer, create, settings, {
        waits: async (sizes) => {
          const wait = await readSlot(await create('slot'), sizes);
          say(`a replication slot: p99 ${wait.p99Ms} ms`);
          return [wait];
        },
        held: async (sizes) => (install ? drainQueues(create, sizes, settings) : []),
        idle: {
          name: 'listens, and polls every 5 s',
          relayOf: (database, bus) => database.relayOf(bus, { listens: true }),
        },
      });
      const ordinal = await ordinalCosts(create, quick ? 160 : 4_000);
      say(
        `with and without numbers: ${ordinal.map(({ perSecond }) => perSecond).join(' and ')} commits per second`,
      );
      return {
        json: { ...json, postgresOrdinal: ordinal },
        tables: [...tables, ordinalTable(ordinal)],
      };
    }),
};

/** Drains a backlog of each job queue beside a snapshot. */
function drainQueues(create: Create, { held }: Sizes, { say }: PartSettings): Promise<HeldDrain[]> {
  return withJobQueues(async (queues) => {
    const drains: HeldDrain[] = [];
    for (const [system, open] of Object.entries(queues)) {
      const database = await create(`held_${system.replace(/\W.*/, '')}`);
      const queue = await open(database);
      await queue.fill(held);
      const drain = await drainBeside(database, system, held, async (onOne, isDone) => {
        const endsAt = performance.now() + HELD_MS;
        await queue.work(onOne);
        while (!isDone() && performance.now() < endsAt)
          await new Promise((resolve) => setTimeout(resolve, 50));
      });
      drains.push(drain);
      await queue.close();
      await database.close();
      say(`${system} beside a snapshot: ${drain.perSecond.join(', ')} jobs per second`);
    }
    return drains;
  });
}
