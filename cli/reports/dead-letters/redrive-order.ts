import { isMailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import type { Check } from '../../../lambdas/runtime/sources/sqs/check-messages.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import type { PlaceInOrder } from '../../../lambdas/runtime/store/inbox-row.ts';
import { sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import { type LastSequence, orderVerdict } from '../../../lambdas/runtime/store/last-sequence.ts';
import { eachOf, once } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { many } from '../../terminal/output.ts';
import { aggregateName, blockOf, type OrderBlock } from '../order/order-block.ts';
import type { OrderedAggregate, OrderReader } from '../order/order-of-aggregate.ts';
import { type MessagePlace, placed, placeOfMessage } from '../order/place-of-message.ts';
import type { DeadLetter, DeadLetterSource } from './dead-letters.ts';
import { inboxId } from './standing.ts';

/** The place of a dead letter in the order of its aggregate. */
export interface RedrivePlace {
  readonly aggregate: OrderedAggregate;
  readonly sequence: number;
  /** The number of earlier numbers that are not applied. */
  readonly ahead: number;
  /** The earlier number that a redrive would wait for in vain. */
  readonly block?: OrderBlock | undefined;
}

/** A dead letter with its place, if it has one. */
interface PlacedLetter {
  readonly place?: RedrivePlace | undefined;
}

/** The places of dead letters in the order of their consumer, of those that have one. */
export type Places = ReadonlyMap<DeadLetter, PlaceInOrder>;

interface Placed {
  readonly deadLetter: DeadLetter;
  readonly place: PlaceInOrder;
}

/**
 * Finds the places of dead letters. The function that would run a message knows the order of a single handler. At a consumer without an order, it
 * also knows that the place in an inbox row is of an order that was removed. While an order is deployed, it may not know it yet.
 *
 * @param checkAt - the answer of the consumer's own function @default unknown
 */
export function placesIn(
  consumer: ConsumerEntry,
  deadLetters: readonly DeadLetter[],
  checkAt: (index: number) => Check | undefined = () => undefined,
): Places {
  const found = deadLetters.flatMap((deadLetter, index) => {
    const check = checkAt(index);
    const isUnordered = consumer.order === undefined && check?.ok === true;
    const place = check?.order ?? (isUnordered ? undefined : placed(placeOfLetter(consumer, deadLetter)));
    return place === undefined ? [] : [[deadLetter, place] as const];
  });
  return new Map(found);
}

/** Reads the place of a dead letter. */
export function placeOfLetter(consumer: ConsumerEntry, deadLetter: DeadLetter): MessagePlace {
  const { row, received } = deadLetter;
  return placeOfMessage(consumer, { eventId: inboxId(deadLetter), row, body: received?.body });
}

/** Why a dead letter of an ordered consumer would not run; `handled`: it was the last one that ran. */
type PastPlace =
  | { readonly verdict: 'handled' }
  | { readonly verdict: 'superseded'; readonly code?: string; readonly message: string }
  | { readonly verdict: 'unreadable'; readonly message: string };

/** Finds the dead letters whose message the gate of their consumer would absorb or refuse, because of what was applied or passed over. */
export async function pastPlaces(
  { inbox }: Pick<StoredRows, 'inbox'>,
  places: Places,
): Promise<ReadonlyMap<DeadLetter, PastPlace>> {
  const lasts = new Map<string, Promise<LastSequence>>();
  const found = await eachOf([...places], async ([deadLetter, place]) => {
    try {
      const seen = await once(lasts, place.key, () => inbox.lastSequence(place.key));
      const past = pastPlace(place, seen, inboxId(deadLetter));
      return past === undefined ? [] : [[deadLetter, past] as const];
    } catch (error) {
      if (!isMailroomError(error, 'UNREADABLE_ROW')) throw error;
      return [[deadLetter, { verdict: 'unreadable', message: error.message }] as const];
    }
  });
  return new Map(found.flat());
}

function pastPlace(place: PlaceInOrder, seen: LastSequence, eventId: string): PastPlace | undefined {
  const has = `It has number ${place.sequence} of ${aggregateName(sequenceOf(place.key))}`;
  switch (orderVerdict(place, seen, eventId)) {
    case 'applied':
      return { verdict: 'handled' };
    case 'superseded':
      return {
        verdict: 'superseded',
        message: `${has}, and number ${seen.last} was applied or passed over.`,
      };
    case 'repeated':
      return {
        verdict: 'superseded',
        code: 'SEQUENCE_REPEATED',
        message: `${has}, which another event had: ${seen.eventId} was applied.`,
      };
    default:
      return undefined;
  }
}

/**
 * Places the dead letters of a strict consumer that would run, together: one that waits for a number that never comes, and is not
 * among them, has a `block`, because it would only be rejected again.
 */
export async function placesInOrder(
  orders: OrderReader,
  { consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
  running: Places,
): Promise<ReadonlyMap<DeadLetter, RedrivePlace>> {
  const found = await eachOf([...byAggregate(running)], ([key, sorted]) =>
    placesOf(orders, consumer, key, sorted),
  );
  return new Map(found.flat());
}

/** Groups dead letters in a strict order by aggregate, the lowest number first. */
function byAggregate(places: Places): ReadonlyMap<string, readonly Placed[]> {
  const byKey = new Map<string, Placed[]>();
  for (const [deadLetter, place] of places) {
    if (place.mode !== 'strict') continue;
    byKey.set(place.key, [...(byKey.get(place.key) ?? []), { deadLetter, place }]);
  }
  for (const same of byKey.values()) same.sort((a, b) => a.place.sequence - b.place.sequence);
  return byKey;
}

/** Groups the steps of a discard: at a strict consumer, a number is passed over only after the one before it, so each waits for its turn. */
export function inTurns<Step extends { readonly deadLetter: DeadLetter }>(
  source: DeadLetterSource,
  steps: readonly Step[],
): readonly (readonly Step[])[] {
  if (source.kind !== 'rule' && source.kind !== 'consumer') return steps.map((step) => [step]);
  const stepOf = new Map(steps.map((step) => [step.deadLetter, step]));
  const places = placesIn(source.consumer, [...stepOf.keys()]);
  const turns = [...byAggregate(places).values()].map((same) =>
    same.flatMap(({ deadLetter }) => stepOf.get(deadLetter) ?? []),
  );
  const placed = new Set(turns.flat());
  return [...turns, ...steps.filter((step) => !placed.has(step)).map((step) => [step])];
}

async function placesOf(
  orders: OrderReader,
  consumer: ConsumerEntry,
  key: string,
  sorted: readonly Placed[],
): Promise<(readonly [DeadLetter, RedrivePlace])[]> {
  const aggregate = sequenceOf(key);
  const { last } = await orders.last(key);
  let next = last + 1;
  let block: OrderBlock | undefined;
  const places: (readonly [DeadLetter, RedrivePlace])[] = [];
  for (const { deadLetter, place } of sorted) {
    const { sequence } = place;
    const { eventId } = deadLetter;
    if (sequence > next && block === undefined) {
      const around = isEventId(eventId) ? eventIdTime(eventId) : undefined;
      const missing = blockOf(
        consumer.name,
        await orders.read(consumer, aggregate, { around, missing: next }),
      );
      // An event that was not found may still come.
      if (missing.isStuck && missing.isFound) block = missing;
    }
    next = Math.max(next, sequence + 1);
    places.push([deadLetter, { aggregate, sequence, ahead: Math.max(0, sequence - last - 1), block }]);
  }
  return places;
}

/** Sorts the dead letters of a redrive: the lowest numbers first, so that its first step does not wait. */
export function lowestFirst<Letter extends PlacedLetter>(judged: readonly Letter[]): Letter[] {
  return judged.toSorted((a, b) => (a.place?.ahead ?? 0) - (b.place?.ahead ?? 0));
}

/** The most aggregates that a plan names. */
const AGGREGATES_MAX = 3;

/** The order of the events that a plan runs, as text; empty if none waits for another. */
export function orderText(running: readonly PlacedLetter[]): string[] {
  const waits = new Map<string, RedrivePlace>();
  const places = running.flatMap(({ place }) => place ?? []);
  // Not by name: two services may have an aggregate of the same name.
  const keyOf = ({ aggregate }: RedrivePlace) => JSON.stringify(aggregate);
  const isWaiting = new Set(places.filter(({ ahead }) => ahead > 0).map(keyOf));
  for (const place of places.toSorted((a, b) => b.sequence - a.sequence)) {
    if (isWaiting.has(keyOf(place))) waits.set(keyOf(place), place);
  }
  if (waits.size === 0) return [];
  const named = [...waits].slice(0, AGGREGATES_MAX).map(([, { aggregate, sequence, ahead }]) => {
    const after = ahead === 0 ? '' : `, which waits for number ${sequence - ahead}`;
    return `${aggregateName(aggregate)} from number ${sequence}${after}`;
  });
  const more =
    waits.size > AGGREGATES_MAX ? `; and ${many(waits.size - AGGREGATES_MAX, 'more aggregate')}` : '';
  return [
    `Lower numbers go first, and a later one waits in the queue for its predecessor, in whatever order they are redriven: ${named.join('; ')}${more}.`,
  ];
}
