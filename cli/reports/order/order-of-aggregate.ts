import { STRICT_GROUP } from '../../../lambdas/runtime/base/order.ts';
import { HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { type InboxState, inboxState } from '../../../lambdas/runtime/inbox/inbox-state.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { eventIdTime, isEventId } from '../../../lambdas/runtime/store/event-id.ts';
import { lastKey, sequenceOf } from '../../../lambdas/runtime/store/keys.ts';
import type { OutboxRow, OutboxStatus } from '../../../lambdas/runtime/store/outbox-row.ts';
import { isUnreadable, readable } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { readRejected } from '../../deployment/message-reader.ts';
import { eachOf, isNotDue, once, type PartialList, readSweepState } from '../../deployment/rows-reader.ts';
import type { StoredRows } from '../../deployment/stored-rows.ts';
import { searchEvents } from '../events/search-events.ts';
import { type OrderedConsumer, placeOfRow } from './place-of-message.ts';

/** The most rejected messages of a consumer, and the most DEAD events of a shard, that are read. */
const READ_MAX = 1_000;

/** The outbox is searched this far back and ahead of an event for the other events of its aggregate. */
const SEARCH_MS = HOUR_MS;

/** The most aggregates for which one command searches the outbox: each search reads up to two hours of it. */
const SEARCHES_MAX = 10;

/** A numbered event may be created this long before the event that its consumer applied before it: clocks differ. */
const CLOCKS_DIFFER_MS = 5 * MINUTE_MS;

/** An aggregate. */
export interface OrderedAggregate {
  /** The service that numbers its events. */
  readonly source: string;
  readonly aggregateType: string;
  readonly aggregateId: string;
}

/** A numbered event of an aggregate, with its state at a consumer, or else in the outbox. */
export interface AggregateEvent {
  readonly sequence: number;
  readonly eventId: string;
  readonly type: string | undefined;
  readonly state: AggregateEventState;
  /** The error code of its rejection. */
  readonly reason?: string | undefined;
}

/** The state of its message; without one, of its outbox row. */
export type AggregateEventState =
  | Exclude<InboxState['is'], 'absent'>
  | Lowercase<Exclude<OutboxStatus, 'DISCARDED'>>
  | 'scheduled';

/** The state of an aggregate at a consumer with a strict order. */
export interface AggregateOrder extends OrderedAggregate {
  /** The number that was applied last; 0 if none was. */
  readonly last: number;
  /** False if the aggregate has no number. */
  readonly exists: boolean;
  /** The event that was applied last. Absent if an operator or a rejection set the number. */
  readonly eventId?: string | undefined;
  /** The time at which the number was written, epoch milliseconds. */
  readonly at?: number | undefined;
  /** The words that name the service in a command; none if the consumer is in the order of one service only. */
  readonly sourceWords: readonly string[];
  /** The next number. */
  readonly missing: number;
  /** The event that has the next number; absent if none was found. */
  readonly holder?: AggregateEvent | undefined;
  /** The events found with later numbers, lowest first. */
  readonly waiting: readonly AggregateEvent[];
  /** The range of the outbox that was searched; absent if it was not. */
  readonly searched?: { readonly since: number; readonly until: number } | undefined;
}

/** Dependencies of {@link orderReader}. */
export interface OrderReaderDeps extends Pick<Deployment, 'table' | 'stored' | 'directory'> {
  /** Epoch milliseconds. */
  readonly now: number;
}

/** Reads aggregates at consumers with a strict order. Its reads are bounded, and what several aggregates share is read once. */
export type OrderReader = ReturnType<typeof orderReader>;

/** Makes the reader of one command. */
export function orderReader({ table, stored, directory, now }: OrderReaderDeps) {
  const rejected = new Map<string, ReturnType<typeof readRejectedInOrder>>();
  const dead = new Map<string, Promise<string[]>>();
  const searched = new Map<string, Promise<string[]>>();
  const signal = new AbortController().signal;

  const rejectedAt = (consumer: string) =>
    once(rejected, consumer, () => readRejectedInOrder(stored, consumer, now));

  const deadIds = () =>
    once(dead, '', async () => {
      const { shards } = await readSweepState(directory, table);
      return (await stored.deadLetters.dead(shards, READ_MAX)).items.map(({ SK }) => SK);
    });

  const search = async (aggregateId: string, range: { readonly since: number; readonly until: number }) => {
    const key = JSON.stringify([aggregateId, range]);
    if (!searched.has(key) && searched.size >= SEARCHES_MAX) return undefined;
    const deps = { directory, table, stored, signal, onProgress: () => {} };
    return once(searched, key, () => searchEvents(deps, aggregateId, range));
  };

  /**
   * Reads one aggregate: its last number, the event that has the next one, and those that wait for it.
   *
   * @param options.around - the outbox is searched around this time, epoch milliseconds @default around the first rejected message
   * that waits, or else now
   * @param options.missing - a later number, in place of the next one
   */
  async function read(
    entry: OrderedConsumer,
    aggregate: OrderedAggregate,
    options: { readonly around?: number | undefined; readonly missing?: number | undefined } = {},
  ): Promise<AggregateOrder> {
    const { name: consumer } = entry;
    const { source, aggregateType, aggregateId } = aggregate;
    const { PK: key } = lastKey({ consumer, group: STRICT_GROUP, source, aggregateType, aggregateId });
    const { last, exists, eventId, at } = await stored.inbox.lastSequence(key);
    const { missing = last + 1 } = options;
    const refused = (await rejectedAt(consumer)).byKey.get(key) ?? [];
    const later = refused.filter(({ sequence }) => sequence > missing).sort(byNumber);
    const applied = eventId !== undefined && isEventId(eventId) ? eventIdTime(eventId) - CLOCKS_DIFFER_MS : 0;
    const anchor = options.around ?? (later[0] === undefined ? now : eventIdTime(later[0].eventId));
    const range = { since: Math.max(anchor - SEARCH_MS, applied), until: Math.min(anchor + SEARCH_MS, now) };
    const found = await search(aggregateId, range);
    const others = await numbered({ stored, now }, entry, key, [...(found ?? []), ...(await deadIds())]);
    const known = new Map([...others, ...refused].map((event) => [event.eventId, event]));
    const events = [...known.values()].sort(byNumber);
    return {
      ...{ source, aggregateType, aggregateId, last, exists, eventId, at, missing },
      sourceWords: numberingServices(entry).length > 1 ? ['--source', source] : [],
      holder: events.find(({ sequence }) => sequence === missing),
      waiting: events.filter(({ sequence }) => sequence > missing),
      searched: found === undefined ? undefined : range,
    };
  }

  /** Reads every aggregate that has a rejected message: one that is next, or one that is out of order. */
  async function readAll(entry: OrderedConsumer): Promise<PartialList<AggregateOrder>> {
    const { byKey, more } = await rejectedAt(entry.name);
    const found = await eachOf([...byKey], async ([key, refused]) => {
      const { last } = await stored.inbox.lastSequence(key);
      return refused.some(({ sequence }) => sequence > last) ? [await read(entry, sequenceOf(key))] : [];
    });
    return { items: found.flat(), more };
  }

  return { read, readAll, last: (key: string) => stored.inbox.lastSequence(key) };
}

/** The services whose events have a number of a consumer's order. */
export function numberingServices({ events }: Pick<ConsumerEntry, 'events'>): string[] {
  return [...new Set(events.filter(({ sequence }) => sequence === true).map(({ source }) => source))];
}

/** The events of a sequence among these, each once. @param key - that of its last number */
async function numbered(
  { stored, now }: Pick<OrderReaderDeps, 'stored' | 'now'>,
  consumer: OrderedConsumer,
  key: string,
  ids: readonly string[],
): Promise<AggregateEvent[]> {
  const found = [...new Set(ids)].filter(isEventId);
  const read = await stored.outbox.byIds(found, (eventId, event) => {
    const row = readable(event);
    const place = placeOfRow(consumer, row);
    return row && place?.key === key ? [{ eventId, row, sequence: place.sequence }] : [];
  });
  const messages = read.flat().map((event) => ({ consumer: consumer.name, ...event }));
  return stored.inbox.byEvents(messages, ({ eventId, row, sequence }, inboxRow): AggregateEvent => {
    const message = inboxState(inboxRow, now);
    const reason = message.is === 'rejected' ? message.row.reason : undefined;
    return { sequence, eventId, type: row.type, state: stateOf(row, message, now), reason };
  });
}

function byNumber(a: AggregateEvent, b: AggregateEvent): number {
  return a.sequence - b.sequence;
}

function stateOf(row: OutboxRow, message: InboxState, now: number): AggregateEventState {
  if (message.is !== 'absent') return message.is;
  if (row.status === 'PENDING' && isNotDue(row, now)) return 'scheduled';
  return row.status.toLowerCase() as Lowercase<OutboxStatus>;
}

async function readRejectedInOrder(stored: StoredRows, consumer: string, now: number) {
  const { items, more } = await readRejected(stored, consumer, READ_MAX, now);
  const byKey = new Map<string, AggregateEvent[]>();
  const messages = items.map(({ SK }) => ({ consumer, eventId: SK }));
  await stored.inbox.byEvents(messages, ({ eventId }, row) => {
    if (row === undefined || isUnreadable(row) || row.status !== 'REJECTED' || row.order?.mode !== 'strict')
      return;
    const { key, sequence } = row.order;
    const { type, reason = 'UNKNOWN' } = row;
    const event: AggregateEvent = { sequence, eventId, type, state: 'rejected', reason };
    byKey.set(key, [...(byKey.get(key) ?? []), event]);
  });
  return { byKey, more };
}
