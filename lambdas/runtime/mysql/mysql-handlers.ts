import type { LatestOrder } from '../base/order.ts';
import type {
  LeasedContext,
  LeasedHandler,
  RejectedContext,
  TransactionalContext,
  TransactionalHandler,
} from '../consume/handler.ts';
import type { EventDraft } from '../events/event.ts';
import type { EventOf, HandledDefinition } from '../events/external-event.ts';
import type { Database } from '../store/sql/database.ts';

/** The events of a handler's transaction. Its own writes go through `tx`. */
export interface MysqlCommit {
  /** Published if and only if the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** The context that a leased handler receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface MysqlLeasedContext<Tx> extends Omit<LeasedContext, 'commit'> {
  /**
   * Runs your writes, writes the events that they return and sets this message PROCESSED, in one transaction. The events inherit
   * correlation and causation. Call it at most once per message, as the last thing that the handler does. The transaction holds the
   * message's row, so call nothing outside the database in it.
   *
   * @param work - runs inside the transaction; or the events, if there is nothing else to write
   * @throws `FENCE_LOST` if this worker has lost the message: nothing was written
   * @throws `NOT_AWAITED` if an effect is under way, or has failed and was neither awaited nor caught: nothing was written, and the message
   * fails, whatever the handler does next
   * @throws `TRANSACTION_ENDED` if your writes caught the error of a deadlock, or ran a statement that commits
   * @throws the error of your writes: nothing was written and the attempt fails
   *
   * @example
   * ```ts
   * await ctx.commit(async (tx) => {
   *   await tx.execute('INSERT INTO payment (order_id, charge_id) VALUES (?, ?)', [orderId, charge.id]);
   *   return { events: [PaymentCaptured.create({ aggregateId, data: { orderId } })] };
   * });
   * ```
   */
  commit(work: MysqlCommit | ((tx: Tx) => Promise<MysqlCommit>)): Promise<void>;
}

/** The context that a transactional handler receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface MysqlTransactionalContext<Tx> extends TransactionalContext {
  /** The transaction that also records the message: it is rolled back if the handler throws. */
  readonly tx: Tx;
}

/** The context that a `rejected` function receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface MysqlRejectedContext<Tx> extends RejectedContext {
  /** The transaction that also sets the message DISCARDED: it is rolled back if the function throws. */
  readonly tx: Tx;
}

/** Options of the handlers that {@link mysqlHandlers} creates. @typeParam Tx - the transaction of the database's driver */
export interface MysqlHandlerOptions<E extends HandledDefinition, Tx> {
  /**
   * Ends the work of a message that an operator discards with `mailroom dlq discard --reject`: its writes through `tx` and its events commit in the
   * transaction that sets the message DISCARDED. It may run several times.
   *
   * @default the message can only be discarded without an event
   */
  readonly rejected?:
    | ((event: EventOf<E>, ctx: MysqlRejectedContext<Tx>) => Promise<MysqlCommit>)
    | undefined;
  /** Absorbs events that are older than the last one applied. The definition must declare `sequence`. @default the consumer's `order` */
  readonly order?: LatestOrder | undefined;
}

/** A handler of a consumer whose inbox is in MySQL or MariaDB, made by {@link mysqlHandlers}. */
export interface MysqlHandler<Tx> {
  readonly kind: 'leased' | 'transactional';
  /** The event that it handles. */
  readonly definition: HandledDefinition;
  /** Its function. */
  readonly handle: (
    event: never,
    ctx: MysqlLeasedContext<Tx> & MysqlTransactionalContext<Tx>,
  ) => Promise<unknown>;
  /** Its {@link MysqlHandlerOptions.order}. */
  readonly order?: LatestOrder | undefined;
  /** Its {@link MysqlHandlerOptions.rejected}. */
  readonly rejected?: ((event: never, ctx: MysqlRejectedContext<Tx>) => Promise<MysqlCommit>) | undefined;
}

/** The two kinds of handlers, with the transaction of one database. */
export interface MysqlHandlers<Tx> {
  /**
   * Creates a handler that may have any effect. It runs under a lease that is renewed while it runs. Run side effects with `ctx.once`,
   * and writes and events with `ctx.commit`.
   */
  leased<E extends HandledDefinition>(
    definition: E,
    handle: (event: EventOf<E>, ctx: MysqlLeasedContext<Tx>) => Promise<unknown>,
    options?: MysqlHandlerOptions<E, Tx>,
  ): MysqlHandler<Tx>;
  /**
   * Creates a handler that only reads and writes the database: its writes, its events and the record of the message are one transaction.
   * It needs no lease. It may run several times, but its writes happen once.
   */
  transactional<E extends HandledDefinition>(
    definition: E,
    handle: (event: EventOf<E>, ctx: MysqlTransactionalContext<Tx>) => Promise<MysqlCommit>,
    options?: MysqlHandlerOptions<E, Tx>,
  ): MysqlHandler<Tx>;
}

/**
 * Creates the functions that create handlers of a database: `tx` has the type of its driver.
 *
 * @example
 * ```ts
 * const { leased, transactional } = mysqlHandlers(database);
 * const reserve = transactional(OrderPlaced, async ({ data }, { tx }) => {
 *   await tx.execute('UPDATE stock SET available = available - ? WHERE sku = ?', [data.quantity, data.sku]);
 *   return { events: [StockReserved.create({ aggregateId: data.sku, data })] };
 * });
 * ```
 */
export function mysqlHandlers<Tx>(_database: Database<Tx>): MysqlHandlers<Tx> {
  return {
    leased: (definition, handle, options) => ({ kind: 'leased', definition, handle, ...options }),
    transactional: (definition, handle, options) => ({
      kind: 'transactional',
      definition,
      handle,
      ...options,
    }),
  };
}

/** The same handlers as a consumer with any storage runs them. */
export function anyHandlers<Tx>(
  handlers: readonly MysqlHandler<Tx>[],
): readonly (LeasedHandler | TransactionalHandler)[] {
  return handlers as unknown as readonly (LeasedHandler | TransactionalHandler)[];
}
