import { MailroomError } from '../base/errors.ts';
import { raiseLast } from '../store/mysql/last-sequence.ts';
import { type OrderSeed, seedOf } from '../store/order-seed.ts';
import type { Database } from '../store/sql/database.ts';

/**
 * Begins a sequence in a transaction of yours, in which a backfill writes the state of an aggregate: the consumer then goes on with the next number.
 *
 * @throws `OUT_OF_ORDER` if the consumer has applied an event of the aggregate: roll your transaction back
 * @throws `BAD_RANGE` if `last` is not a whole number from 1, `BAD_ITEM` if no key can have the names
 *
 * @example
 * ```ts
 * await database.transaction(async (tx) => {
 *   await tx.query('INSERT INTO account (id, cents) VALUES (?, ?)', [account.id, account.cents]);
 *   const aggregate = { source: 'accounts', aggregateType: 'Account', aggregateId: account.id };
 *   await seedMysqlOrder(database, tx, { consumer: 'ledger', ...aggregate, last: account.version });
 * });
 * ```
 */
export async function seedMysqlOrder<Tx>(database: Database<Tx>, tx: Tx, seed: OrderSeed): Promise<void> {
  const { consumer, aggregateType, aggregateId } = seed;
  if (await raiseLast(database.in(tx), seedOf(seed))) return;
  throw new MailroomError(
    'OUT_OF_ORDER',
    `Consumer ${consumer} has applied an event of ${aggregateType} ${aggregateId}, so its sequence cannot begin again. Roll the transaction back.`,
  );
}
