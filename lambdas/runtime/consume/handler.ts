import type { JsonOf } from '../base/json.ts';
import type { LatestOrder } from '../base/order.ts';
import type { EventOf, HandledDefinition } from '../events/external-event.ts';
import type { LogFields } from '../observe/telemetry.ts';
import type { Commit } from '../store/dynamo/outbox.ts';
import type { EffectState } from '../store/stored-effect.ts';
import type { Around } from './around.ts';
import type { BatchCommit } from './batch-commit.ts';
import type { HandlerLimit, Limit } from './limits.ts';

/** The context that a leased handler receives with its event. */
export interface LeasedContext {
  /** The number of this attempt, from 1. A redrive starts again at 1. */
  readonly attempt: number;
  /** Aborted when this worker loses the message, or when the function's time is nearly up. */
  readonly signal: AbortSignal;
  /**
   * The body of the SQS message, byte for byte. For a Mailroom event it is EventBridge's JSON, whose `detail` is the envelope before `upcast`
   * and the schema's defaults.
   */
  readonly body: string;
  /** Returns the number of milliseconds until the function is stopped. */
  remainingMs(): number;
  /**
   * The fields of Mailroom's own log lines about this message: `consumer`, `eventId`, `eventType`, `messageId`, `receives`,
   * `attempt`, `correlation_id`, and `trace_id` and `xrayTraceId` where known. A function processes several messages at a time, so
   * give them to a logger of the message, not to one that all share.
   *
   * @example
   * ```ts
   * const log = logger.createChild({ persistentKeys: ctx.logFields });
   * ```
   */
  readonly logFields: LogFields;
  /**
   * Runs a side effect outside DynamoDB. The effect does not run again once its result is stored, and it always runs under the
   * same idempotency key, `<consumer>:<eventId>:<name>`. Pass that key to the provider. A provider that honors it performs the
   * effect once; one that ignores it may perform it again after a crash that happens before the result is stored.
   *
   * Use the same name in every attempt and after every deployment: another name means another key, and the effect happens again.
   * Build the name from the action and from event data (`charge`, `ship-${item.sku}`), never from a time, a counter, a random
   * value or {@link LeasedContext.attempt}. If a message is processed without an effect that an earlier attempt completed, the
   * error `UNSTABLE_EFFECTS` is logged with the names, and the metric `UnstableEffects` counts it. The same happens if this
   * attempt took another path, for example because the order was cancelled in between: the earlier effect then needs a
   * compensation.
   *
   * @param name - a unique name within the handler; 1 to 64 letters, digits, dots, dashes and underscores
   * @param effect - its result is stored in the message's row as JSON (at most 4 KB) and returned as parsed JSON: a `Date` becomes a string,
   * and a value that JSON would empty or replace, such as a `Map` or an answer of `fetch`, is refused
   * @throws the error that `effect` throws: the next attempt runs the effect again, under the same key. Until the message is processed, the effect
   * counts as one that may have happened, unless `effect` marks its error by `nothingHappened`
   * @throws `EFFECT_REPEATED` if an effect of this name has already succeeded in this run: in a loop, include the item in the name
   * @throws `TOO_MANY_EFFECTS` for the 65th effect of a message, `EFFECT_RESULT_NOT_STORABLE`: the message is rejected
   * @throws `EFFECT_IN_PROGRESS`, `FENCE_LOST`: do not catch these; SQS redelivers the message
   *
   * @example
   * ```ts
   * const charge = await ctx.once('charge', (idempotencyKey) => bank.charge({ amountCents, idempotencyKey }));
   * ```
   */
  once<T>(
    name: string,
    effect: (idempotencyKey: string, signal: AbortSignal) => Promise<T>,
  ): Promise<JsonOf<T>>;
  /**
   * Runs a side effect for each item, each as {@link LeasedContext.once} does, under the name `<name>.<key>`. Every name is checked before
   * the first effect starts. After a failure no further effect starts; those that run are awaited, and the next attempt runs only what has
   * no stored result.
   *
   * @param items - strings or numbers, or other values with the option `key`
   * @returns the results, in the order of the items
   * @throws the error of the first effect that failed
   * @throws `TOO_MANY_EFFECTS` if the message would have more than 64 effects, with those called before, before any of the items' starts: publish
   * an event for each item instead
   * @throws `BAD_EFFECT_NAME`, `EFFECT_REPEATED` if a key is not part of a valid name or occurs twice, before any effect starts
   *
   * @example
   * ```ts
   * await ctx.onceEach('ship', event.data.lines, (line, idempotencyKey) => carrier.ship(line, idempotencyKey), {
   *   key: ({ sku }) => sku,
   *   concurrency: 4,
   * });
   * ```
   */
  onceEach<Item, T>(
    name: string,
    items: Iterable<Item>,
    effect: (item: Item, idempotencyKey: string, signal: AbortSignal) => Promise<T>,
    options?: OnceEachOptions<Item>,
  ): Promise<JsonOf<T>[]>;
  /**
   * Commits domain writes and new events and sets this message PROCESSED, in one transaction, so the effect and its record
   * cannot diverge. The events inherit correlation and causation. Call it at most once per message, as the last thing that the
   * handler does; errors thrown after it are only logged.
   *
   * Every effect must have ended before, and a failure must have reached the handler: await each `ctx.once`, also one whose error you
   * catch. Otherwise the effect could fail after its message is processed, and would never happen.
   *
   * @throws `NOT_AWAITED` if an effect is under way, or has failed and was neither awaited nor caught: nothing was written, and the message
   * fails, whatever the handler does next
   * @throws `TRANSACTION_CANCELLED` if one of `writes` was refused: nothing was written and the attempt fails
   * @throws `BAD_ITEM` if `writes` contains a value that DynamoDB cannot store, such as a `Date`: nothing was sent
   * @throws `FENCE_LOST` if this worker has lost the message: nothing was written
   * @throws `OUT_OF_ORDER` if another event of an ordered message's aggregate was applied since the run began: do not catch it; the message is received again
   *
   * @example
   * ```ts
   * await ctx.commit({ writes: [{ Put: { Item: payment } }], events: [PaymentCaptured.create({ aggregateId, data })] });
   * ```
   */
  commit(commit: Commit): Promise<void>;
}

