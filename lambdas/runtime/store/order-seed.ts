import { MailroomError } from '../base/errors.ts';
import { STRICT_GROUP } from '../base/order.ts';
import { lastKey, lastKeyProblem, type SequenceOf } from './keys.ts';
import { type LastRaise, NOTHING_APPLIED } from './last-sequence.ts';

/** The sequence that `orderSeed` or `seedPostgresOrder` begins. */
export interface OrderSeed extends Omit<SequenceOf, 'group'> {
  /** The group of a `latest` order: its `group`, or the event's type. @default that of a strict order */
  readonly group?: string | undefined;
  /** The number of the last event that the state contains: a whole number from 1. */
  readonly last: number;
}

/** The change that begins a sequence. @throws `BAD_RANGE`, `BAD_ITEM` */
export function seedOf({ last, group = STRICT_GROUP, ...of }: OrderSeed): LastRaise {
  if (!Number.isSafeInteger(last) || last < 1) {
    throw new MailroomError(
      'BAD_RANGE',
      `orderSeed: last is ${String(last)}; it must be the whole number, from 1, of the last event that the state contains.`,
    );
  }
  const problem = lastKeyProblem({ ...of, group });
  if (problem !== undefined)
    throw new MailroomError('BAD_ITEM', `orderSeed: the aggregate ${problem}. No event of it has a number.`);
  return { key: lastKey({ ...of, group }).PK, sequence: last, seen: NOTHING_APPLIED };
}
