import type { InboxChanges } from '../inbox/inbox-operator.ts';
import { dynamoInboxChanges } from '../store/dynamo/inbox-operator.ts';
import type { PlaceInOrder } from '../store/inbox-row.ts';
import type { LastSequence } from '../store/last-sequence.ts';
import { type Note, type OperationDeps, recordOperation } from '../store/operation-record.ts';

/** Dependencies of an operator's changes of an order. */
export interface OrderChangeDeps extends OperationDeps {
  /** @default the inboxes in the table */
  readonly inboxChanges?: InboxChanges | undefined;
}

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
  deps: OrderChangeDeps,
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
  deps: OrderChangeDeps,
  place: SequencePlace,
  note: Note,
): Promise<SequenceChange> {
  return change(deps, place, note, 'order seed', (seen) => seen.last < place.sequence);
}

async function change(
  deps: OrderChangeDeps,
  place: SequencePlace,
  note: Note,
  command: string,
  isAllowed: (seen: LastSequence) => boolean,
): Promise<SequenceChange> {
  const { inboxChanges: changes = dynamoInboxChanges(deps) } = deps;
  const seen = await changes.lastSequence(place.key);
  if (!isAllowed(seen)) return { status: 'refused', last: seen.last };
  await recordOperation(deps, { ...note, command, subject: `${place.key} ${place.sequence}` });
  if (await changes.raise({ ...place, seen }, note)) return { status: 'changed', last: place.sequence };
  return { status: 'refused', last: (await changes.lastSequence(place.key)).last };
}
