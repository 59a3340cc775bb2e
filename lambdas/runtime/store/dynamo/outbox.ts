import { type Clock, systemClock } from '../../base/clock.ts';
import type { ProducerConfig } from '../../base/config.ts';
import { isMailroomError } from '../../base/errors.ts';
import { requireGiven } from '../../base/given-names.ts';
import type { Envelope, EventDraft } from '../../events/event.ts';
import type { Payloads } from '../../events/payloads.ts';
import { EVENT_ID, sendSpan } from '../../observe/message-spans.ts';
import type { Redact } from '../../observe/redaction.ts';
import { ownTelemetry, type Telemetry, type TelemetryOptions } from '../../observe/telemetry.ts';
import { safeTelemetry } from '../../observe/telemetry-wrappers.ts';
import { createTracer, inSpan, type TracerSpan } from '../../observe/tracer.ts';
import { refuseReserved } from '../../outbox/event-draft.ts';
import {
  type CausingEvent,
  type EventEntry,
  eventEntry,
  type OutboxEntry,
} from '../../outbox/outbox-entry.ts';
import { type RandomBytes, systemRandomBytes } from '../event-id.ts';
import { isRefused, transactWithRetry, writeWithRetry } from '../retry.ts';
import type { Item, Table, TransactAction, Update } from '../table.ts';
import { cancellationOf, type NotCancelled, notCancelledBecause } from './cancellation.ts';
import type { AtOncePublisher } from './publish-at-once.ts';
import { checkTransaction, eventCount } from './transaction-checks.ts';
import { alreadyCommitted, uniqueActions } from './unique-event.ts';

/** The content of one transaction. */
export interface Commit {
  /** Domain writes and condition checks, in the format of the DynamoDB document client. @default none */
  readonly writes?: readonly TransactAction[] | undefined;
  /** Events to publish if and only if the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** Writes domain changes and their events; created by {@link createOutbox}. */
export interface Outbox {
  /**
   * Commits domain writes and their events in one transaction. When it returns, every event is in the outbox and will be
   * published at least once. If it throws {@link TransactionCancelled} or another `MailroomError`, nothing was written. After
   * any other error, such as a lost connection after all retries, the outcome is unknown: before you call it again, make sure
   * that your writes carry a condition, such as `attribute_not_exists` on the row that they create.
   *
   * The events are counted as `EventsCommitted` once, after the commit. With `publishAtOnce`, they are then published here; a failure
   * of that is logged and never thrown, because the relay publishes them.
   *
   * @returns the envelopes that will be published, in the order of `events`
   * @throws `TRANSACTION_CANCELLED` if a condition failed; its `reasons` begin with those of `writes`, in order
   * @throws `ALREADY_COMMITTED` if an event with the same `uniqueBy` was committed before, whatever else was refused: its `firstEventId` is that event
   * @throws `BAD_ITEM` if `writes` contains a value that DynamoDB cannot store, such as a `Date`, a promise or a class instance
   * @throws `NOT_DECLARED` if the function does not declare that it publishes one of `events`, before anything is sent
   * @throws `INVALID_PAYLOAD`, `INVALID_EVENT`, `EVENT_TOO_LARGE`, `TRANSACTION_TOO_LARGE`, `EMPTY_COMMIT`, `BAD_WRITE` or
   * `STALE_ENTRY`, like `BAD_ITEM`, before anything is sent
   * @throws `PAYLOADS_UNAVAILABLE` if the object of a large payload could not be written: no transaction was sent
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

  /**
   * Cancels a scheduled event of this service. It costs one write unit for each KB of the row.
   *
   * @returns `cancelled`: the event is never published, now or because it was cancelled before. `absent`: it has no row; not final,
   * because its commit may still follow. `too-late`: a relay has taken it, it was published, or it is not scheduled
   * @throws `NOT_DECLARED` if the event belongs to another service, `BAD_EVENT_ID` if the text is not an event id. After any other error
   * the outcome is unknown: call it again
   *
   * @example
   * ```ts
   * if ((await outbox.cancel(order.expiryId)) === 'too-late') console.warn('The order has already expired');
   * ```
   */
  cancel(eventId: string): Promise<'cancelled' | NotCancelled>;

  /**
   * Makes the action that cancels a scheduled event in your own transaction, in `writes` of {@link Outbox.commit}, of `ctx.commit`, or of a
   * transactional handler. If the event cannot be cancelled, even because it is cancelled already, the whole transaction is refused.
   *
   * @throws `BAD_EVENT_ID` if the text is not an event id
   *
   * @example
   * ```ts
   * await outbox.commit({ writes: [{ Update: markPaid }, outbox.cancellation(order.expiryId)] });
   * ```
   */
  cancellation(eventId: string): { readonly Update: Update };

