import { systemClock } from '../../base/clock.ts';
import { MailroomError } from '../../base/errors.ts';
import { STRICT_GROUP } from '../../base/order.ts';
import type { PlaceInOrder } from '../inbox-row.ts';
import { lastKey, lastKeyProblem, type SequenceOf } from '../keys.ts';
import {
  isLastRefused,
  type LastSequence,
  NOTHING_APPLIED,
  raiseLast,
  readLastSequence,
} from '../last-sequence.ts';
import { type Note, type OperationDeps, recordOperation } from '../operation-record.ts';
import { transactWithRetry } from '../retry.ts';
import type { TransactAction } from '../table.ts';

/** A number in the sequence of an aggregate at a consumer. */
export type SequencePlace = Pick<PlaceInOrder, 'key' | 'sequence'>;

/** The result of {@link skipSequence} and {@link seedSequence}: what was changed, or the number that stands, unchanged. */
export interface SequenceChange {
  /** `refused`: another number is next, or the number is as great already, or has just changed. */
  readonly status: 'changed' | 'refused';
  /** The last sequence, after the change. */
  readonly last: number;
}

/**
 * Passes over the next number of an aggregate, whose event will not come or cannot be applied: the later events go on. If that event
 * arrives or is redriven after all, it completes as superseded.
 *
 * The number moves from n - 1 to n on condition that it is n - 1: a run of n that commits first wins, and one that commits later is
 * refused.
 *
 * @returns `refused` if n is not the next number, with the one that was applied last
 */
export async function skipSequence(
  deps: OperationDeps,
  place: SequencePlace,
  note: Note,
): Promise<SequenceChange> {
  return change(deps, place, note, 'order skip', (seen) => seen.last === place.sequence - 1);
}

/**
 * Raises the last sequence of an aggregate to any greater number: for a consumer that begins with events whose predecessors are not in its queue, or
 * has lost some of them. Events up to it that were not applied never are.
 *
 * The number moves on condition that it is as it was read: no event is applied in between.
 *
 * @returns `refused` if the aggregate has this number, or a greater one
 */
export async function seedSequence(
  deps: OperationDeps,
  place: SequencePlace,
  note: Note,
): Promise<SequenceChange> {
  return change(deps, place, note, 'order seed', (seen) => seen.last < place.sequence);
}

async function change(
  deps: OperationDeps,
  place: SequencePlace,
  note: Note,
  command: string,
  isAllowed: (seen: LastSequence) => boolean,
): Promise<SequenceChange> {
  const { clock = systemClock } = deps;
  const seen = await readLastSequence(deps, place.key);
  if (!isAllowed(seen)) return { status: 'refused', last: seen.last };
  await recordOperation(deps, { ...note, command, subject: `${place.key} ${place.sequence}` });
  try {
    await transactWithRetry(deps, [raiseLast(clock, place, seen)]);
    return { status: 'changed', last: place.sequence };
  } catch (error) {
    if (!isLastRefused(error, 0)) throw error;
    return { status: 'refused', last: (await readLastSequence(deps, place.key)).last };
  }
}

/** The sequence that {@link orderSeed} begins. */
export interface OrderSeed extends Omit<SequenceOf, 'group'> {
  /** The group of a `latest` order: its `group`, or the event's type. @default that of a strict order */
  readonly group?: string | undefined;
  /** The number of the last event that the state contains: a whole number from 1. */
  readonly last: number;
}

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
export function orderSeed({ last, group = STRICT_GROUP, ...of }: OrderSeed): TransactAction {
  if (!Number.isSafeInteger(last) || last < 1) {
    throw new MailroomError(
      'BAD_RANGE',
      `orderSeed: last is ${String(last)}; it must be the whole number, from 1, of the last event that the state contains.`,
    );
  }
  const problem = lastKeyProblem({ ...of, group });
  if (problem !== undefined)
    throw new MailroomError('BAD_ITEM', `orderSeed: the aggregate ${problem}. No event of it has a number.`);
  const place = { key: lastKey({ ...of, group }).PK, sequence: last };
  return raiseLast(systemClock, place, NOTHING_APPLIED);
}
