import { setTimeout as sleep } from 'node:timers/promises';
import { Pool } from 'pg';
import { isMailroomError } from '../../lambdas/runtime/base/errors.ts';
import { nodePostgres, type PgClient } from '../../lambdas/runtime/postgres/databases.ts';
import { createPostgresOutbox } from '../../lambdas/runtime/postgres/postgres-outbox.ts';
import { mintEventId } from '../../lambdas/runtime/store/event-id.ts';
import { migratePostgres } from '../../lambdas/runtime/store/postgres/migrate.ts';
import type { Database } from '../../lambdas/runtime/store/postgres/sql.ts';
import { memoryTelemetry } from '../../testing/memory-telemetry.ts';
import { startPostgres } from '../postgres/server/postgres-server.ts';
import { PRODUCER, placed } from '../postgres/support/rig.ts';
import { randomNumbers } from './kill-plan.ts';

/** The answers of `outbox.commit`, compared with the rows. */
export interface QuietAnswers {
  readonly commits: number;
  /** Answered as committed, of which a row is missing. */
  readonly falselyCommitted: number;
  /** Answered as failed, of which a row exists. */
  readonly falselyFailed: number;
  /** Answered by `COMMIT_UNKNOWN`. */
  readonly unknown: number;
  /** Lost, but the status of their transaction's id was committed: it was another's. */
  readonly reused: number;
}

/** The options of {@link killQuietServer}. */
export interface QuietOptions {
  readonly kills: number;
  readonly seed: number;
  readonly onKill?: ((kill: number) => void) | undefined;
  /** Changes a question about a commit, to show what a rule prevents. @default none */
  readonly rewrite?: ((text: string) => string) | undefined;
}

/** Few, and each pauses: a busy service puts the log on the disk for its neighbors. */
const PRODUCERS = 4;
const PAUSE_MAX_MS = 300;
const KILL_AFTER_MAX_MS = 500;

/** A commit takes a tenth of a second, in which its log may not be on the disk: the moment that a kill must meet. */
const SLOW_NOTES = `
CREATE TABLE note (id uuid PRIMARY KEY);
CREATE FUNCTION slow_commit() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.1); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON note DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow_commit();`;

interface Commit {
  readonly id: string;
  readonly answer: 'committed' | 'failed' | 'unknown';
  readonly eventIds: readonly string[];
}

/**
 * Kills a server with few, light producers again and again, with all its processes, and lets it recover. Half of the commits have an event.
 * Everything that decides about durability has its default.
 */
export async function killQuietServer(options: QuietOptions): Promise<QuietAnswers> {
  const { kills, onKill } = options;
  const random = randomNumbers(options.seed);
  const server = await startPostgres('quiet-producers');
  const pool = new Pool({ connectionString: server.url, connectionTimeoutMillis: 10_000 });
  pool.on('error', () => {}); // idle connections end with the server
  try {
    const database = nodePostgres(pool);
    await migratePostgres(database);
    await database.query(SLOW_NOTES);
    const commits: Commit[] = [];
    let reused = 0;
    const watched = watching(database, options.rewrite, () => {
      reused += 1;
    });
    let isOver = false;
    const produce = async (producer: number) => {
      for (let n = 0; !isOver; n += 1) {
        commits.push(await commitOne(watched, producer % 2 === n % 2));
        await sleep(random() * PAUSE_MAX_MS);
      }
    };
    const producers = Promise.all(Array.from({ length: PRODUCERS }, (_, n) => produce(n)));
    for (let kill = 1; kill <= kills; kill += 1) {
      await sleep(random() * KILL_AFTER_MAX_MS);
      await server.kill();
      await server.recover();
      onKill?.(kill);
    }
    isOver = true;
    await producers;
    return { ...(await compared(database, commits)), reused };
  } finally {
    await pool.end();
    await server.close();
  }
}

async function commitOne(database: Database<PgClient>, withEvent: boolean): Promise<Commit> {
  const id = mintEventId(Date.now(), 1);
  const outbox = createPostgresOutbox({ config: PRODUCER, database, telemetry: memoryTelemetry() });
  try {
    const events = await outbox.commit(async (tx) => {
      await tx.query('INSERT INTO note VALUES ($1::uuid)', [id]);
      return withEvent ? [placed(1)] : [];
    });
    return { id, answer: 'committed', eventIds: events.map(({ eventId }) => eventId) };
  } catch (error) {
    return { id, answer: isMailroomError(error, 'COMMIT_UNKNOWN') ? 'unknown' : 'failed', eventIds: [] };
  }
}

/** Compares the answers with the rows of the service and its events. */
async function compared(database: Database<PgClient>, commits: readonly Commit[]) {
  const idsOf = async (text: string) =>
    new Set((await database.query(text)).rows.map(({ id }) => String(id)));
  const notes = await idsOf('SELECT id::text AS id FROM note');
  const events = await idsOf('SELECT event_id::text AS id FROM mailroom.event');
  const isWhole = ({ id, eventIds }: Commit) =>
    notes.has(id) && eventIds.every((eventId) => events.has(eventId));
  const answered = (wanted: Commit['answer']) => commits.filter(({ answer }) => answer === wanted);
  return {
    commits: commits.length,
    falselyCommitted: answered('committed').filter((commit) => !isWhole(commit)).length,
    falselyFailed: answered('failed').filter(({ id }) => notes.has(id)).length,
    unknown: answered('unknown').length,
  };
}

/** @param onReused - called when the id of a transaction is committed without its row */
function watching(
  database: Database<PgClient>,
  rewrite: (text: string) => string = (text) => text,
  onReused: () => void,
): Database<PgClient> {
  const reused = new Set<unknown>();
  return {
    ...database,
    query: async (text, values) => {
      if (!text.includes('pg_xact_status')) return database.query(text, values);
      const [row] = (await database.query(text, values)).rows;
      const proof = values?.[1];
      if (row?.status === 'committed' && row.done === 'false' && !reused.has(proof)) {
        reused.add(proof);
        onReused();
      }
      return database.query(rewrite(text), values);
    },
  };
}
