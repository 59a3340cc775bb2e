import type { AnyEventDefinition, EventOf } from '../event.ts';
import type { Commit } from '../write/outbox.ts';
import type { JsonOf } from './json-of.ts';

/** What a leased handler is given beside its event. */
export interface LeasedContext {
  /** Which attempt this is, from 1. A redrive begins at 1 again. */
  readonly attempt: number;
  /** Aborted when the message is not this worker's any more, or the function's time is nearly up. */
  readonly signal: AbortSignal;
  /** Milliseconds until the function is stopped. */
  remainingMs(): number;
  /**
   * Runs a side effect outside DynamoDB: not again once its result is stored, and always under the same
   * idempotency key, `<consumer>:<eventId>:<name>`, which is to be handed to the provider. A provider that honours
   * it makes the effect happen once; one that ignores it may see it again after a crash before the result was stored.
   *
   * The name must be the same in every attempt, and after every deployment: under another name, and so another key, the
   * effect happens again. Make it of what the effect does and of what the event says (`charge`, `ship-${item.sku}`), never
   * of a time, a counter, a random value or {@link LeasedContext.attempt}. When a message is processed without an effect
   * that an earlier attempt had completed, the error `UNSTABLE_EFFECTS` is logged with the names, and the metric
   * `UnstableEffects` counts it. That is also so when this attempt took another path, for example because the order was
   * cancelled in between: the earlier effect then needs a compensation.
   *
   * @param name - names the effect within the handler, another name for each; 1 to 64 letters, digits, dots, dashes, underscores
   * @param effect - its result is stored as JSON (at most 100,000 characters) and handed back as JSON reads: a `Date` as a string
   * @throws what `effect` throws: the effect is then released and the next attempt runs it again
   * @throws `EFFECT_REPEATED` when an effect of this name has succeeded in this run: in a loop, put the item into the name
   * @throws `EFFECT_IN_PROGRESS`, `FENCE_LOST` - let them through; the message comes again by itself
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
   * Makes domain writes, writes new events and sets this message PROCESSED, in one transaction: the effect and its
   * record cannot part. The events inherit correlation and causation. At most once per message, and the last
   * thing that a handler does; what it throws after that is logged.
   *
   * @throws `TRANSACTION_CANCELLED` when one of `writes` was refused: nothing was written, the handler failed
   * @throws `BAD_ITEM` when `writes` has a value that DynamoDB does not store, such as a `Date`: nothing was sent
   * @throws `FENCE_LOST` when the message is not this worker's any more: nothing was written
   *
   * @example
   * ```ts
   * await ctx.commit({ writes: [{ Put: { Item: payment } }], events: [PaymentCaptured.create({ aggregateId, data })] });
   * ```
   */
  commit(commit: Commit): Promise<void>;
}

/** What a transactional handler is given beside its event. */
export interface TransactionalContext {
  /**
   * Which attempt this is, from 1. The first run is made without a claim and leaves no trace when it fails, so the
   * run after it is attempt 1 again.
   */
  readonly attempt: number;
  /** Milliseconds until the function is stopped. */
  remainingMs(): number;
}

/** One handler of a consumer, made by {@link leased} or {@link transactional}. */
export type Handler = LeasedHandler | TransactionalHandler;

/** Made by {@link leased}. */
export interface LeasedHandler {
  /** Tells it from a {@link TransactionalHandler}. */
  readonly kind: 'leased';
  /** The event that it handles. */
  readonly definition: AnyEventDefinition;
  /** What was given to {@link leased}. */
  readonly handle: (event: never, ctx: LeasedContext) => Promise<unknown>;
}

/** Made by {@link transactional}. */
export interface TransactionalHandler {
  /** Tells it from a {@link LeasedHandler}. */
  readonly kind: 'transactional';
  /** The event that it handles. */
  readonly definition: AnyEventDefinition;
  /** What was given to {@link transactional}. */
  readonly handle: (event: never, ctx: TransactionalContext) => Promise<Commit>;
}

/**
 * A handler that may do anything: it works under a lease that is kept up while it runs. Side effects go through
 * `ctx.once`, writes and events through `ctx.commit`; a handler that returns without a commit is recorded as
 * processed. Await both: what nobody awaited, and failed, fails the message.
 *
 * @example
 * ```ts
 * leased(OrderPlaced, async (event, ctx) => {
 *   const charge = await ctx.once('charge', (idempotencyKey) => bank.charge({ ...event.data, idempotencyKey }));
 *   await ctx.commit({ events: [PaymentCaptured.create({ aggregateId: event.aggregateId, data: charge })] });
 * });
 * ```
 */
export function leased<E extends AnyEventDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: LeasedContext) => Promise<unknown>,
): Handler {
  return { kind: 'leased', definition, handle };
}

/**
 * A handler that only reads, and returns what is to be written: one transaction makes the writes, writes the
 * events and sets the message PROCESSED. It needs no lease and costs one call. It may run several times, also at
 * the same time; its writes happen once. When one of its conditions is refused, it is run again on fresh reads.
 *
 * @example
 * ```ts
 * transactional(OrderPlaced, async (event) => ({
 *   writes: [{ Update: { Key, UpdateExpression: 'SET available = available - :q', … } }],
 *   events: [StockReserved.create({ aggregateId: event.aggregateId, data: {} })],
 * }));
 * ```
 */
export function transactional<E extends AnyEventDefinition>(
  definition: E,
  handle: (event: EventOf<E>, ctx: TransactionalContext) => Promise<Commit>,
): Handler {
  return { kind: 'transactional', definition, handle };
}
