import { CLOCK_SKEW_MS, type Clock } from '../base/clock.ts';
import type { ProducerConfig } from '../base/config.ts';
import { poison } from '../base/poison.ts';
import type { BusEntry } from '../bus/event-bus.ts';
import { type Envelope, type EventDraft, HOPS_MAX } from '../events/event.ts';
import type { Payloads } from '../events/payloads.ts';
import { sampledXRayHeader, traceContextOf, xrayHeaderOf } from '../observe/trace-context.ts';
import type { Tracer } from '../observe/tracer.ts';
import { mintEventId, outboxKeyOf, type RandomBytes } from '../store/event-id.ts';
import { itemBytes } from '../store/item-size.ts';
import { EVENT_PREFIX } from '../store/keys.ts';
import { SCHEMA } from '../store/row-schema.ts';
import { type StoredOutboxRow, storedEnvelope } from '../store/stored-envelope.ts';
import type { Put, Table } from '../store/table.ts';
import { checkDeclared, checkDraft, refuseUnique } from './event-draft.ts';
import { refuseTooLarge } from './event-size.ts';

/** One outbox row to include in a transaction, in the format of a `TransactWriteCommand` item. */
export interface OutboxEntry {
  /** Writes the row, on the condition that it does not exist. */
  readonly Put: Put & {
    readonly TableName: string;
    /** Its envelope is text, or compressed if that saves a write unit. */
    readonly Item: StoredOutboxRow;
  };
}

/**
 * Returns the id of an entry's event. Store that of a scheduled event in a row of the same transaction, to cancel the event later.
 *
 * @example
 * ```ts
 * const [expiry] = await outbox.entries([OrderExpired.create({ aggregateId, data, deliverAt: Date.now() + 30 * 60_000 })]);
 * const order = { PK: `ORDER#${aggregateId}`, SK: 'ORDER', expiryId: entryEventId(expiry) };
 * await outbox.commit({ writes: [{ Put: { Item: order } }, expiry] });
 * ```
 */
export function entryEventId({ Put }: OutboxEntry): string {
  return Put.Item.SK.slice(EVENT_PREFIX.length);
}

/** The event being handled; the new events inherit its correlation id and trace. */
export type CausingEvent = Pick<
  Envelope,
  'eventId' | 'correlationId' | 'traceId' | 'traceparent' | 'tracestate' | 'hops'
>;

/** The row of an event, and its envelope as it will be published. */
export interface EventEntry {
  readonly entry: OutboxEntry;
  readonly envelope: Envelope;
}

/** Dependencies of {@link mintEvent}. */
export interface MintContext {
  readonly config: Pick<ProducerConfig, 'service' | 'publishes' | 'shards'>;
  readonly clock: Clock;
  readonly random: RandomBytes;
  readonly tracer: Tracer;
  /** Takes the payloads that are too large for an event. @default each event carries its payload */
  readonly payloads?: Payloads | undefined;
  /** Its caller keeps the keys of unique events. @default such an event is refused */
  readonly keepsUnique?: boolean;
}

/** Dependencies of {@link eventEntry}. */
export interface EntryContext extends MintContext {
  readonly config: ProducerConfig;
  readonly table: Pick<Table, 'name'>;
}

/** A new event, as any storage writes it. */
export interface MintedEvent {
  readonly eventId: string;
  /** When it was created, epoch milliseconds. */
  readonly now: number;
  /** When it is published, epoch milliseconds; absent unless it is scheduled. */
  readonly dueAt: number | undefined;
  readonly aggregate: { readonly type: string; readonly id: string };
  /** As it will be published; its detail is the envelope. */
  readonly entry: BusEntry;
  /** The payload as JSON, if it is an object and not in the envelope. */
  readonly stored?: string | undefined;
}

/**
 * Checks an event and makes its envelope. If its payload is too large for an event, the object of the payload is written here, before any transaction:
 * a transaction that does not follow leaves an object that expires.
 *
 * @param cause - the event being handled
 * @throws `NOT_DECLARED`, `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TOO_MANY_HOPS`, `PAYLOADS_UNAVAILABLE`
 */