/** Options of {@link LeasedContext.onceEach}. */
export interface OnceEachOptions<Item> {
  /**
   * Identifies an item: letters, digits, dots, dashes and underscores. Like a name of `ctx.once`, it must be the same in every attempt, so never the
   * item's position in a list that can change.
   *
   * @default the item itself; required if it is neither a string nor a number
   */
  readonly key?: ((item: Item) => string | number) | undefined;
  /** The most effects that run at a time, a whole number from 1. @default 1 */
  readonly concurrency?: number | undefined;
}

/** The context that a batch handler receives with its events. */
export interface BatchContext {
  /** Returns the number of milliseconds until the function is stopped. */
  remainingMs(): number;
  /** The `consumer` and the `eventType`; for one event, as {@link LeasedContext.logFields}. */
  readonly logFields: LogFields;
}

/** The context that a transactional handler receives with its event. */
export interface TransactionalContext {
  /**
   * The number of this attempt, from 1. The first run has no claim and leaves no trace if it fails, so the following run is
   * attempt 1 again.
   */
  readonly attempt: number;
  /** Returns the number of milliseconds until the function is stopped. */
  remainingMs(): number;
  /** As {@link LeasedContext.logFields}; without `attempt` while it runs without a claim. */
  readonly logFields: LogFields;
}

/** The context that a `rejected` function receives with its event. */
export interface RejectedContext {
  /** The operator who discards the message: the ARN of the caller. */
  readonly by: string;
  /** The operator's reason. */
  readonly reason: string;
  /** The last error of the message, with the code of its rejection. Absent if it has none. */
  readonly cause: { readonly code: string; readonly message: string } | undefined;
  /** The side effects that its handler started, by name. */
  readonly effects: Readonly<Record<string, PastEffect>>;
  /** Returns the number of milliseconds until the function is stopped. */
  remainingMs(): number;
  /** As {@link LeasedContext.logFields}, without `attempt`. */
  readonly logFields: LogFields;
}

/** A side effect of a message whose handler does not run again. */
export interface PastEffect {
  /**
   * `completed`: it has happened. `nothing-happened`: its error said so. Otherwise it may have happened; the operator has confirmed
   * that its provider was asked.
   */
  readonly state: EffectState;
  /** The idempotency key under which its provider knows it. */
  readonly idempotencyKey: string;
  /** The result of a completed effect. */
  readonly result: unknown;
}

/** Options of {@link leased} and {@link transactional}. */
export interface HandlerOptions<E extends HandledDefinition> {
  /**
   * Ends the work of a message that an operator discards with `mailroom dlq discard --reject`. It only reads and returns: its writes and
   * events commit in the transaction that sets the message DISCARDED, so either the handler commits, or this does, and only once. It may
   * run several times, as a {@link transactional} handler. To compensate for a completed effect, announce it: the consumer of that event
   * does so with its own retries.
   *
   * @default the message can only be discarded without an event
   *
   * @example
   * ```ts
   * leased(OrderPlaced, charge, {
   *   rejected: async ({ aggregateId, data }, { effects }) => ({
   *     events: [PaymentRejected.create({ aggregateId, data: { orderId: data.orderId, charge: effects.charge?.result } })],
   *   }),
   * });
   * ```
   */
  readonly rejected?: (event: EventOf<E>, ctx: RejectedContext) => Promise<Commit>;
  /**
   * Absorbs events that are older than the last one applied. The definition must declare `sequence`. The `mailroom` command knows only the
   * consumer's `order`: if it resolves a message that was never claimed, older events can still run.
   *
   * @default the consumer's `order`
   */
  readonly order?: LatestOrder | undefined;
  /**
   * The time after which a message is stale and discarded: no attempt starts any more, unless an effect of an earlier one has happened, or may have.
   * From the time in the id of its event, when it was minted, or when a scheduled event was due; of an external event, from its arrival in the queue.
   * Milliseconds: from 1,000, and less than the inbox retention. Not with `order: strict`, nor with `rejected`: see docs/stale.md.
   *
   * @default a message is processed however long it has waited
   */
  readonly expiresInMs?: number | undefined;
}

