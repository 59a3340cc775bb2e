import { type Clock, systemClock } from './clock.ts';
import type { ProducerConfig } from './config.ts';
import { errorMessage, MailroomError } from './errors.ts';
import { type Envelope, type EventDraft, validateData } from './event.ts';
import {
  eventIdTime,
  isEventId,
  mintEventId,
  outboxKeyOf,
  type RandomBytes,
  systemRandomBytes,
} from './event-id.ts';
import { itemBytes } from './item-size.ts';
import { transactWithRetry } from './retry.ts';
import { OUTBOX_PREFIX, type OutboxRow, SCHEMA } from './rows.ts';
import {
  ITEM_BYTES_MAX,
  type Put,
  type Table,
  TRANSACTION_ACTIONS_MAX,
  TRANSACTION_BYTES_MAX,
  type TransactAction,
} from './table.ts';
import { powertoolsTelemetry, type Telemetry } from './telemetry.ts';

/** What one commit writes. */
export interface Commit {
  /** Domain writes and condition checks, in the document client's shape. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Events to publish if, and only if, the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** One outbox row to be written in a transaction; fits `TransactWriteCommand` as it is. */
export interface OutboxEntry {
  readonly Put: Put & { readonly TableName: string; readonly Item: OutboxRow };
}

/** The event whose handling causes the events that are written: they inherit its correlation and its trace. */
export type Cause = Pick<Envelope, 'eventId' | 'correlationId' | 'traceId'>;

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
   * @throws `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TRANSACTION_TOO_LARGE`, `EMPTY_COMMIT` or
   * `STALE_ENTRY` before anything is sent
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
   * @throws `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`
   *
   * @example
   * ```ts
   * const entries = await outbox.entries([OrderPlaced.create({ aggregateId, data })]);
   * await documentClient.send(new TransactWriteCommand({ TransactItems: [putOrder, ...entries] }));
   * ```
   */
  entries(events: readonly EventDraft[], cause?: Cause): Promise<readonly OutboxEntry[]>;
}

/** What an outbox is made of. */
export interface OutboxDeps {
  readonly config: ProducerConfig;
  readonly table: Table;
  /** @default the machine's */
  readonly clock?: Clock | undefined;
  /** @default the machine's */
  readonly random?: RandomBytes | undefined;
  /** Whoever gives one flushes it. @default Powertools inside a Lambda function, flushed at each commit; elsewhere none */
  readonly telemetry?: Telemetry | undefined;
}

/**
 * Entries this old are refused by `commit`: used again after their PUBLISHED row has been deleted by TTL, they
 * would be published again.
 */
const ENTRY_AGE_MAX_MS = 5 * 60_000;

/** Left free in a row, so that `publishedAt`, `lastError` and the like always fit later. */
const ROW_RESERVE_BYTES = 8 * 1024;

