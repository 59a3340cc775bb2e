import { type Clock, systemClock } from '../clock.ts';
import type { ProducerConfig } from '../config.ts';
import { MailroomError, PoisonMessage } from '../errors.ts';
import { type Envelope, type EventDraft, HOPS_MAX } from '../event.ts';
import { mintEventId, outboxKeyOf, type RandomBytes, systemRandomBytes } from '../store/event-id.ts';
import { itemBytes } from '../store/item-size.ts';
import { transactWithRetry } from '../store/retry.ts';
import { type OutboxRow, SCHEMA } from '../store/rows.ts';
import { ITEM_BYTES_MAX, type Put, type Table, type TransactAction } from '../store/table.ts';
import { powertoolsTelemetry, type Telemetry } from '../telemetry.ts';
import { checkDeclared, checkDraft, isTraceId } from './event-draft.ts';
import { checkTransaction, eventCount } from './transaction-checks.ts';

/** What one commit writes. */
export interface Commit {
  /** Domain writes and condition checks, in the document client's shape. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Events to publish if, and only if, the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** One outbox row to be written in a transaction; fits `TransactWriteCommand` as it is. */
export interface OutboxEntry {
  /** Writes the row, on condition that it is absent. */
  readonly Put: Put & { readonly TableName: string; readonly Item: OutboxRow };
}

/** The event whose handling causes the events that are written: they inherit its correlation and its trace. */
export type CausingEvent = Pick<Envelope, 'eventId' | 'correlationId' | 'traceId' | 'hops'>;

/** The writing side of Mailroom, made by {@link createOutbox}. */
export interface Outbox {
  /**
   * Makes domain writes and writes their events in one transaction. When it returns, every event is in the
   * outbox and will be published at least once; when it throws {@link TransactionCancelled} or a `MailroomError`,
   * nothing was written. Any other error (a lost connection, after retries) leaves open whether it was: a caller
   * that tries again needs a condition of its own, such as `attribute_not_exists` on the row it creates.
   *
   * Its events are counted as `EventsCommitted`, once, after the commit.
   *
   * @returns the envelopes as they will be published, in the order of `events`
   * @throws `TRANSACTION_CANCELLED` when a condition was not met; its `reasons` begin with those of `writes`, in order
   * @throws `BAD_ITEM` when `writes` has a value that DynamoDB does not store, such as a `Date`, a promise or an instance of a class
   * @throws `NOT_DECLARED` when the function does not declare that it publishes one of `events`, before anything is sent
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
   * The outbox rows of some events, to put into a transaction of one's own. Use them once and at once: each call
   * mints new event ids. Nobody tells Mailroom whether that transaction commits, so its events are missing from
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

/** What an outbox is made of. */
export interface OutboxDeps {
  /** From `readProducerConfig(process.env)`. */
  readonly config: ProducerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
  /** Whoever gives one flushes it. @default Powertools inside a Lambda function, flushed at each commit; elsewhere none */
  readonly telemetry?: Telemetry | undefined;
}

/** Left free in a row, so that `publishedAt`, `lastError` and the like always fit later. */
const ROW_RESERVE_BYTES = 8 * 1024;

/**
 * Makes the outbox of a service.
 *
 * @param deps.config - from `readProducerConfig(process.env)`
 * @throws `BAD_CONFIG` when the service's name is one that EventBridge keeps for AWS
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
      `The service is named "${config.service}"; EventBridge keeps sources that begin with "aws." for AWS. Name it otherwise.`,
    );
  }
  const own = deps.telemetry === undefined ? lambdaTelemetry(config) : undefined;

  const entries: Outbox['entries'] = async (events, cause) => {
    const made: OutboxEntry[] = [];
    for (const draft of events) made.push(await outboxEntry(draft, cause));
    return made;
  };

  async function outboxEntry(draft: EventDraft, cause: CausingEvent | undefined): Promise<OutboxEntry> {
    await checkDraft(draft);
    const { definition } = draft;
    checkDeclared(definition, config);
    const now = clock.now();
    const eventId = mintEventId(now, config.shards, random);
    // What is inherited was written by somebody else: a trace that does not fit is not carried along.
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
    const row: OutboxRow = {
      ...outboxKeyOf(eventId),
      schema: SCHEMA,
      status: 'PENDING',
      leaseUntil: now + config.bornLeaseMs,
      attempts: 0,
      source: definition.source,
      type: definition.type,
      envelope: JSON.stringify(envelope),
      ...(traceId === undefined ? {} : { traceId }),
    };
    const bytes = itemBytes({ ...row });
    const bytesMax = ITEM_BYTES_MAX - ROW_RESERVE_BYTES;
    if (bytes > bytesMax) {
      throw new MailroomError(
        'EVENT_TOO_LARGE',
        `Event ${definition.type} of ${definition.aggregateType} ${draft.aggregateId.slice(0, 100)} takes ${bytes} bytes in the outbox; ` +
          `at most ${bytesMax} fit. Store the large part elsewhere (S3) and put its address into the event.`,
      );
    }
    return {
      Put: { TableName: table.name, Item: { ...row }, ConditionExpression: 'attribute_not_exists(PK)' },
    };
  }

  return {
    entries,
    commit: async ({ writes = [], events = [] }) => {
      const made = await entries(events);
      const actions: TransactAction[] = [...writes, ...made];
      checkTransaction(actions, clock.now());
      await transactWithRetry({ table, clock, random }, actions);
      (deps.telemetry ?? own)?.count('EventsCommitted', eventCount(actions));
      own?.flush();
      return made.map(envelopeOf);
    },
  };
}

/**
 * Counts the events of a chain. Services that answer each other's events without end are stopped here, after 32 events instead of
 * after a bill.
 *
 * @throws `TOO_MANY_HOPS`, which rejects the message that is being handled
 */
function hopsAfter(
  cause: CausingEvent | undefined,
  { definition, correlationId }: EventDraft,
): number | undefined {
  if (cause === undefined) return undefined;
  // A correlation of its own begins another chain.
  if ((correlationId ?? cause.correlationId) !== cause.correlationId) return undefined;
  const hops = (Number.isSafeInteger(cause.hops) ? Number(cause.hops) : 0) + 1;
  if (hops <= HOPS_MAX) return hops;
  throw new PoisonMessage(
    `Event ${definition.type} would be number ${hops + 1} of the chain ${cause.correlationId}, and a chain ends after ${HOPS_MAX + 1} events. ` +
      "Services probably answer each other's events without end: look at the chain with `mailroom why <id> --story`, and break it. A chain that is meant to go on needs a correlationId of its own.",
    { code: 'TOO_MANY_HOPS' },
  );
}

/** Only in a function do metrics in its log become metrics: elsewhere they would be lines on somebody's terminal. */
function lambdaTelemetry(config: ProducerConfig): Telemetry | undefined {
  return process.env.AWS_LAMBDA_FUNCTION_NAME === undefined ? undefined : powertoolsTelemetry(config);
}

/** The envelope that an outbox entry stores. */
function envelopeOf(entry: OutboxEntry): Envelope {
  return JSON.parse(entry.Put.Item.envelope) as Envelope;
}
