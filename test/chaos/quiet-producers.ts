import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { DatabaseEngine } from '../../lambdas/runtime/base/database-engine.ts';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { defineEvent } from '../../lambdas/runtime/events/event.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { randomNumbers } from './kill-plan.ts';
import { type QuietServer, startQuietServer } from './quiet-servers.ts';

/** The answers of `outbox.commit`, compared with the rows. */
export interface QuietAnswers {
  readonly commits: number;
  /** Transactions that their producer rolled back. */
  readonly rolledBack: number;
  /** Answered as committed, of which a row is missing. */
  readonly falselyCommitted: number;
  /** Answered as failed, of which a row exists. */
  readonly falselyFailed: number;
  /** Rows of a service without their event, whatever was answered. */
  readonly lost: number;
  /** Events without the row of their service. */
  readonly ghosts: number;
  /** The answer to COMMIT was lost: the database was asked. */
  readonly lostAnswers: number;
  /** Answered by `COMMIT_UNKNOWN`. */
  readonly unknown: number;
  /** Lost, but the status of their transaction's id was committed: it was another's. Only PostgreSQL has such a status. */
  readonly reused: number;
}

/** The options of {@link killQuietServer}. */
interface QuietOptions {
  readonly engine: DatabaseEngine;
  readonly kills: number;
  readonly seed: number;
}

/** Few, and each pauses: a busy service puts the log on the disk for its neighbors. */
const PRODUCERS = 4;
const PAUSE_MAX_MS = 300;
const KILL_AFTER_MAX_MS = 500;

/** A producer rolls as large a share of its transactions back, after it has written their events. */
const ROLLED_BACK = 0.2;

const Noted = defineEvent({
  source: 'orders',
  type: 'Placed',
  version: 1,
  aggregateType: 'note',
  schema: z.object({}),
});

/** An event of a note: its aggregate. */
const noted = (id: string) => Noted.create({ aggregateId: id, data: {} });

/** A transaction, and what its producer was answered. */
export interface Commit {
  readonly id: string;
  readonly hasEvent: boolean;
  readonly answer: 'committed' | 'failed' | 'unknown' | 'rolled back';
}

/**
 * Kills a server with few, light producers again and again, with all its processes, and lets it recover. Half of the commits have an event.
 * Everything that decides about durability has its default.
 */
export async function killQuietServer({ engine, kills, seed }: QuietOptions): Promise<QuietAnswers> {
  const random = randomNumbers(seed);
  const server = await startQuietServer(engine);
  try {
    const commits: Commit[] = [];
    let isOver = false;
    const produce = async (producer: number) => {
      for (let n = 0; !isOver; n += 1) {
        commits.push(await commitOne(server, producer % 2 === n % 2, random() < ROLLED_BACK));
        await sleep(random() * PAUSE_MAX_MS);
      }
    };
    const producers = Promise.all(Array.from({ length: PRODUCERS }, (_, n) => produce(n)));
    for (let kill = 1; kill <= kills; kill += 1) {
      await sleep(random() * KILL_AFTER_MAX_MS);
      await server.kill();
      await server.recover();
    }
    isOver = true;
    await producers;
    return {
      ...(await compared(server, commits)),
      lostAnswers: server.lostAnswers(),
      reused: server.reused(),
    };
  } finally {
    await server.close();
  }
}

/** Thrown by a producer that rolls its transaction back. */
class RolledBack extends Error {}

async function commitOne(
  { database, outbox, insertNote }: QuietServer,
  hasEvent: boolean,
  rollsBack: boolean,
): Promise<Commit> {
  const id = mintEventId(Date.now(), 1);
  const events = hasEvent ? [noted(id)] : [];
  try {
    await outbox.commit(async (tx) => {
      await database.in(tx).query(insertNote, [id]);
      if (!rollsBack) return events;
      await outbox.write(tx, events);
      throw new RolledBack();
    });
    return { id, hasEvent, answer: 'committed' };
  } catch (error) {
    const failed = error instanceof RolledBack ? 'rolled back' : 'failed';
    return { id, hasEvent, answer: isMailroomError(error, 'COMMIT_UNKNOWN') ? 'unknown' : failed };
  }
}

/** Compares the answers with the rows of the service and its events. */
export async function compared(
  { database, ...server }: Pick<QuietServer, 'database' | 'notes' | 'aggregates'>,
  commits: readonly Commit[],
) {
  const idsOf = async (text: string) => (await database.query(text)).rows.map(({ id }) => String(id));
  const notes = new Set(await idsOf(server.notes));
  const aggregates = await idsOf(server.aggregates);
  const events = new Set(aggregates);
  const isWhole = ({ id, hasEvent }: Commit) => notes.has(id) && (!hasEvent || events.has(id));
  const hasRow = ({ id }: Commit) => notes.has(id) || events.has(id);
  const answered = (wanted: Commit['answer']) => commits.filter(({ answer }) => answer === wanted);
  return {
    commits: commits.length,
    rolledBack: answered('rolled back').length,
    falselyCommitted: answered('committed').filter((commit) => !isWhole(commit)).length,
    falselyFailed: [...answered('failed'), ...answered('rolled back')].filter(hasRow).length,
    lost: commits.filter(({ id, hasEvent }) => hasEvent && notes.has(id) && !events.has(id)).length,
    ghosts: aggregates.filter((id) => !notes.has(id)).length,
    unknown: answered('unknown').length,
  };
}
