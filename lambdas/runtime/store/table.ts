import type { NativeAttributeValue, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/** One DynamoDB item as plain JavaScript values (the shape of the document client). */
export type Item = Record<string, NativeAttributeValue>;

/**
 * A value that DynamoDB stores as it is, in the shape of the document client. The compiler refuses a `Date`, a promise, a function,
 * and whatever else has the symbols of one; any other mistake is refused when it is written (`BAD_ITEM`).
 */
export type Storable =
  | string
  | number
  | bigint
  | boolean
  | null
  | undefined
  | Uint8Array
  | NumberValue
  | readonly Storable[]
  | ReadonlySet<string | number | bigint | NumberValue | Uint8Array>
  | ReadonlyMap<string, Storable>
  | { readonly [name: string]: Storable }
  // An interface, which has no index signature.
  | (object & {
      readonly [Symbol.iterator]?: never;
      readonly [Symbol.toPrimitive]?: never;
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.hasInstance]?: never;
    });

/** An item, a key, or the values of an expression, to be written. Spread a row whose type is an interface: `{ ...row }`. */
export type StorableItem = { readonly [name: string]: Storable };

/** The primary key of an item of the Mailroom table. */
export interface Key {
  /** The partition key. */
  readonly PK: string;
  /** The sort key. */
  readonly SK: string;
}

/** What the condition or the update of a write is made of, and where it goes. */
export interface Expression {
  /** What each `#name` of the expressions stands for. @default none */
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  /** What each `:value` of the expressions stands for. @default none */
  readonly ExpressionAttributeValues?: StorableItem | undefined;
  /** `ALL_OLD` hands the row as it stood to whoever reads the refusal. */
  readonly ReturnValuesOnConditionCheckFailure?: 'ALL_OLD' | 'NONE' | undefined;
  /** @default the Mailroom table */
  readonly TableName?: string | undefined;
}

/** Write a whole item, as in the document client's `TransactWriteCommand`. */
export interface Put extends Expression {
  /** The whole item, its key too. */
  readonly Item: StorableItem | undefined;
  /** What must be true of the item as it stands, e.g. `attribute_not_exists(PK)`. @default nothing: it is replaced */
  readonly ConditionExpression?: string | undefined;
}

/** Change an item in place, as in the document client's `TransactWriteCommand`. */
export interface Update extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** What changes, e.g. `SET available = available - :one`. */
  readonly UpdateExpression: string | undefined;
  /** What must be true of the item as it stands. @default nothing */
  readonly ConditionExpression?: string | undefined;
}

/** Delete an item, as in the document client's `TransactWriteCommand`. */
export interface Delete extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** What must be true of the item as it stands. @default nothing */
  readonly ConditionExpression?: string | undefined;
}

/** Test an item without writing it, as in the document client's `TransactWriteCommand`. */
export interface ConditionCheck extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** What must be true of the item, or the whole transaction is refused. */
  readonly ConditionExpression: string | undefined;
}

/**
 * One write: exactly one of the members is set. The shape is that of the document client's
 * `TransactWriteCommand`, so what ElectroDB or dynamodb-toolbox produces fits as it is.
 */
export interface Write {
  /** A whole item to write. */
  readonly Put?: Put | undefined;
  /** A change of an item. */
  readonly Update?: Update | undefined;
  /** An item to delete. */
  readonly Delete?: Delete | undefined;
}

/** One action of a transaction: a {@link Write}, or a condition on a row that is not written. */
export interface TransactAction extends Write {
  /** A condition on an item that is not written. */
  readonly ConditionCheck?: ConditionCheck | undefined;
}

/** A read of one partition, a page at a time, in the order of the sort key. */
export interface Query {
  /** The partition key. */
  readonly pk: string;
  /** Only sort keys that begin with this. @default all */
  readonly skPrefix?: string | undefined;
  /** Only items whose attributes have these values; tested after the read, as DynamoDB's filters are. */
  readonly where?: Item | undefined;
  /** @default false: eventually consistent, at half the cost */
  readonly consistent?: boolean | undefined;
  /** At most this many items are read for a page (before `where`). @default up to 1 MB, DynamoDB's page */
  readonly limit?: number | undefined;
  /** The cursor of the page before. */
  readonly cursor?: Item | undefined;
}

