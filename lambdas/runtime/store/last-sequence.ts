import { timeText } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { type EventOrder, STRICT_GROUP } from '../base/order.ts';
import type { ReceivedEvent } from '../events/event.ts';
import type { PlaceInOrder } from './inbox-row.ts';
import { lastKey, lastKeyProblem } from './keys.ts';

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

/** The number of an aggregate to which nothing was applied. */
export const NOTHING_APPLIED: LastSequence = { last: 0, exists: false };

/**
 * A change of the last applied sequence, decided from what was read. A store writes it in the transaction that ends a message, on condition
 * that the number is as it was read. The invariant:
 *
 *     gate of n        handler reads      commit of n
 *     last = v         its domain rows    last = v -> n, with its writes
 *
 * The number only increases, so if it is v at the commit, it was v during the whole run: no other event of the aggregate was applied
 * between the handler's reads and its writes. A check that n is next, in the commit only, would not prove that: event 2 would read the
 * state before event 1, and commit after it.
 */
export interface LastRaise extends Pick<PlaceInOrder, 'key' | 'sequence'> {
  readonly seen: LastSequence;
  /** The event that is applied. @default none: an operator or a rejection passes over it */
  readonly eventId?: string | undefined;
}

/** Raises the number to that of a message whose handler has run; `undefined` for an unordered message. */
export function applied({
  eventId,
  place,
}: {
  readonly eventId: string;
  readonly place?: GatedPlace | undefined;
}): LastRaise | undefined {
  return place && { key: place.order.key, sequence: place.order.sequence, seen: place.seen, eventId };
}

/** The number of a message was applied or passed over: its handler never runs, whatever its row says. */
export function isSuperseded({ order, seen }: GatedPlace): boolean {
  return order.sequence <= seen.last;
}

/** Passes over a message that ends without being applied, if its number is next; `undefined` otherwise. */
export function passedOver(
  { key, sequence }: Pick<PlaceInOrder, 'key' | 'sequence'>,
  seen: LastSequence,
): LastRaise | undefined {
  return seen.last === sequence - 1 ? { key, sequence, seen } : undefined;
}
