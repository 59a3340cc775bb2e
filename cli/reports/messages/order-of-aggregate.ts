import { orderOfText, STRICT_GROUP } from '../../../lambdas/runtime/base/order.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { isEventId, outboxKeyOf } from '../../../lambdas/runtime/store/event-id.ts';
import { inboxKey, lastKey, sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import { placeInOrder, readLastSequence } from '../../../lambdas/runtime/store/last-sequence.ts';
import type { PlaceInOrder } from '../../../lambdas/runtime/store/rows.ts';
import {
  isUnreadable,
  readable,
  readInboxRow,
  readOutboxRow,
} from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Table } from '../../../lambdas/runtime/store/table.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readRejected } from '../../deployment/message-reader.ts';
import { eachOf, withItems } from '../../deployment/rows-reader.ts';

/** The most rejected messages of a consumer that are read. */
const READ_MAX = 1_000;

/** An aggregate. */
export interface OrderedAggregate {
  readonly aggregateType: string;
  readonly aggregateId: string;
}

/** A rejected message of an ordered consumer. */
interface RejectedInOrder {
  readonly sequence: number;
  readonly eventId: string;
  readonly reason: string;
}

/** The state of an aggregate at a consumer with a strict order. */
export interface AggregateOrder extends OrderedAggregate {
  /** The number that was applied last; 0 if none was. */
  readonly last: number;
  /** False if the aggregate has no number. */
  readonly exists: boolean;
  /** The event that was applied last. Absent if an operator or a rejection set the number. */
  readonly eventId?: string | undefined;
  /** The next number. */
  readonly missing: number;
  /** Its rejected messages, lowest number first. */
  readonly rejected: readonly RejectedInOrder[];
}

/** Returns true if a consumer has a strict order. */
export function isStrict({ order = '' }: Pick<ConsumerEntry, 'order'>): boolean {
  return orderOfText(order)?.mode === 'strict';
}

type OrderReaderDeps = Pick<Deployment, 'table' | 'clock'>;

/** Reads one aggregate. */
export async function readOrder(
  deployment: OrderReaderDeps,
  { name: consumer }: ConsumerEntry,
  aggregate: OrderedAggregate,
): Promise<AggregateOrder> {
  const { PK: key } = lastKey({ consumer, group: STRICT_GROUP, ...aggregate });
  const { byKey } = await readRejectedInOrder(deployment, consumer);
  return orderOf(deployment.table, key, aggregate, byKey.get(key) ?? []);
}

/** Reads every aggregate that has a rejected message: one that is next, or one that is out of order. */
export async function readOrders(
  deployment: OrderReaderDeps,
  { name: consumer }: ConsumerEntry,
): Promise<{ readonly orders: readonly AggregateOrder[]; readonly more: boolean }> {
  const { byKey, more } = await readRejectedInOrder(deployment, consumer);
  const found = await eachOf([...byKey], ([key, rejected]) =>
    orderOf(deployment.table, key, sequenceOf(key), rejected),
  );
  return {
    orders: found.filter(({ rejected, last }) => rejected.some(({ sequence }) => sequence > last)),
    more,
  };
}

async function orderOf(
  table: Table,
  key: string,
  { aggregateType, aggregateId }: OrderedAggregate,
  rejected: readonly RejectedInOrder[],
): Promise<AggregateOrder> {
  const { last, exists, eventId } = await readLastSequence({ table }, key);
  const inOrder = [...rejected].sort((a, b) => a.sequence - b.sequence);
  return { aggregateType, aggregateId, last, exists, eventId, missing: last + 1, rejected: inOrder };
}

async function readRejectedInOrder({ table, clock }: OrderReaderDeps, consumer: string) {
  const { items, more } = await readRejected(table, consumer, READ_MAX, clock.now());
  const keyOf = ({ SK }: { readonly SK: string }) => inboxKey(consumer, SK);
  const byKey = new Map<string, RejectedInOrder[]>();
  await withItems(table, items, keyOf, (pointer, item) => {
    const row = readInboxRow(item);
    if (row === undefined || isUnreadable(row) || row.status !== 'REJECTED' || row.order?.mode !== 'strict')
      return;
    const { key, sequence } = row.order;
    const rejected = { sequence, eventId: pointer.SK, reason: row.reason ?? 'UNKNOWN' };
    byKey.set(key, [...(byKey.get(key) ?? []), rejected]);
  });
  return { byKey, more };
}

/**
 * The place of an event at an ordered consumer, for a message that has no row; `undefined` if it has none, or the outbox no row of it. An
 * event whose definition declares no `sequence` may carry a number of its own: it has no place, and passes over no other event's.
 */
export async function placeOfEvent(
  table: Pick<Table, 'get'>,
  { name, order = '', events }: Pick<ConsumerEntry, 'name' | 'order' | 'events'>,
  eventId: string,
): Promise<PlaceInOrder | undefined> {
  const kept = orderOfText(order);
  if (kept === undefined || !isEventId(eventId)) return undefined;
  const row = readable(readOutboxRow(await table.get(outboxKeyOf(eventId), { consistent: true })));
  const isNumbered = events.some(
    ({ source, type, sequence }) => source === row?.source && type === row.type && sequence === true,
  );
  return row && isNumbered ? placeInOrder(name, kept, JSON.parse(row.envelope) as Envelope) : undefined;
}