  /**
   * Cancels a scheduled event and commits another one in the same transaction.
   *
   * @returns the new event, or the reason why nothing was changed, as from {@link Outbox.cancel}; `cancelled` if the event was cancelled
   * before: by an earlier call whose outcome was unknown, it may have been replaced, so look for its successor before you schedule another
   * @throws as {@link Outbox.cancel} and {@link Outbox.commit}
   *
   * @example
   * ```ts
   * const later = OrderExpired.create({ aggregateId, data, deliverAt: Date.now() + 60 * 60_000 });
   * const moved = await outbox.reschedule(order.expiryId, later);
   * ```
   */
  reschedule(eventId: string, event: EventDraft): Promise<Rescheduled>;
}

/** The result of {@link Outbox.reschedule}. */
export type Rescheduled =
  | { readonly status: 'rescheduled'; readonly event: Envelope }
  | { readonly status: NotCancelled };

/** Dependencies of {@link createOutbox}. */
export interface OutboxDeps extends TelemetryOptions {
  /** From `readProducerConfig(process.env)`. */
  readonly config: ProducerConfig;
  /** The Mailroom table. */
  readonly table: Table;
  /** @default the machine's clock */
  readonly clock?: Clock | undefined;
  /** @default the machine's random source */
  readonly random?: RandomBytes | undefined;
  /** Publishes the events of `commit` right after its transaction, but not those of `entries`. @default the relay publishes */
  readonly publishAtOnce?: AtOncePublisher | undefined;
  /** Keeps the payloads above its threshold, each before the transaction of its event. @default each event carries its payload */
  readonly payloads?: Payloads | undefined;
  /**
   * If you pass one, you flush it.
   *
   * @default Powertools in a Lambda function, flushed after each commit, with the options `logger`, `logFields` and
   * `metricDimensions`, which apply only to it; otherwise none
   */
  readonly telemetry?: Telemetry | undefined;
  /** Redacts the text of what `commit` throws, a schema's own error for example, in its span. @default the unchanged text */
  readonly redact?: Redact | undefined;
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
  requireGiven('createOutbox', deps, 'config', 'table');
  const { config, table, clock = systemClock, random = systemRandomBytes, publishAtOnce, payloads } = deps;
  refuseReserved(config.service);
  const own = deps.telemetry === undefined ? lambdaTelemetry(deps) : undefined;
  const given = deps.telemetry ?? own;
  const telemetry = given && safeTelemetry(given);
  const tracer = createTracer(deps.redact);

  const entries: Outbox['entries'] = async (events, cause) => {
    const made = await eventEntries(events, { cause }, false);
    return made.map(({ entry }) => entry);
  };

  async function eventEntries(
    events: readonly EventDraft[],
    how: Parameters<typeof eventEntry>[2],
    keepsUnique: boolean,
  ): Promise<EventEntry[]> {
    const context = { config, table, clock, random, tracer, payloads, keepsUnique };
    return Promise.all([...events].map((draft) => eventEntry(context, draft, how)));
  }

  const cancellation: Outbox['cancellation'] = (eventId) =>
    cancellationOf(eventId, config.service, clock.now());
  const refusalOf = (eventId: string, row: Item | undefined) =>
    notCancelledBecause(eventId, config.service, row);

  async function cancel(eventId: string): Promise<'cancelled' | NotCancelled> {
    try {
      await writeWithRetry({ table, clock, random }, cancellation(eventId));
      return 'cancelled';
    } catch (error) {
      if (!isMailroomError(error, 'CONDITION_FAILED')) throw error;
      return refusalOf(eventId, error.item);
    }
  }

  async function reschedule(eventId: string, draft: EventDraft): Promise<Rescheduled> {
    try {
      const [event] = await outbox.commit({ writes: [cancellation(eventId)], events: [draft] });
      return { status: 'rescheduled', event: event as Envelope };
    } catch (error) {
      if (!isMailroomError(error, 'TRANSACTION_CANCELLED') || !isRefused(error)) throw error;
      return { status: refusalOf(eventId, error.reasons[0]?.item) };
    }
  }

  async function commit(
    { writes = [], events = [] }: Commit,
    span?: TracerSpan,
  ): Promise<readonly Envelope[]> {
    const made = await eventEntries(events, { turnMs: publishAtOnce?.timeoutMs }, true);
    const [first] = made;
    if (made.length === 1 && first !== undefined) span?.set(EVENT_ID, first.envelope.eventId);
    const ids = made.map(({ envelope }) => envelope.eventId);
    const keys = uniqueActions(events, ids, clock.now());
    const actions: TransactAction[] = [...writes, ...made.map(({ entry }) => entry), ...keys];
    checkTransaction(actions, { table, clock });
    await transactWithRetry({ table, clock, random }, actions).catch((error: unknown) => {
      throw alreadyCommitted(error, events, actions) ?? error;
    });
    telemetry?.count('EventsCommitted', eventCount(actions));
    await publishAtOnce?.publish(
      made.map(({ entry }) => entry),
      { table, clock, random, telemetry },
    );
    if (own !== undefined) telemetry?.flush();
    return made.map(({ envelope }) => envelope);
  }

  const outbox: Outbox = {
    entries,
    cancel,
    cancellation,
    reschedule,
    commit: async (wanted) => {
      const { events = [] } = wanted;
      if (events.length === 0) return commit(wanted);
      return inSpan(tracer, sendSpan(config, events), (span) => commit(wanted, span));
    },
  };
  return outbox;
}

/** Metrics in log lines are extracted only in Lambda; elsewhere they would clutter a terminal. */
function lambdaTelemetry(deps: OutboxDeps): Telemetry | undefined {
  return process.env.AWS_LAMBDA_FUNCTION_NAME === undefined ? undefined : ownTelemetry(deps.config, deps);
}
