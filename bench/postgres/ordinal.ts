import { nodePostgres } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox, ORDINAL } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import type { FigureTable } from '../part.ts';
import { PRODUCER } from '../sql/database.ts';
import { fill, producerOf } from '../sql/events.ts';
import type { PostgresBenchDatabase } from './postgres-database.ts';

/** The cost of an event's number and its entry in the index of its aggregate, which every event has. */
interface OrdinalCost {
  readonly isNumbered: boolean;
  /** Commits of one event each, by 16 producers at a time. */
  readonly perSecond: number;
  /** Events in transactions of 1,000. */
  readonly inBulkPerSecond: number;
  /** Bytes of the write-ahead log for each event of a bulk. */
  readonly walBytes: number;
}

const PRODUCERS = 16;

/** Both write in turns, so that other work on the machine slows them alike. The median counts. */
const TURNS = 5;

/** Writes events with and without a number. @param events - of each turn, a multiple of 16 */
export async function ordinalCosts(
  create: (name: string) => Promise<PostgresBenchDatabase>,
  events: number,
): Promise<OrdinalCost[]> {
  const measured = [true, false].map((isNumbered) => ({
    isNumbered,
    alone: [] as number[],
    bulk: [] as number[],
    wal: [] as number[],
  }));
  const databases = [await create('numbered'), await create('unnumbered')] as const;
  const outboxes = [databases[0].outbox, withoutNumbers(databases[1])] as const;
  for (let turn = 0; turn < TURNS; turn += 1) {
    for (const [n, { alone, bulk, wal }] of measured.entries()) {
      const database = { ...databases[n as 0 | 1], outbox: outboxes[n as 0 | 1] };
      const produce = producerOf(database);
      alone.push(
        await perSecond(events, async () => {
          const producer = async (from: number) => {
            for (let one = from; one < events; one += PRODUCERS) await produce(turn * events + one);
          };
          await Promise.all(Array.from({ length: PRODUCERS }, (_, from) => producer(from)));
        }),
      );
      const before = await database.logBytes();
      bulk.push(await perSecond(events, () => fill({ ...database, analyze: async () => {} }, events)));
      wal.push(((await database.logBytes()) - before) / events);
    }
  }
  for (const { close } of databases) await close();
  return measured.map(({ isNumbered, alone, bulk, wal }) => ({
    isNumbered,
    perSecond: median(alone),
    inBulkPerSecond: median(bulk),
    walBytes: median(wal),
  }));
}

/** The outbox of a schema without the numbers: a partial index has no entry of a row without one. */
function withoutNumbers({ pool }: PostgresBenchDatabase): PostgresBenchDatabase['outbox'] {
  const database = nodePostgres(pool);
  return createPostgresOutbox({
    config: PRODUCER,
    database: {
      ...database,
      in: (tx) => ({
        query: (text, values) => database.in(tx).query(text.replace(ORDINAL, 'NULL::bigint'), values),
      }),
    },
  });
}

async function perSecond(events: number, write: () => Promise<unknown>): Promise<number> {
  const beganAt = performance.now();
  await write();
  return events / ((performance.now() - beganAt) / 1_000);
}

function median(values: readonly number[]): number {
  return Math.round(values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN);
}

/** The costs as a table. */
export function ordinalTable(costs: readonly OrdinalCost[]): FigureTable {
  return {
    name: 'postgres-ordinal',
    title: 'Events with and without a number in their aggregate',
    head: ['events', 'commits/s of 16 producers', 'events/s in transactions of 1,000', 'WAL bytes each'],
    rows: costs.map(({ isNumbered, perSecond: alone, inBulkPerSecond, walBytes }) => [
      isNumbered ? 'numbered' : 'without a number',
      alone,
      inBulkPerSecond,
      walBytes,
    ]),
  };
}