/** The most characters of a trace header (EventBridge API reference, PutEventsRequestEntry). */
const TRACE_HEADER_MAX = 500;

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

  async function outboxEntry(draft: EventDraft, cause: Cause | undefined): Promise<OutboxEntry> {
    const { definition } = draft;
    await validateData(definition, JSON.parse(jsonOf(definition.type, draft.data)));
    if (typeof draft.aggregateId !== 'string' || draft.aggregateId === '') {
      throw new MailroomError(
        'INVALID_EVENT',
        `Event ${definition.type}: aggregateId must be a text that is not empty, but is ${shown(draft.aggregateId)}`,
      );
    }
    const now = clock.now();
    if ((draft.occurredAt ?? undefined) !== undefined && !Number.isSafeInteger(draft.occurredAt)) {
      throw new MailroomError(
        'INVALID_EVENT',
        `Event ${definition.type}: occurredAt must be whole epoch milliseconds, but is ${shown(draft.occurredAt)}`,
      );
    }
    const eventId = mintEventId(now, config.shards, random);
    // What is inherited was written by somebody else: a trace that does not fit is not carried along.
    const traceId = draft.traceId ?? (isTraceId(cause?.traceId) ? cause.traceId : undefined);
    if (traceId !== undefined && !isTraceId(traceId)) {
      throw new MailroomError(
        'INVALID_EVENT',
        `Event ${definition.type}: traceId must be a text of 1 to ${TRACE_HEADER_MAX} characters, but is ${shown(traceId)}`,
      );
    }
    for (const name of ['correlationId', 'causationId'] as const) {
      const value: unknown = draft[name] ?? undefined;
      if (value === undefined || (typeof value === 'string' && value !== '')) continue;
      throw new MailroomError(
        'INVALID_EVENT',
        `Event ${definition.type}: ${name} must be a text that is not empty, but is ${shown(value)}`,
      );
    }
    const sequence: unknown = draft.sequence ?? undefined;
    if (sequence !== undefined && (typeof sequence !== 'number' || !Number.isFinite(sequence))) {
      throw new MailroomError(
        'INVALID_EVENT',
        `Event ${definition.type}: sequence must be a finite number, but is ${shown(sequence)}`,
      );
    }
    const envelope: Envelope = {
      eventId,
      type: definition.type,
      version: definition.version,
      aggregateType: definition.aggregateType,
      aggregateId: draft.aggregateId,
      occurredAt: draft.occurredAt ?? now,
      correlationId: draft.correlationId ?? cause?.correlationId ?? eventId,
      causationId: draft.causationId ?? cause?.eventId,
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
      source: config.service,
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
    return { Put: { TableName: table.name, Item: row, ConditionExpression: 'attribute_not_exists(PK)' } };
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

/** Only in a function do metrics in its log become metrics: elsewhere they would be lines on somebody's terminal. */
function lambdaTelemetry(config: ProducerConfig): Telemetry | undefined {
  return process.env.AWS_LAMBDA_FUNCTION_NAME === undefined ? undefined : powertoolsTelemetry(config);
}

/** How many events a transaction writes. */
export function eventCount(actions: readonly TransactAction[]): number {
  return actions.filter((action) => outboxEventId(action) !== undefined).length;
}

/** The envelope that an outbox entry stores. */
function envelopeOf(entry: OutboxEntry): Envelope {
  return JSON.parse(entry.Put.Item.envelope) as Envelope;
}

/**
 * Refuses a transaction that DynamoDB would refuse, with an error that says what to do, and entries that were
 * made too long ago.
 *
 * @param ownActions - how many actions Mailroom adds: a consumer's inbox row @default 0
 * @throws `EMPTY_COMMIT`, `TRANSACTION_TOO_LARGE`, `STALE_ENTRY`
 */
export function checkTransaction(actions: readonly TransactAction[], now: number, ownActions = 0): void {
  const count = actions.length + ownActions;
  if (count === 0) {
    throw new MailroomError('EMPTY_COMMIT', 'Nothing to commit: give at least one write or one event');
  }
  if (count > TRANSACTION_ACTIONS_MAX) {
    throw new MailroomError(
      'TRANSACTION_TOO_LARGE',
      `The transaction has ${count} actions (writes, events and, in a consumer, the inbox row); DynamoDB takes ` +
        `at most ${TRANSACTION_ACTIONS_MAX}. Split the work into several commits.`,
    );
  }
  const bytes = actions.reduce((sum, action) => sum + (action.Put?.Item ? itemBytes(action.Put.Item) : 0), 0);
  if (bytes > TRANSACTION_BYTES_MAX) {
    throw new MailroomError(
      'TRANSACTION_TOO_LARGE',
      `The items of the transaction take ${bytes} bytes; DynamoDB takes at most ${TRANSACTION_BYTES_MAX}. Split the work ` +
        'into several commits, or store the large parts elsewhere.',
    );
  }
  for (const action of actions) {
    const eventId = outboxEventId(action);
    if (eventId !== undefined && now - eventIdTime(eventId) > ENTRY_AGE_MAX_MS) {
      throw new MailroomError(
        'STALE_ENTRY',
        `Event ${eventId} was made more than ${ENTRY_AGE_MAX_MS / 60_000} minutes ago. Entries are for one transaction, at once: ` +
          'call outbox.entries again.',
      );
    }
  }
}

function outboxEventId(action: TransactAction): string | undefined {
  const { PK, SK } = action.Put?.Item ?? {};
  if (typeof PK !== 'string' || typeof SK !== 'string' || !PK.startsWith(OUTBOX_PREFIX)) return undefined;
  const eventId = SK.slice('EVENT#'.length);
  return isEventId(eventId) ? eventId : undefined;
}

/** A payload as JSON, so that what is validated is what will be read. */
function jsonOf(type: string, data: unknown): string {
  let problem = 'it is undefined, or a function';
  try {
    const json = JSON.stringify(data) as string | undefined;
    if (json !== undefined) return json;
  } catch (error) {
    problem = errorMessage(error);
  }
  throw new MailroomError('INVALID_PAYLOAD', `The payload of ${type} cannot be written as JSON: ${problem}`);
}

function isTraceId(value: unknown): value is string {
  return typeof value === 'string' && value !== '' && value.length <= TRACE_HEADER_MAX;
}

/** A value in an error's text, whatever it is. */
function shown(value: unknown): string {
  return typeof value === 'string' ? `"${value.slice(0, 100)}"` : `of type ${typeof value}`;
}
