import type { LatestOrder } from '../base/order.ts';
import type {
  HandlerOptions,
  LeasedContext,
  LeasedHandler,
  RejectedContext,
  TransactionalContext,
  TransactionalHandler,
} from '../consume/handler.ts';
import type { EventDraft } from '../events/event.ts';
import type { EventOf, HandledDefinition } from '../events/external-event.ts';

/** The events of a handler's transaction. Its own writes go through `tx`. */
export interface DatabaseCommit {
  /** Published if and only if the transaction commits. @default none */
  readonly events?: readonly EventDraft[] | undefined;
}

/** The context that a leased handler receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface DatabaseLeasedContext<Tx> extends Omit<LeasedContext, 'commit'> {
  /**
   * Runs your writes, writes the events that they return and sets this message PROCESSED, in one transaction. The events inherit
   * correlation and causation. Call it at most once per message, as the last thing that the handler does. The transaction holds the
   * message's row, so call nothing outside the database in it.
   *
   * @param work - runs inside the transaction; or the events, if there is nothing else to write
   * @throws `FENCE_LOST` if this worker has lost the message: nothing was written
   * @throws `NOT_AWAITED` if an effect is under way, or has failed and was neither awaited nor caught: nothing was written, and the message
   * fails, whatever the handler does next
   * @throws `TRANSACTION_ENDED` if your writes ended the transaction, on MySQL: they caught the error of a deadlock, or ran a statement that commits
   * @throws the error of your writes: nothing was written and the attempt fails
   *
   * @example
   * ```ts
   * await ctx.commit(async (tx) => {
   *   await tx.insert(payments).values({ orderId, chargeId: charge.id });
   *   return { events: [PaymentCaptured.create({ aggregateId, data: { orderId } })] };
   * });
   * ```
   */
  commit(work: DatabaseCommit | ((tx: Tx) => Promise<DatabaseCommit>)): Promise<void>;
}

/** The context that a transactional handler receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface DatabaseTransactionalContext<Tx> extends TransactionalContext {
  /** The transaction that also records the message: it is rolled back if the handler throws. */
  readonly tx: Tx;
}

/** The context that a `rejected` function receives with its event. @typeParam Tx - the transaction of the database's driver */
export interface DatabaseRejectedContext<Tx> extends RejectedContext {
  /** The transaction that also sets the message DISCARDED: it is rolled back if the function throws. */
  readonly tx: Tx;
}

/** Options of the handlers that {@link postgresHandlers} or {@link mysqlHandlers} creates. @typeParam Tx - the transaction of the database's driver */
export interface DatabaseHandlerOptions<E extends HandledDefinition, Tx> {
  /**
   * Ends the work of a message that an operator discards with `mailroom dlq discard --reject`: its writes through `tx` and its events commit in the
   * transaction that sets the message DISCARDED. It may run several times.
   *
   * @default the message can only be discarded without an event
   */
  readonly rejected?:
    | ((event: EventOf<E>, ctx: DatabaseRejectedContext<Tx>) => Promise<DatabaseCommit>)
    | undefined;
  /** Absorbs events that are older than the last one applied. The definition must declare `sequence`. @default the consumer's `order` */
  readonly order?: LatestOrder | undefined;
  /** As {@link HandlerOptions.expiresInMs}. @default a message is processed however long it has waited */
  readonly expiresInMs?: number | undefined;
}

/** A handler of a consumer whose inbox is in a database, made by {@link postgresHandlers} or {@link mysqlHandlers}. */
export interface DatabaseHandler<Tx> {
  readonly kind: 'leased' | 'transactional';
  /** The event that it handles. */
  readonly definition: HandledDefinition;
  /** Its function. */
  readonly handle: (
    event: never,
    ctx: DatabaseLeasedContext<Tx> & DatabaseTransactionalContext<Tx>,
  ) => Promise<unknown>;
  /** Its {@link DatabaseHandlerOptions.order}. */
  readonly order?: LatestOrder | undefined;
  /** Its {@link DatabaseHandlerOptions.rejected}. */
  readonly rejected?:
    | ((event: never, ctx: DatabaseRejectedContext<Tx>) => Promise<DatabaseCommit>)
    | undefined;
  /** Its {@link DatabaseHandlerOptions.expiresInMs}. */
  readonly expiresInMs?: number | undefined;
}

/** The two kinds of handlers, with the transaction of one database. */
export interface DatabaseHandlers<Tx> {
  /**
   * Creates a handler that may have any effect. It runs under a lease that is renewed while it runs. Run side effects with `ctx.once`,
   * and writes and events with `ctx.commit`.
   */
  leased<E extends HandledDefinition>(
    definition: E,
    handle: (event: EventOf<E>, ctx: DatabaseLeasedContext<Tx>) => Promise<unknown>,
    options?: DatabaseHandlerOptions<E, Tx>,
  ): DatabaseHandler<Tx>;
  /**
   * Creates a handler that only reads and writes the database: its writes, its events and the record of the message are one transaction.
   * It needs no lease. It may run several times, but its writes happen once.
   */
  transactional<E extends HandledDefinition>(
    definition: E,
    handle: (event: EventOf<E>, ctx: DatabaseTransactionalContext<Tx>) => Promise<DatabaseCommit>,
    options?: DatabaseHandlerOptions<E, Tx>,
  ): DatabaseHandler<Tx>;
}

/** Creates the functions that create handlers, whatever the driver. */
export function databaseHandlers<Tx>(): DatabaseHandlers<Tx> {
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
  handlers: readonly DatabaseHandler<Tx>[],
): readonly (LeasedHandler | TransactionalHandler)[] {
  return handlers as unknown as readonly (LeasedHandler | TransactionalHandler)[];
}
