import type { NativeAttributeValue, NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/** One DynamoDB item as plain JavaScript values, in the format of the document client. */
export type Item = Record<string, NativeAttributeValue>;

/**
 * A value that DynamoDB stores unchanged, in the format of the document client. The compiler refuses a `Date`, a promise, a
 * function, and any other value with their symbols; other mistakes are refused when the value is written (`BAD_ITEM`).
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
  // An interface, because interfaces have no index signature.
  | (object & {
      readonly [Symbol.iterator]?: never;
      readonly [Symbol.toPrimitive]?: never;
      readonly [Symbol.toStringTag]?: never;
      readonly [Symbol.hasInstance]?: never;
    });

/** An item, a key, or the values of an expression to write. Spread a row whose type is an interface: `{ ...row }`. */
export type StorableItem = { readonly [name: string]: Storable };

/** The primary key of an item of the Mailroom table. */
export interface Key {
  /** The partition key. */
  readonly PK: string;
  /** The sort key. */
  readonly SK: string;
}

/** The parts of a write's condition and update expressions, and its table. */
export interface Expression {
  /** The attribute name for each `#name` in the expressions. @default none */
  readonly ExpressionAttributeNames?: Record<string, string> | undefined;
  /** The value for each `:value` in the expressions. @default none */
  readonly ExpressionAttributeValues?: StorableItem | undefined;
  /** `ALL_OLD` includes the existing row in the refusal. */
  readonly ReturnValuesOnConditionCheckFailure?: 'ALL_OLD' | 'NONE' | undefined;
  /** @default the Mailroom table */
  readonly TableName?: string | undefined;
}

/** Writes a whole item, as in the document client's `TransactWriteCommand`. */
export interface Put extends Expression {
  /** The whole item, including its key. */
  readonly Item: StorableItem | undefined;
  /** A condition on the existing item, e.g. `attribute_not_exists(PK)`. @default none: the item is replaced */
  readonly ConditionExpression?: string | undefined;
}

/** Changes an item in place, as in the document client's `TransactWriteCommand`. */
export interface Update extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** The change, e.g. `SET available = available - :one`. */
  readonly UpdateExpression: string | undefined;
  /** A condition on the existing item. @default none */
  readonly ConditionExpression?: string | undefined;
}

/** Deletes an item, as in the document client's `TransactWriteCommand`. */
export interface Delete extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** A condition on the existing item. @default none */
  readonly ConditionExpression?: string | undefined;
}

/** Tests an item without writing it, as in the document client's `TransactWriteCommand`. */
export interface ConditionCheck extends Expression {
  /** The key of the item. */
  readonly Key: StorableItem | undefined;
  /** A condition on the existing item; if it fails, the whole transaction is refused. */
  readonly ConditionExpression: string | undefined;
}

/**
 * One write: exactly one of the members is set. The format is that of the document client's `TransactWriteCommand`, so you can
 * pass what ElectroDB or dynamodb-toolbox produces.
 */
export interface Write {
  /** Writes a whole item. */
  readonly Put?: Put | undefined;
  /** Changes an item. */
  readonly Update?: Update | undefined;
  /** Deletes an item. */
  readonly Delete?: Delete | undefined;
}

/** One action of a transaction: a {@link Write}, or a condition on a row that is not written. */
export interface TransactAction extends Write {
  /** A condition on an item that is not written. */
  readonly ConditionCheck?: ConditionCheck | undefined;
}

/** A read of one partition, one page at a time, in sort-key order. */
export interface Query {
  /** The partition key. */
  readonly pk: string;
  /** Only sort keys that begin with this prefix. @default all */
  readonly skPrefix?: string | undefined;
  /** Only items whose attributes have these values; applied after the read, as DynamoDB's filters are. */
  readonly where?: Item | undefined;
  /**
   * Only items whose attributes contain these texts, applied as `where` is. An item whose attribute is missing or not text, e.g. because it is
   * compressed, is returned too. @default all
   */
  readonly containing?: Readonly<Record<string, string>> | undefined;
  /** @default false: eventually consistent, at half the cost */
  readonly consistent?: boolean | undefined;
  /** The maximum number of items read for a page (before `where`). @default up to 1 MB, DynamoDB's page size */
  readonly limit?: number | undefined;
  /** The cursor of the previous page. */
  readonly cursor?: Item | undefined;
}

/** One page of a {@link Query}. */
export interface Page {
  /** The items of the page, in sort-key order. */
  readonly items: Item[];
  /** Present while there may be more to read. */
  readonly cursor?: Item | undefined;
}

/** One conditional update of a batch. It supports only equality conditions, so that it fits a PartiQL statement. */
export interface EachUpdate {
  /** The key of the item. */
  readonly key: Key;
  /** The attributes to set; at least one. */
  readonly set: StorableItem;
  /** The attributes to remove. */
  readonly remove?: readonly string[] | undefined;
  /** The item must exist and these attributes must have these values. */
  readonly when: StorableItem;
}

/** The result of one {@link EachUpdate}. */
export type EachResult =
  | { readonly ok: true }
  /** The condition failed; `item` is the existing row, absent if none exists. */
  | { readonly ok: false; readonly refused: true; readonly item?: Item | undefined }
  /** It failed for another reason (throttling, a conflict) and can be retried. */
  | { readonly ok: false; readonly refused: false; readonly code: string; readonly message: string };

/** The maximum number of updates in one call of {@link Table.updateEach}: BatchExecuteStatement's limit. */
export const UPDATE_EACH_MAX = 25;