/** Options of {@link leased}. */
export interface LeasedOptions<E extends HandledDefinition> extends HandlerOptions<E> {
  /**
   * Limits how often the handler runs for each key, e.g. because a provider refuses more calls of one merchant. A message without a token returns to
   * its queue until its slot: no attempt is counted. Only with an inbox in DynamoDB, and messages from SQS: see docs/limits.md.
   *
   * @default no limit
   *
   * @example
   * ```ts
   * leased(OrderPlaced, charge, { limit: { key: ({ data }) => data.merchantId, perSecond: 10, burst: 20 } });
   * ```
   */
  readonly limit?: Limit<E> | undefined;
}

/** One handler of a consumer, created by {@link leased}, {@link transactional} or `transactionalBatch`. */
export type Handler = LeasedHandler | TransactionalHandler;

/** A handler created by {@link leased}. */
export interface LeasedHandler extends Pick<HandlerOptions<HandledDefinition>, 'order' | 'expiresInMs'> {
  /** Distinguishes it from a {@link TransactionalHandler}. */
  readonly kind: 'leased';
  /** The event that it handles. */
  readonly definition: HandledDefinition;
  /** The function passed to {@link leased}. */
  readonly handle: (event: never, ctx: LeasedContext) => Promise<unknown>;
  /** Its {@link HandlerOptions.rejected}. */
  readonly rejected?: ((event: never, ctx: RejectedContext) => Promise<Commit>) | undefined;
  /** Its {@link LeasedOptions.limit}. */
  readonly limit?: HandlerLimit | undefined;
  /** The function around it, which its consumer sets. */
  readonly around?: Around | undefined;
}

/** A handler created by {@link transactional} or `transactionalBatch`. */
export interface TransactionalHandler
  extends Pick<LeasedHandler, 'definition' | 'order' | 'rejected' | 'expiresInMs' | 'around'> {
  /** Distinguishes it from a {@link LeasedHandler}. */
  readonly kind: 'transactional';
  /** The function passed to {@link transactional}. */
  readonly handle: (event: never, ctx: TransactionalContext) => Promise<Commit>;
  /** The function passed to `transactionalBatch`: `handle` calls it with one event. @default it takes one event at a time */
  readonly handleBatch?: ((events: readonly never[], ctx: BatchContext) => Promise<BatchCommit>) | undefined;
}

/**
 * Creates a handler that may have any effect. It runs under a lease that is renewed while it runs. Run side effects with
 * `ctx.once`, and writes and events with `ctx.commit`; if the handler returns without a commit, the message is recorded as
 * processed. Await both: an un-awaited call that fails also fails the message, and `ctx.commit` is refused while an effect is under way.
 *
 * @example
 * ```ts
 * leased(OrderPlaced, async (event, ctx) => {
 *   const charge = await ctx.once('charge', (idempotencyKey) => bank.charge({ ...event.data, idempotencyKey }));
 *   await ctx.commit({ events: [PaymentCaptured.create({ aggregateId: event.aggregateId, data: charge })] });
 * });
 * ```
 */
export function leased<E extends HandledDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: LeasedContext) => Promise<unknown>,
  { rejected, order, limit, expiresInMs }: LeasedOptions<E> = {},
): Handler {
  return { kind: 'leased', definition, handle, rejected, order, limit, expiresInMs };
}

/**
 * Creates a handler that only reads and returns its writes and events: one transaction performs the writes, writes the events
 * and sets the message PROCESSED. It needs no lease and takes one call. It may run several times, even concurrently, but its
 * writes happen once. If one of its conditions fails, it runs again on fresh reads.
 *
 * @example
 * ```ts
 * transactional(OrderPlaced, async (event) => ({
 *   writes: [{ Update: { Key, UpdateExpression: 'SET available = available - :q', … } }],
 *   events: [StockReserved.create({ aggregateId: event.aggregateId, data: {} })],
 * }));
 * ```
 */
export function transactional<E extends HandledDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: TransactionalContext) => Promise<Commit>,
  { rejected, order, ...more }: HandlerOptions<E> = {},
): Handler {
  return { kind: 'transactional', definition, handle, rejected, order, ...more }; // a limit is refused when the consumer is created
}
