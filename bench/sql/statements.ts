import type { FigureTable } from '../part.ts';
import type { BenchDatabase, BenchServer } from './database.ts';
import { fill, producerOf, slowBus } from './events.ts';

/** The statements of an event. Each is a round trip. */
interface Statements {
  /** A transaction that writes one event, from its begin to its commit. */
  readonly commit: number;
  /** The claim and the mark of an event that is due alone. */
  readonly alone: number;
  /** The same for each event of a backlog. */
  readonly inBacklog: number;
  /** A poll of an empty queue. */
  readonly emptyPoll: number;
}

/** As many groups of a claim, and the end of the queue. */
const BACKLOG = 1_000;

/** Counts what is sent for an event. */
export async function countStatements(database: BenchDatabase): Promise<Statements> {
  const relay = database.relayOf(slowBus(0));
  const produce = producerOf(database);
  const sent = async (run: () => Promise<unknown>) => {
    const before = database.statements();
    await run();
    return database.statements() - before;
  };
  // A relay checks the server before its first claim.
  await relay.pass();
  const emptyPoll = await sent(() => relay.pass());
  const commit = await sent(() => produce(1));
  const alone = await sent(() => relay.pass());
  await fill(database, BACKLOG);
  const backlog = await sent(() => relay.pass());
  await database.close();
  return { commit, alone, inBacklog: Math.round((backlog / BACKLOG) * 1_000) / 1_000, emptyPoll };
}

/** The counts as a table. */
export function statementsTable(
  { name, title }: BenchServer,
  { commit, alone, inBacklog, emptyPoll }: Statements,
): FigureTable {
  return {
    name: `${name}-statements`,
    title: `Statements that are sent to ${title}, each of which is a round trip`,
    head: ['step', 'statements'],
    rows: [
      ['a transaction with one event', commit],
      ['the relay, an event that is due alone', alone],
      ['the relay, an event of a backlog', inBacklog],
      ['a poll of an empty queue', emptyPoll],
    ],
  };
}
