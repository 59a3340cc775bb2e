import { orderOfText } from '../../../lambdas/runtime/base/order.ts';
import { type DeliveredEvent, readDelivered } from '../../../lambdas/runtime/consume/message.ts';
import type { Envelope } from '../../../lambdas/runtime/events/event.ts';
import {
  type DeadLetterMessage,
  deadLettersTo,
  peekDeadLetters,
} from '../../../lambdas/runtime/operations/dead-letters.ts';
import type { ConsumerEntry } from '../../../lambdas/runtime/operations/directory.ts';
import { isEventId, isUnreadableId, unreadableId } from '../../../lambdas/runtime/store/event-id.ts';
import type { InboxRow, PlaceInOrder } from '../../../lambdas/runtime/store/inbox-row.ts';
import { placeInOrder } from '../../../lambdas/runtime/store/last-sequence.ts';
import type { OutboxRow } from '../../../lambdas/runtime/store/outbox-row.ts';
import { readable, type UnreadableRow } from '../../../lambdas/runtime/store/stored-rows.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { findResend } from '../../deployment/resent-event.ts';

/** A consumer and the order of its events. */
export type OrderedConsumer = Pick<ConsumerEntry, 'name' | 'order' | 'events'>;

/** Returns true if a consumer has a strict order. */
export function isStrict({ order = '' }: Pick<ConsumerEntry, 'order'>): boolean {
  return orderOfText(order)?.mode === 'strict';
}

/** A message at a consumer. */
export interface KnownMessage {
  /** Its id in the inbox. */
  readonly eventId: string;
  readonly row: InboxRow | UnreadableRow | undefined;
  /** The body of its dead letter. @default none was found */
  readonly body?: string | undefined;
}

/** A message's place in the order of its consumer. `none`: its event has no place; `unknown`: nothing that is left shows its event. */
export type MessagePlace = PlaceInOrder | 'none' | 'unknown';

/**
 * Reads the place of a message in the order of its consumer: in its inbox row, which has the place that its last run had; else in its dead
 * letter, whose body the consumer would read. A row from a time when its consumer had another order does not count.
 */
export function placeOfMessage(
  consumer: OrderedConsumer,
  { eventId, row, body }: KnownMessage,
): MessagePlace {
  const own = readable(row)?.order;
  if (own !== undefined && (own.mode === 'strict') === isStrict(consumer)) return own;
  if (consumer.order === undefined || !(isEventId(eventId) || isUnreadableId(eventId))) return 'none';
  const delivered = body === undefined ? undefined : deliveredIn(body);
  if (delivered === undefined) return 'unknown';
  return placeOf(consumer, delivered) ?? 'none';
}

/** The place itself; `undefined` without one. */
export function placed(place: MessagePlace): PlaceInOrder | undefined {
  return typeof place === 'string' ? undefined : place;
}

/** A message's place, and the event of which it is known: absent if only its row was found, or the event is external. */
export interface FoundPlace {
  readonly place: MessagePlace;
  /** The body of its dead letter; absent if it has none, or its outbox row was found. */
  readonly body?: string | undefined;
  readonly event?: DeliveredEvent<Envelope> | undefined;
}

/**
 * Finds the place of a message that an operator names, and its event: in the inbox row, the outbox row, a dead letter, or the event which it
 * replaces. Each may be the only one that is left: the outbox row has expired, or is in the table of another Mailroom, or in PostgreSQL.
 */
export async function findPlace(
  deps: Pick<Deployment, 'stored' | 'queues' | 'clock'>,
  consumer: ConsumerEntry,
  { eventId, row }: KnownMessage,
): Promise<FoundPlace> {
  const { event, body } = await findEvent(deps, consumer, eventId);
  const found = placeOfMessage(consumer, { eventId, row });
  if (found !== 'unknown') return { place: found, event, body };
  if (event !== undefined) return { place: placeOf(consumer, event) ?? 'none', event, body };
  const resent = await findResend(deps.stored, eventId, deps.clock.now());
  if (resent?.consumer !== consumer.name) return { place: 'unknown', body };
  const { causationId } = resent;
  const replaced = await deps.stored.inbox.byEvent(consumer.name, causationId, true);
  // It is the event in whose place it was sent, under its own id.
  const { place, event: old } = await findPlace(deps, consumer, { eventId: causationId, row: replaced });
  return { place, event: old && { ...old, envelope: { ...old.envelope, eventId } } };
}

async function findEvent(
  { stored, queues }: Pick<Deployment, 'stored' | 'queues'>,
  consumer: ConsumerEntry,
  eventId: string,
): Promise<Pick<FoundPlace, 'event' | 'body'>> {
  const row = readable(await stored.outbox.byId(eventId, true));
  if (row !== undefined) return { event: eventOf(row) };
  const isOwn = (deadLetter: DeadLetterMessage) =>
    isUnreadableId(eventId)
      ? unreadableId(deadLetter.received.body) === eventId
      : deadLetter.eventId === eventId;
  for (const source of deadLettersTo(consumer)) {
    const { deadLetters } = await peekDeadLetters(queues, source, PEEK);
    const body = deadLetters.find(isOwn)?.received.body;
    if (body !== undefined) return { event: isEventId(eventId) ? deliveredIn(body) : undefined, body };
  }
  return {};
}

/** Tells an operator how to pass over a number that could not be found; `undefined` if it could, or nothing waits for it. */
export function unknownPlaceText(
  consumer: Pick<ConsumerEntry, 'name' | 'order'>,
  place: MessagePlace,
): string | undefined {
  if (place !== 'unknown' || !isStrict(consumer)) return undefined;
  const { name } = consumer;
  return (
    `Neither its inbox row, a dead letter nor an outbox row shows the event's number, so ${name} does not pass over it. If later events of its aggregate ` +
    `wait, find the number with \`order show ${name} <type> <id>\`, then pass over it with \`order skip ${name} <type> <id> <number>\`.`
  );
}

/** The most dead letters of one source that are read, and how long they stay hidden if showing them again fails. */
const PEEK = { limit: 1_000, hideS: 15 };

/** The place of an event at a consumer, by its outbox row; `undefined` if it has none. */
export function placeOfRow(consumer: OrderedConsumer, row: OutboxRow | undefined): PlaceInOrder | undefined {
  return row && placeOf(consumer, eventOf(row));
}

function eventOf({ source, type, envelope }: OutboxRow): DeliveredEvent<Envelope> {
  return { bus: { source, type }, envelope: JSON.parse(envelope) as Envelope };
}

/** An event whose definition declares no `sequence` may carry a number: it has no place, and passes over no other event's. */
function placeOf(
  { name, order = '', events }: OrderedConsumer,
  { bus: { source, type }, envelope }: DeliveredEvent<Envelope>,
): PlaceInOrder | undefined {
  const kept = orderOfText(order);
  const isNumbered = events.some(
    (event) => event.source === source && event.type === type && event.sequence === true,
  );
  return kept && isNumbered ? placeInOrder(name, kept, { ...envelope, source }) : undefined;
}

/** The event of a body; `undefined` without one. An envelope that claims another type than EventBridge's is not a Mailroom's: see `WRONG_TYPE`. */
function deliveredIn(body: string): DeliveredEvent<Envelope> | undefined {
  try {
    const delivered = readDelivered(body);
    return delivered.bus.type === delivered.envelope.type ? delivered : undefined;
  } catch {
    return undefined;
  }
}