/** One page of a {@link Query}. */
export interface Page {
  /** What was read, in the order of the sort key. */
  readonly items: Item[];
  /** Present while there may be more to read. */
  readonly cursor?: Item | undefined;
}

/** One conditional update of a batch: only equalities, so that it fits a PartiQL statement. */
export interface EachUpdate {
  /** The key of the item. */
  readonly key: Key;
  /** Attributes to set. At least one. */
  readonly set: StorableItem;
  /** Attributes to remove. */
  readonly remove?: readonly string[] | undefined;
  /** The item must exist and these attributes must have these values. */
  readonly when: StorableItem;
}

/** What became of one {@link EachUpdate}. */
export type EachResult =
  | { readonly ok: true }
  /** The condition was not met; `item` is the row as it stood, absent when there was none. */
  | { readonly ok: false; readonly refused: true; readonly item?: Item | undefined }
  /** It failed for another reason (a throttle, a conflict) and may be tried again. */
  | { readonly ok: false; readonly refused: false; readonly code: string; readonly message: string };

/** The most updates that one call of {@link Table.updateEach} takes: BatchExecuteStatement's own limit. */
export const UPDATE_EACH_MAX = 25;

/** The most actions of one transaction (TransactWriteItems, DynamoDB service quotas). */
export const TRANSACTION_ACTIONS_MAX = 100;

/** The most bytes of all items of one transaction: 4 MB (DynamoDB service quotas). */
export const TRANSACTION_BYTES_MAX = 4_000_000;

/** The most bytes of one item: 400 KB (DynamoDB service quotas). */
export const ITEM_BYTES_MAX = 400 * 1024;

/**
 * The table port: every call that outbox, relay, inbox and consumer make to DynamoDB is one of these six.
 * `dynamoTable` is the real one, `memoryTable` (in `cdk-mailroom/testing`) the one for tests; both pass the same
 * suite.
 */
export interface Table {
  /** The name of the Mailroom table, the default of every `TableName`. */
  readonly name: string;

  /** Reads one item; `undefined` when there is none. Eventually consistent unless asked. */
  get(key: Key, options?: { readonly consistent?: boolean }): Promise<Item | undefined>;

  /** Reads one page of a partition. */
  query(query: Query): Promise<Page>;

  /**
   * Makes one write. An `Update` returns the item as it stands after it; `Put` and `Delete` return nothing.
   *
   * The client's own retries apply, so the write that is refused may be a retry, and what refuses it may be the row that the
   * try before it wrote. Give a condition that this matters to a token of the call, and look for it in the row of the refusal.
   *
   * @throws {@link ConditionFailed} when its condition is not met, with the row as it stood
   * @throws `BAD_ITEM` when it has a value that DynamoDB does not store; nothing was sent
   */
  write(write: Write): Promise<Item | undefined>;

  /**
   * Makes all writes or none. Each call sends one request, whatever retries the client is configured to make, so a refusal says
   * that nothing was written by this call. When there was no answer, call again with the same token; until that succeeds, the
   * first call may still have happened.
   *
   * @param token - a call with the same token and actions within 10 minutes of one that succeeded changes
   * nothing and succeeds (DynamoDB's `ClientRequestToken`, at most 36 characters)
   * @throws {@link TransactionCancelled} when any action is refused, with a reason for each
   * @throws `BAD_ITEM` when it has a value that DynamoDB does not store; nothing was sent
   */
  transact(actions: readonly TransactAction[], token?: string): Promise<void>;

  /**
   * Makes up to {@link UPDATE_EACH_MAX} independent conditional updates in one call and answers for each, in
   * order. It never creates an item.
   *
   * @throws when the request as a whole failed; any of the updates may then have been applied or not
   */
  updateEach(updates: readonly EachUpdate[]): Promise<EachResult[]>;

  /** When the table was created, epoch milliseconds. */
  createdAt(): Promise<number>;
}
