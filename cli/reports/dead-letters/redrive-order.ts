import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import type { PlaceInOrder } from '../../../lambdas/runtime/store/rows.ts';
import { readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { many } from '../../terminal/output.ts';
import { aggregateName, blockOf, type OrderBlock } from '../messages/order-block.ts';
import {
  isStrict,
  type OrderedAggregate,
  type OrderReader,
  placeOfEvent,
} from '../messages/order-of-aggregate.ts';
import type { DeadLetterSource } from './dead-letters.ts';
import type { JudgedDeadLetter } from './redrive-plan.ts';

/** The place of a dead letter in the order of its aggregate. */
export interface RedrivePlace {
  readonly aggregate: OrderedAggregate;
  readonly sequence: number;
  /** The number of earlier numbers that are not applied. */
  readonly ahead: number;
  /** The earlier number that a redrive would wait for in vain. */
  readonly block?: OrderBlock | undefined;
}

interface Placed {
  readonly deadLetter: JudgedDeadLetter;
  readonly place: PlaceInOrder;
}

/**
 * Judges the dead letters of a strict consumer that would run, together: one that waits for a number that never comes, and is not
 * among them, would only be rejected again.
 */
export async function inOrder(
  { table, orders }: { readonly table: Table; readonly orders: OrderReader },
  { consumer }: Extract<DeadLetterSource, { kind: 'rule' | 'consumer' }>,
  judged: readonly JudgedDeadLetter[],
): Promise<JudgedDeadLetter[]> {
  if (!isStrict(consumer)) return [...judged];
  const placed = await eachOf(
    judged.filter(({ verdict }) => verdict === 'runs'),
    async (deadLetter): Promise<Placed[]> => {
      const { row, eventId = '' } = deadLetter;
      const place = readable(row)?.order ?? (await placeOfEvent(table, consumer, eventId));
      return place?.mode !== 'strict' ? [] : [{ deadLetter, place }];
    },
  );
  const byKey = new Map<string, Placed[]>();
  for (const one of placed.flat()) byKey.set(one.place.key, [...(byKey.get(one.place.key) ?? []), one]);
  const found = new Map<JudgedDeadLetter, JudgedDeadLetter>();
  await eachOf([...byKey], async ([key, same]) => {
    const sorted = same.sort((a, b) => a.place.sequence - b.place.sequence);
    for (const [deadLetter, place] of await placesOf(orders, consumer.name, key, sorted)) {
      const { block } = place;
      found.set(deadLetter, {
        ...deadLetter,
        place,
        ...(block && { verdict: 'out-of-order', code: 'OUT_OF_ORDER', message: block.text }),
      });
    }
  });
  return judged.map((deadLetter) => found.get(deadLetter) ?? deadLetter);
}

async function placesOf(
  orders: OrderReader,
  consumer: string,
  key: string,
  sorted: readonly Placed[],
): Promise<(readonly [JudgedDeadLetter, RedrivePlace])[]> {
  const aggregate = sequenceOf(key);
  const { last } = await orders.last(key);
  let next = last + 1;
  let block: OrderBlock | undefined;
  const places: (readonly [JudgedDeadLetter, RedrivePlace])[] = [];
  for (const { deadLetter, place } of sorted) {
    const { sequence } = place;
    const { eventId } = deadLetter;
    if (sequence > next && block === undefined) {
      const around = isEventId(eventId) ? eventIdTime(eventId) : undefined;
      const missing = blockOf(
        consumer,
        await orders.read({ name: consumer }, aggregate, { around, missing: next }),
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
export function lowestFirst(judged: readonly JudgedDeadLetter[]): JudgedDeadLetter[] {
  return judged.toSorted((a, b) => (a.place?.ahead ?? 0) - (b.place?.ahead ?? 0));
}

/** The most aggregates that a plan names. */
const AGGREGATES_MAX = 3;

/** Says in which order the events of a plan run; empty if none waits for another. */
export function orderText(judged: readonly JudgedDeadLetter[]): string[] {
  const waits = new Map<string, RedrivePlace>();
  const running = judged.flatMap(({ verdict, place }) => (verdict === 'runs' && place ? [place] : []));
  const isWaiting = new Set(
    running.flatMap(({ aggregate, ahead }) => (ahead > 0 ? aggregateName(aggregate) : [])),
  );
  for (const place of running.toSorted((a, b) => b.sequence - a.sequence)) {
    const name = aggregateName(place.aggregate);
    if (isWaiting.has(name)) waits.set(name, place);
  }
  if (waits.size === 0) return [];
  const named = [...waits].slice(0, AGGREGATES_MAX).map(([name, { sequence, ahead }]) => {
    const after = ahead === 0 ? '' : `, which waits for number ${sequence - ahead}`;
    return `${name} from number ${sequence}${after}`;
  });
  const more =
    waits.size > AGGREGATES_MAX ? `; and ${many(waits.size - AGGREGATES_MAX, 'more aggregate')}` : '';
  return [
    `Lower numbers go first, and a later one waits in the queue for its predecessor, in whatever order they are redriven: ${named.join('; ')}${more}.`,
  ];
}
