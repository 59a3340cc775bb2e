import { type Clock, timeText } from '../base/clock.ts';
import { isMailroomError, MailroomError } from '../base/errors.ts';
import { textOf } from '../base/json.ts';
import { type EventOrder, STRICT_GROUP } from '../base/order.ts';
import type { ReceivedEvent } from '../events/event.ts';
import type { LastRow, PlaceInOrder } from './inbox-row.ts';
import { lastKey, lastKeyProblem } from './keys.ts';
import { asRow, isKnownSchema, SCHEMA } from './row-schema.ts';
import { conditionalUpdate, isExactly } from './row-update.ts';
import type { Table, TransactAction } from './table.ts';

/** The last applied sequence of an aggregate, as it was read. */
export interface LastSequence {
  /** 0 if nothing was applied. */
  readonly last: number;
  /** False if the aggregate has no such row. */
  readonly exists: boolean;
  /** The event that was applied last. Absent if an operator set the number. */
  readonly eventId?: string | undefined;
  /** The time of the last write, epoch milliseconds. */
  readonly at?: number | undefined;
}

/** The members of an event that determine its place in an order: the service that numbers the aggregate is one of them. */
export type NumberedEvent = Partial<
  Pick<ReceivedEvent, 'source' | 'type' | 'aggregateType' | 'aggregateId' | 'sequence'>
>;

/** Makes the place of an event in the order of a consumer; `undefined` if it has none: see {@link readPlace}. */
export function placeInOrder(
  consumer: string,
  order: EventOrder,
  event: NumberedEvent,
): PlaceInOrder | undefined {
  const read = readPlace(consumer, order, event);
  return 'place' in read ? read.place : undefined;
}

/**
 * Reads the place of an event in the order of a consumer. The group belongs to the service of the event, as its aggregates do: two services never
 * share a sequence.
 *
 * @returns the place, or the predicate of a sentence about an event that has none
 */
export function readPlace(
  consumer: string,
  order: EventOrder,
  { source = '', type = '', aggregateType = '', aggregateId = '', sequence }: NumberedEvent,
): { readonly place: PlaceInOrder } | { readonly problem: string } {
  if (typeof sequence !== 'number' || !Number.isSafeInteger(sequence) || sequence < 1) {
    const value = typeof sequence === 'number' ? sequence : `of type ${typeof sequence}`;
    return {
      problem: `has no usable \`sequence\`: it is ${value}; an ordered consumer needs a whole number from 1. Declare \`sequence: true\` where the event is published`,
    };
  }
  const group = order.mode === 'strict' ? STRICT_GROUP : (order.group ?? type);
  const of = { consumer, source, group, aggregateType, aggregateId };
  const problem = lastKeyProblem(of);
  return problem === undefined
    ? { place: { key: lastKey(of).PK, mode: order.mode, sequence } }
    : { problem: `${problem}. Correct it where the event is published` };
}

/**
 * The effect of the last applied sequence on a message. `applied`: it is the event that was applied last; `repeated`: another event was applied
 * with its number; `superseded`: a number from its own on was applied or passed over; `waits`: its predecessor was not.
 */
export type OrderVerdict = 'runs' | 'waits' | 'superseded' | 'applied' | 'repeated';

/** Judges a message by the last applied sequence of its aggregate, as the gate of its consumer does. */
export function orderVerdict(
  { sequence, mode }: PlaceInOrder,
  { last, eventId }: LastSequence,
  ownId: string,
): OrderVerdict {
  if (sequence === last && eventId !== undefined) return eventId === ownId ? 'applied' : 'repeated';
  if (sequence <= last) return 'superseded';
  return mode === 'strict' && sequence > last + 1 ? 'waits' : 'runs';
}

/** The place of a received message, with the last applied sequence as its gate has read it. */
export interface GatedPlace {
  readonly order: PlaceInOrder;
  readonly seen: LastSequence;
  /**
   * The rejection of the message lets the later events of its aggregate go on. Never for a gap, nor as `EVENT_TOO_OLD`: a redrive of the message can
   * still be applied.
   */
  readonly skipsRejected: boolean;
}

/**
 * Another event of the aggregate was applied, or its number was skipped, after the run's gate: nothing was written, and the message
 * passes the gate again.
 */
export class Overtaken extends MailroomError {
  /** The message may be received again from this time on, epoch milliseconds. */
  readonly until: number;

