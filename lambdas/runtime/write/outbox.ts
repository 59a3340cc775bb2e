import { type BusEntry, entryBytes, PUT_EVENTS_BYTES_MAX } from '../bus/event-bus.ts';
import { type Clock, systemClock } from '../clock.ts';
import type { ProducerConfig } from '../config.ts';
import { MailroomError, PoisonMessage } from '../errors.ts';
import { type Envelope, type EventDraft, HOPS_MAX } from '../event.ts';
import { mintEventId, outboxKeyOf, type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { itemBytes } from '../store/item-size.ts';
import { transactWithRetry } from '../store/retry.ts';
import { SCHEMA } from '../store/rows.ts';
import { type StoredOutboxRow, storedEnvelope } from '../store/stored-envelope.ts';
import { ITEM_BYTES_MAX, type Put, type Table, type TransactAction } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { checkDeclared, checkDraft, isTraceId } from './event-draft.ts';
import { checkTransaction, eventCount } from './transaction-checks.ts';

/** The content of one transaction. */
export interface Commit {
  /** Domain writes and condition checks, in the format of the DynamoDB document client. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Events to publish if and only if the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** One outbox row to include in a transaction, in the format of a `TransactWriteCommand` item. */
export interface OutboxEntry {
  /** Writes the row, on the condition that it does not exist. */
  readonly Put: Put & {
    readonly TableName: string;
    /** Its envelope is text, or compressed if that saves a write unit. */
    readonly Item: StoredOutboxRow;
  };
}

/** The event being handled; the new events inherit its correlation id and trace. */
export type CausingEvent = Pick<Envelope, 'eventId' | 'correlationId' | 'traceId' | 'hops'>;

/** Writes domain changes and their events; created by {@link createOutbox}. */
export interface Outbox {
  /**
   * Commits domain writes and their events in one transaction. When it returns, every event is in the outbox and will be
   * published at least once. If it throws {@link TransactionCancelled} or another `MailroomError`, nothing was written. After
   * any other error, such as a lost connection after all retries, the outcome is unknown: before you call it again, make sure
   * that your writes carry a condition, such as `attribute_not_exists` on the row that they create.
   *
   * The events are counted as `EventsCommitted` once, after the commit.
   *
   * @returns the envelopes that will be published, in the order of `events`
   * @throws `TRANSACTION_CANCELLED` if a condition failed; its `reasons` begin with those of `writes`, in order
   * @throws `BAD_ITEM` if `writes` contains a value that DynamoDB cannot store, such as a `Date`, a promise or a class instance
   * @throws `NOT_DECLARED` if the function does not declare that it publishes one of `events`, before anything is sent
   * @throws `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TRANSACTION_TOO_LARGE`, `EMPTY_COMMIT`, `BAD_WRITE` or
   * `STALE_ENTRY`, like `BAD_ITEM`, before anything is sent
   *
   * @example
   * ```ts
   * await outbox.commit({
   *   writes: [{ Put: { Item: order, ConditionExpression: 'attribute_not_exists(PK)' } }],
   *   events: [OrderPlaced.create({ aggregateId: order.orderId, data: { totalCents: 4200 } })],
   * });
   * ```
   */
  commit(commit: Commit): Promise<readonly Envelope[]>;

  /**
   * Creates the outbox rows of events, to include in your own transaction. Use them immediately and only once: each call creates
   * new event ids. Mailroom cannot observe whether your transaction commits, so these events are not counted in
   * `EventsCommitted`.
   *
   * @throws `NOT_DECLARED`, `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`
   *
   * @example
   * ```ts
   * const entries = await outbox.entries([OrderPlaced.create({ aggregateId, data })]);
   * await documentClient.send(new TransactWriteCommand({ TransactItems: [putOrder, ...entries] }));
   * ```
   */
  entries(events: readonly EventDraft[], cause?: CausingEvent): Promise<readonly OutboxEntry[]>;
}

/** Dependencies of {@link createOutbox}. */
export interface OutboxDeps {
  /** From `readProducerConfig(process.env)`. */
  readonly config: ProducerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** If you pass one, you flush it. @default Powertools in a Lambda function, flushed after each commit; otherwise none */
  readonly telemetry?: Telemetry | undefined;
}

/** The largest outbox row. 8 KB stay free, so that `publishedAt`, `lastError` and similar attributes always fit later. */
const ROW_BYTES_MAX = ITEM_BYTES_MAX - 8 * 1024;

/** The row of an event, and its envelope as it will be published. */
interface EventEntry {
  readonly entry: OutboxEntry;
  readonly envelope: Envelope;
}

/**
 * Creates the outbox of a service.
 *
 * @param deps.config - from `readProducerConfig(process.env)`
 * @throws `BAD_CONFIG` if the service's name begins with `aws.`, which EventBridge reserves for AWS
 *
 * @example
 * ```ts
 * const config = readProducerConfig(process.env);
 * const table = dynamoTable({ client: new DynamoDBClient(clientSettings), tableName: config.tableName });
 * export const outbox = createOutbox({ config, table });
 * ```
 */
export function createOutbox(deps: OutboxDeps): Outbox {
  const { config, table, clock = systemClock, random = systemRandomBytes } = deps;
  if (/^aws\./i.test(config.service)) {
    throw new MailroomError(
      'BAD_CONFIG',
      `The service is named "${config.service}", but EventBridge reserves sources that begin with "aws." for AWS. Choose another name.`,
    );
  }
  const own = deps.telemetry === undefined ? lambdaTelemetry(config) : undefined;

  const entries: Outbox['entries'] = async (events, cause) => {
    const made = await eventEntries(events, cause);
    return made.map(({ entry }) => entry);
  };

  async function eventEntries(events: readonly EventDraft[], cause?: CausingEvent): Promise<EventEntry[]> {
    const made: EventEntry[] = [];
    for (const draft of events) made.push(await eventEntry(draft, cause));
    return made;
  }

  async function eventEntry(draft: EventDraft, cause: CausingEvent | undefined): Promise<EventEntry> {
    await checkDraft(draft);
    const { definition } = draft;
    checkDeclared(definition, config);
    const now = clock.now();
    const eventId = mintEventId(now, config.shards, random);
    // The inherited values come from another service: a trace header that does not fit is dropped.
    const traceId = draft.traceId ?? (isTraceId(cause?.traceId) ? cause.traceId : undefined);
    const envelope: Envelope = {
      eventId,
      type: definition.type,
      version: definition.version,
      aggregateType: definition.aggregateType,
      aggregateId: draft.aggregateId,
      occurredAt: draft.occurredAt ?? now,
      correlationId: draft.correlationId ?? cause?.correlationId ?? eventId,
      causationId: draft.causationId ?? cause?.eventId,
      hops: hopsAfter(cause, draft),
      traceId,
      sequence: draft.sequence ?? undefined,
      data: draft.data,
    };
    const json = JSON.stringify(envelope);
    const row = {
      ...outboxKeyOf(eventId),
      schema: SCHEMA,
      status: 'PENDING' as const,
      leaseUntil: now + config.bornLeaseMs,
      attempts: 0,
      source: definition.source,
      type: definition.type,
      ...(traceId === undefined ? {} : { traceId }),
    };
    const Item = { ...row, ...storedEnvelope(json, row) };
    refuseTooLarge(envelope, itemBytes(Item), {
      source: definition.source,
      detailType: definition.type,
      detail: json,
      traceHeader: traceId,
    });
    const entry = {
      Put: { TableName: table.name, Item, ConditionExpression: 'attribute_not_exists(PK)' },
    };
    // Parsed again, so that the caller sees exactly what consumers will read.
    return { entry, envelope: JSON.parse(json) as Envelope };
  }

  return {
    entries,
    commit: async ({ writes = [], events = [] }) => {
      const made = await eventEntries(events);
      const actions: TransactAction[] = [...writes, ...made.map(({ entry }) => entry)];
      checkTransaction(actions, clock.now());
      await transactWithRetry({ table, clock, random }, actions);
      (deps.telemetry ?? own)?.count('EventsCommitted', eventCount(actions));
      own?.flush();
      return made.map(({ envelope }) => envelope);
    },
  };
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
  throw new PoisonMessage(
    `Event ${definition.type} would be number ${hops + 1} in the chain ${cause.correlationId}; a chain may have at most ${HOPS_MAX + 1} events. ` +
      "Services probably respond to each other's events in an endless loop: inspect the chain with `mailroom why <id> --story`, and break it. To continue a chain on purpose, give the event a new correlationId.",
    { code: 'TOO_MANY_HOPS' },
  );
}

/** Metrics in log lines are extracted only in Lambda; elsewhere they would clutter a terminal. */
function lambdaTelemetry(config: ProducerConfig): Telemetry | undefined {
  return process.env.AWS_LAMBDA_FUNCTION_NAME === undefined ? undefined : powertoolsTelemetry(config);
}

/**
 * Refuses an event that EventBridge or the table would refuse.
 *
 * @throws `EVENT_TOO_LARGE`, with both sizes
 */
function refuseTooLarge(
  { type, aggregateType, aggregateId }: Envelope,
  rowBytes: number,
  entry: BusEntry,
): void {
  const published = entryBytes(entry);
  if (published < PUT_EVENTS_BYTES_MAX && rowBytes <= ROW_BYTES_MAX) return;
  throw new MailroomError(
    'EVENT_TOO_LARGE',
    `Event ${type} of ${aggregateType} ${aggregateId.slice(0, 100)} takes ${published} bytes as an EventBridge entry, which must have fewer than ` +
      `${PUT_EVENTS_BYTES_MAX}, and ${rowBytes} bytes in the outbox, where at most ${ROW_BYTES_MAX} fit. Store the large part elsewhere (S3) and put ` +
      'its address in the event.',
  );
}