/** The maximum number of keys in one request of {@link Table.getEach}: BatchGetItem's limit. */
export const GET_EACH_REQUEST_MAX = 100;

/** The maximum number of actions in one transaction (TransactWriteItems, DynamoDB service quotas). */
export const TRANSACTION_ACTIONS_MAX = 100;

/** The maximum total size of the items of one transaction, bytes: 4 MB (DynamoDB service quotas). */
export const TRANSACTION_BYTES_MAX = 4_000_000;

/** The maximum size of one item, bytes: 400 KB (DynamoDB service quotas). */
export const ITEM_BYTES_MAX = 400 * 1024;

/**
 * The table port: outbox, relay, inbox and consumer make only these seven calls to DynamoDB. `dynamoTable` implements it on DynamoDB,
 * `memoryTable` (in `cdk-mailroom/testing`) in memory; both pass the same test suite.
 */
export interface Table {
  /** The name of the Mailroom table, the default of every `TableName`. */
  readonly name: string;

  /** Reads one item; `undefined` if it does not exist. Eventually consistent by default. */
  get(key: Key, options?: { readonly consistent?: boolean }): Promise<Item | undefined>;

  /**
   * Reads any number of items in requests of up to {@link GET_EACH_REQUEST_MAX} keys, one after another, and returns an item or
   * `undefined` for each key, in order. Eventually consistent by default; the items are not read at one moment. It holds all items in
   * memory, up to 400 KB each.
   *
   * @throws if any item could not be read
   */
  getEach(keys: readonly Key[], options?: { readonly consistent?: boolean }): Promise<(Item | undefined)[]>;

  /** Reads one page of a partition. */
  query(query: Query): Promise<Page>;

  /**
   * Makes one write. An `Update` returns the item after the update; `Put` and `Delete` return nothing.
   *
   * The client's own retries apply, so the refused write may be a retry, refused because of the row that the first try wrote. If
   * this matters, include a token of the call in the row, and look for it in the row of the refusal.
   *
   * @throws {@link ConditionFailed} if its condition fails, with the existing row
   * @throws `BAD_ITEM` if it contains a value that DynamoDB cannot store; nothing was sent
   */
  write(write: Write): Promise<Item | undefined>;

  /**
   * Makes all writes or none. Each call sends one request, whatever retries the client is configured with, so a refusal means that
   * this call wrote nothing. If there was no response, call again with the same token; until that succeeds, the first call may
   * still take effect.
   *
   * @param token - if a call with the same token and actions succeeded within the last 10 minutes, the call changes nothing and
   * succeeds (DynamoDB's `ClientRequestToken`, at most 36 characters)
   * @throws {@link TransactionCancelled} if any action is refused, with a reason for each
   * @throws `BAD_ITEM` if it contains a value that DynamoDB cannot store; nothing was sent
   */
  transact(actions: readonly TransactAction[], token?: string): Promise<void>;

  /**
   * Makes up to {@link UPDATE_EACH_MAX} independent conditional updates in one call and returns a result for each, in order. It
   * never creates an item.
   *
   * @throws if the request as a whole failed; any of the updates may then have been applied or not
   */
  updateEach(updates: readonly EachUpdate[]): Promise<EachResult[]>;

  /** Returns the creation time of the table, epoch milliseconds. */
  createdAt(): Promise<number>;
}

/**
 * Reads a partition page by page.
 *
 * @param from - the cursor at which to start @default the beginning
 *
 * @example
 * ```ts
 * for await (const { items } of pagesOf(table, { pk: 'ORDER#7' })) print(items);
 * ```
 */
export async function* pagesOf(
  table: Pick<Table, 'query'>,
  query: Omit<Query, 'cursor'>,
  from?: Item,
): AsyncGenerator<Page> {
  let cursor = from;
  do {
    const page = await table.query({ ...query, cursor });
    yield page;
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/**
 * Converts an {@link EachUpdate} to an action of a transaction or a single write: the same update under the same condition.
 *
 * @example
 * ```ts
 * updateAction({ key, set: { status: 'PENDING' }, remove: ['deadAt'], when: { status: 'DEAD' } });
 * // { Update: { UpdateExpression: 'SET #status = :status REMOVE #deadAt', ConditionExpression: '#status = :was_status', … } }
 * ```
 */
export function updateAction({ key, set, remove = [], when }: EachUpdate): { readonly Update: Update } {
  const names = [...Object.keys(set), ...remove, ...Object.keys(when)];
  const sets = Object.keys(set).map((name) => `#${name} = :${name}`);
  const removes = remove.map((name) => `#${name}`);
  const conditions = Object.keys(when).map((name) => `#${name} = :was_${name}`);
  return {
    Update: {
      Key: { ...key },
      UpdateExpression: [
        `SET ${sets.join(', ')}`,
        ...(removes.length === 0 ? [] : [`REMOVE ${removes.join(', ')}`]),
      ].join(' '),
      ConditionExpression: conditions.join(' AND ') || 'attribute_exists(PK)',
      ExpressionAttributeNames: Object.fromEntries(names.map((name) => [`#${name}`, name])),
      ExpressionAttributeValues: {
        ...Object.fromEntries(Object.entries(set).map(([name, value]) => [`:${name}`, value])),
        ...Object.fromEntries(Object.entries(when).map(([name, value]) => [`:was_${name}`, value])),
      },
    },
  };
}
