import type { DatabaseTransitions } from '../../../lambdas/runtime/relay/database-transitions.ts';
import type { Sql } from '../../../lambdas/runtime/store/sql/database.ts';
import { eventsNamed, nameIn } from '../../contract/aggregate-order-contract.ts';
import type { World } from './schedules.ts';
import type { SteppedWorker } from './stepped-worker.ts';

/** A database as one relay reaches it. */
export interface RelaySide {
  readonly sql: Sql;
  readonly transitions: DatabaseTransitions;
}

/** A database on a real server, of which the explorer controls each statement of a relay with `orderBy: 'aggregate'`. */
export interface ExploredQueue {
  /** Empties the tables, and commits these events. */
  fill(events: ReturnType<typeof eventsNamed>): Promise<void>;
  /** The number of statements that wait for the lock of another transaction. */
  waiting(): Promise<number>;
  /** Makes each event due whose row no transaction has locked. @returns true if an event is in the queue */
  makeDue(): Promise<boolean>;
  /** True if an event is put off behind one that is not in the queue. */
  isAsleep(): Promise<boolean>;
  /** A crash can leave such an event until it is due again. */
  readonly sleepsAfterCrash: boolean;
  /** The database without the explorer. */
  readonly plain: RelaySide;
  /** @param changed - called after each change of its state @param rewrite - changes a statement, for a hole */
  worker(
    changed: () => void,
    rewrite?: (text: string) => string,
  ): SteppedWorker & { readonly side: RelaySide };
}

/** Two events of an aggregate, and two relays: one has two turns, the other one. A relay can pause or crash between its statements. */
export async function twoOrderedRelays(
  queue: ExploredQueue,
  rewrite?: (text: string) => string,
): Promise<World> {
  await queue.fill(eventsNamed(['a1', 'a2']));
  const published: string[] = [];
  let wake: () => void = () => {};
  const relay = async ({ sql, transitions }: RelaySide, turns: number) => {
    for (let turn = 0; turn < turns; turn += 1) {
      const rows = await transitions.claim(10, true);
      await sql.query("SELECT 'publish'");
      for (const { entry } of rows) published.push(nameIn(entry.detail));
      await transitions.markPublished(rows);
    }
  };
  const workers = [2, 1].map((turns) => {
    const worker = queue.worker(() => wake(), rewrite);
    worker.run(() => relay(worker.side, turns));
    return worker;
  });
  return {
    workers,
    waiting: queue.waiting,
    changed: () =>
      new Promise((resolve) => {
        wake = resolve;
      }),
    pass: async () => {
      await queue.makeDue();
    },
    verdict: async (crashed) => {
      const failed = workers.map((worker) => worker.failure()).find((error) => error !== undefined);
      if (failed !== undefined) return `a relay failed with ${String(failed)}`;
      if ((crashed === undefined || !queue.sleepsAfterCrash) && (await queue.isAsleep()))
        return 'an event was not woken';
      while (await queue.makeDue()) await relay(queue.plain, 1);
      const first = [...new Set(published)].join();
      return first === 'a1,a2' ? undefined : `published in the order ${first}`;
    },
  };
}