export async function mintEvent(
  { config, clock, random, tracer, payloads, keepsUnique }: MintContext,
  draft: EventDraft,
  cause: CausingEvent | undefined,
): Promise<MintedEvent> {
  await checkDraft(draft, clock.now());
  if (!keepsUnique) refuseUnique(draft);
  const { definition } = draft;
  checkDeclared(definition, config);
  const now = clock.now();
  // A scheduled event stands in the partition of its due minute, where the sweep finds it.
  const dueAt = (draft.deliverAt ?? 0) > now ? draft.deliverAt : undefined;
  const eventId = mintEventId(dueAt ?? now, config.shards, random);
  // The inherited values come from another service: a malformed trace header is dropped.
  const traceId = draft.traceId ?? xrayHeaderOf(cause?.traceId) ?? sampledXRayHeader();
  const traceContext = traceContextOf(draft) ?? tracer.current() ?? traceContextOf(cause);
  const envelope: Envelope = {
    eventId,
    type: definition.type,
    version: definition.version,
    aggregateType: definition.aggregateType,
    aggregateId: draft.aggregateId,
    occurredAt: draft.occurredAt ?? dueAt ?? now,
    correlationId: draft.correlationId ?? cause?.correlationId ?? eventId,
    causationId: draft.causationId ?? cause?.eventId,
    hops: hopsAfter(cause, draft),
    traceId,
    traceparent: traceContext?.traceparent,
    tracestate: traceContext?.tracestate,
    sequence: draft.sequence ?? undefined,
    data: draft.data,
  };
  const stored = payloads && (await storedPayload(payloads, draft, eventId, (dueAt ?? now) - now));
  const detail = JSON.stringify(
    stored === undefined ? envelope : { ...envelope, payload: stored.payload, data: undefined },
  );
  const entry = { source: definition.source, detailType: definition.type, detail, traceHeader: traceId };
  const aggregate = { type: envelope.aggregateType, id: envelope.aggregateId };
  return { eventId, now, dueAt, aggregate, entry, ...(stored !== undefined && { stored: stored.json }) };
}

/** Writes the object of a payload that is too large for its event; `undefined` if the event carries it. */
async function storedPayload(
  payloads: Payloads,
  { definition: { type }, data }: EventDraft,
  eventId: string,
  delayMs: number,
) {
  const json = JSON.stringify(data);
  const payload = await payloads.write({ eventId, type, json, delayMs });
  return payload && { json, payload };
}

/**
 * Makes the outbox row of an event.
 *
 * @param cause - the event being handled
 * @param turnMs - the length of the producer's turn to publish it @default the relay publishes it
 * @throws as {@link mintEvent}
 */
export async function eventEntry(
  context: EntryContext,
  draft: EventDraft,
  { cause, turnMs }: { readonly cause?: CausingEvent | undefined; readonly turnMs?: number | undefined },
): Promise<EventEntry> {
  const minted = await mintEvent(context, draft, cause);
  const { eventId, now, dueAt, entry: published } = minted;
  const leaseUntil = dueAt ?? now + context.config.bornLeaseMs;
  const row = {
    ...outboxKeyOf(eventId),
    schema: SCHEMA,
    status: 'PENDING' as const,
    leaseUntil,
    ...(dueAt === undefined ? {} : { dueAt, scheduledAt: now }),
    // The producer's turn ends a clock margin before its lease, so that the sweep does not publish too.
    ...(turnMs === undefined || dueAt !== undefined
      ? {}
      : { producerUntil: Math.min(now + turnMs, leaseUntil - CLOCK_SKEW_MS) }),
    attempts: 0,
    source: published.source,
    type: published.detailType,
    ...(published.traceHeader === undefined ? {} : { traceId: published.traceHeader }),
  };
  const Item = { ...row, ...storedEnvelope(published.detail, row) };
  refuseTooLarge(published, itemBytes(Item));
  const entry = {
    Put: { TableName: context.table.name, Item, ConditionExpression: 'attribute_not_exists(PK)' },
  };
  return { entry, envelope: envelopeOf(minted) };
}

/** Parsed again, so that the caller sees exactly what consumers will read. */
export function envelopeOf({ entry, stored }: Pick<MintedEvent, 'entry' | 'stored'>): Envelope {
  const envelope = JSON.parse(entry.detail) as Envelope;
  return stored === undefined ? envelope : { ...envelope, data: JSON.parse(stored) };
}

/**
 * Counts the events of a chain. Services that respond to each other's events in an endless loop are stopped after 32
 * events, before the costs add up.
 *
 * @throws `TOO_MANY_HOPS`, which rejects the message being handled
 */
function hopsAfter(
  cause: CausingEvent | undefined,
  { definition, correlationId }: EventDraft,
): number | undefined {
  if (cause === undefined) return undefined;
  // An event with its own correlation id starts a new chain.
  if ((correlationId ?? cause.correlationId) !== cause.correlationId) return undefined;
  const hops = (Number.isSafeInteger(cause.hops) ? Number(cause.hops) : 0) + 1;
  if (hops <= HOPS_MAX) return hops;
  // Anyone may have chosen a correlation id: only a plain one is put into a command.
  const id = /^[\w.:-]+$/.test(cause.correlationId) ? cause.correlationId : '<correlationId>';
  throw poison(
    'TOO_MANY_HOPS',
    `Event ${definition.type} would be number ${hops + 1} in the chain ${cause.correlationId}; a chain may have at most ${HOPS_MAX + 1} events. ` +
      `Services probably respond to each other's events in an endless loop: inspect the chain with \`npx cdk-mailroom why ${id} --story\`, and break it. To continue a chain on purpose, give the event a new correlationId.`,
  );
}