  constructor(until: number) {
    super(
      'OUT_OF_ORDER',
      `The last applied sequence of the aggregate has changed since this run began: nothing was written, and the message is received again after ${timeText(until)}.`,
    );
    this.name = 'Overtaken';
    this.until = until;
  }
}

/** The index of the last sequence in a transaction, after the inbox row. */
const LAST_AT = 1;

/**
 * Reads the last applied sequence, strongly consistent.
 *
 * @param key - the row's partition key
 * @throws `UNREADABLE_ROW` if the row has a newer schema or no usable number
 */
export async function readLastSequence(
  { table }: { readonly table: Table },
  key: string,
): Promise<LastSequence> {
  const row = await table.get({ PK: key, SK: 'LAST' }, { consistent: true });
  if (row === undefined) return NOTHING_APPLIED;
  const { last, schema, eventId, at } = asRow<LastRow>(row);
  if (isKnownSchema(schema) && Number.isSafeInteger(last) && Number(last) >= 0)
    return { last: Number(last), exists: true, eventId: textOf(eventId), at: Number(at) || undefined };
  throw new MailroomError(
    'UNREADABLE_ROW',
    `The last applied sequence ${key} cannot be read: it needs a schema of at most ${SCHEMA} and a whole number \`last\` from 0. ` +
      'Deploy the version that wrote it, or correct the attribute if it was changed by hand.',
  );
}

/**
 * Raises the last applied sequence, in the transaction that ends a message. The invariant:
 *
 *     gate of n        handler reads      commit of n
 *     last = v         its domain rows    last = v -> n, with its writes
 *
 * The number only increases, so if it is v at the commit, it was v during the whole run: no other event of the aggregate was applied
 * between the handler's reads and its writes. A check that n is next, in the commit only, would not prove that: event 2 would read the
 * state before event 1, and commit after it.
 *
 * @param eventId - the event that is applied @default none: an operator or a rejection passes over it
 */
export function raiseLast(
  { now }: Pick<Clock, 'now'>,
  { key, sequence }: Pick<PlaceInOrder, 'key' | 'sequence'>,
  { last, exists }: LastSequence,
  eventId?: string,
): TransactAction {
  return {
    Update: conditionalUpdate(
      { PK: key, SK: 'LAST' },
      {
        set: { last: sequence, at: now(), schema: SCHEMA, eventId },
        ...(eventId === undefined && { remove: ['eventId'] }),
      },
      exists
        ? { condition: '#last = :seenLast', values: { ':seenLast': last } }
        : { condition: 'attribute_not_exists(PK)', values: {} },
    ),
  };
}

/** Raises the number to that of a message whose handler has run. No action for an unordered message. */
export function applied(
  clock: Pick<Clock, 'now'>,
  { eventId, place }: { readonly eventId: string; readonly place?: GatedPlace | undefined },
): TransactAction[] {
  return place === undefined ? [] : [raiseLast(clock, place.order, place.seen, eventId)];
}

/** The number of a message was applied or passed over: its handler never runs, whatever its row says. */
export function isSuperseded({ order, seen }: GatedPlace): boolean {
  return order.sequence <= seen.last;
}

/** Passes over a message that ends without being applied, if its number is next. No action otherwise. */
export function passedOver(
  clock: Pick<Clock, 'now'>,
  order: Pick<PlaceInOrder, 'key' | 'sequence'>,
  seen: LastSequence,
): TransactAction[] {
  return seen.last === order.sequence - 1 ? [raiseLast(clock, order, seen)] : [];
}

/** The number of an aggregate to which nothing was applied. */
export const NOTHING_APPLIED: LastSequence = { last: 0, exists: false };

/** Returns true if an action is exactly one that begins a sequence: every other write of it is Mailroom's own. */
export function isSeed(action: TransactAction): boolean {
  const { Key, ExpressionAttributeValues: values } = action.Update ?? {};
  const [last, at] = [values?.[':last'], values?.[':at']];
  if (typeof Key?.PK !== 'string' || !Number.isSafeInteger(last) || Number(last) < 1) return false;
  const place = { key: Key.PK, sequence: Number(last) };
  return isExactly(action, raiseLast({ now: () => Number(at) }, place, NOTHING_APPLIED));
}

/** Returns true if the update of the last sequence refused a transaction: another one has changed it, or is about to. */
export function isLastRefused(error: unknown, at: number = LAST_AT): boolean {
  if (!isMailroomError(error, 'TRANSACTION_CANCELLED')) return false;
  const code = error.reasons[at]?.code;
  return code === 'ConditionalCheckFailed' || code === 'TransactionConflict';
}
