import type { Inbox } from '../../../lambdas/runtime/consume/inbox-port.ts';
import type { InboxChanges } from '../../../lambdas/runtime/inbox/inbox-operator.ts';
import type { Sql } from '../../../lambdas/runtime/store/sql/database.ts';
import type { ManualClock } from '../../../testing/index.ts';
import type { SteppedWorker } from './stepped-worker.ts';

/** A database as one worker reaches it. */
export interface StoreSide {
  readonly sql: Sql;
  inbox(clock: ManualClock): Inbox;
  changes(clock: ManualClock): InboxChanges;
  /** Inserts a payment in a transaction of an inbox. @param note - the state after it */
  pay(tx: unknown, eventId: string, note?: string): Promise<void>;
  /** The notes of the payments, in their order. */
  notes(): Promise<string[]>;
}

/** A database on a real server, of which the explorer controls each statement of a worker. */
export interface ExploredStore {
  /** Empties the tables. */
  clear(): Promise<void>;
  /** Moves every stored time back: the same as a wait. */
  shift(ms: number): Promise<void>;
  /** Begins the sequence of an aggregate with 1, by its key. */
  begin(key: string): Promise<void>;
  /** The states of the messages. */
  statuses(): Promise<string[]>;
  /** The number of statements that wait for the lock of another transaction. */
  waiting(): Promise<number>;
  /** The database without the explorer. */
  readonly plain: StoreSide;
  /** @param changed - called after each change of its state @param rewrite - changes a statement, for a hole */
  worker(
    changed: () => void,
    rewrite?: (text: string) => string,
  ): SteppedWorker & { readonly side: StoreSide };
}

/** A message that a crash has left is claimed by the first receive, and an order can make its second one wait for the next. */
const RECEIVES_MAX = 3;

/**
 * Receives what a schedule has left, and once more after every message is processed, which must change nothing.
 *
 * @param messages - their number
 * @param receive - receives each of them
 * @returns PROCESSED, or another state
 */
export async function stateAtLast(
  { statuses }: ExploredStore,
  messages: number,
  receive: () => Promise<void>,
): Promise<string> {
  const state = async () => {
    const found = await statuses();
    const other = found.find((status) => status !== 'PROCESSED');
    return other ?? (found.length === messages ? 'PROCESSED' : 'absent');
  };
  let before = '';
  for (let receives = 0; receives < RECEIVES_MAX && before !== 'PROCESSED'; receives += 1) {
    before = await state();
    await receive();
  }
  return await state();
}
