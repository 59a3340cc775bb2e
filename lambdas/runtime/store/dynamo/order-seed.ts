import { systemClock } from '../../base/clock.ts';
import { type OrderSeed, seedOf } from '../order-seed.ts';
import type { TransactAction } from '../table.ts';
import { raiseLast } from './last-sequence.ts';

/**
 * Makes the action that begins a sequence, for the transaction in which a backfill writes the state of an aggregate: the consumer then
 * goes on with the next number. It is refused if the consumer has applied an event of the aggregate.
 * The role needs `dynamodb:UpdateItem` on `LAST#<consumer>#*`, as the consumer's own function has.
 *
 * @throws `BAD_RANGE` if `last` is not a whole number from 1, `BAD_ITEM` if no key can have the names
 *
 * @example
 * ```ts
 * const seed = orderSeed({ consumer: 'ledger', source: 'accounts', aggregateType: 'Account', aggregateId, last: account.version });
 * await outbox.commit({ writes: [{ Put: { Item: account } }, seed] });
 * ```
 */
export function orderSeed(seed: OrderSeed): TransactAction {
  return raiseLast(systemClock, seedOf(seed));
}
