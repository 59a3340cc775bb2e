import {
  BatchExecuteStatementCommand,
  BatchGetItemCommand,
  type BatchStatementResponse,
  DeleteItemCommand,
  DescribeTableCommand,
  type DynamoDBClient,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  type TransactWriteItem,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import { sentOnce } from '../../base/client-settings.ts';
import type { MailroomErrorCode } from '../../base/error-codes.ts';
import { ConditionFailed, errorCode, MailroomError, TransactionCancelled } from '../../base/errors.ts';
import { requireGiven } from '../../base/given-names.ts';
import {
  type EachResult,
  type EachUpdate,
  GET_EACH_REQUEST_MAX,
  type Item,
  type Key,
  type Query,
  type Table,
} from '../table.ts';
import { type AttributeMap, attributeOf, attributesOf, itemOf } from './attributes.ts';
import { type Action, assertEachUpdates, checkedAction, checkedActions } from './table-checks.ts';

/** A separate class: a client with `cacheMiddleware` keeps the middleware of each class, and its owner's are retried. */
class TransactOnceCommand extends TransactWriteItemsCommand {}

/** Dependencies of {@link dynamoTable}. */
export interface DynamoTableDeps {
  /**
   * Your client; its region, endpoint, retries and timeouts are your choice. Its retries do not apply to transactions, each of
   * which is sent once.
   */
  readonly client: DynamoDBClient;
  /** The Mailroom table. */
  readonly tableName: string;
}

/**
 * The table port on DynamoDB.
 *
 * @example
 * ```ts
 * const table = dynamoTable({ client: new DynamoDBClient(), tableName: config.tableName });
 * ```
 */
export function dynamoTable(deps: DynamoTableDeps): Table {
  requireGiven('dynamoTable', deps, 'client', 'tableName');
  const { client, tableName } = deps;
  const get: Table['get'] = async (key, { consistent = false } = {}) => {
    const command = new GetItemCommand({
      TableName: tableName,
      Key: attributesOf({ ...key }),
      ConsistentRead: consistent,
    });
    const { Item } = await client.send(command);
    return Item && itemOf(Item);
  };
  return {
    name: tableName,
    get,
    getEach: dynamoGetEach({ client, tableName, get }),
    query: async (query) => {
      const { Items = [], LastEvaluatedKey } = await client.send(
        new QueryCommand({ TableName: tableName, ...queryInput(query) }),
      );
      const items = Items.map(itemOf);
      return LastEvaluatedKey ? { items, cursor: itemOf(LastEvaluatedKey) } : { items };
    },
    write: async (write) => {
      const action = checkedAction(write);
      return sendWrite(client, requestOf(tableName, action)).catch(throwRefused);
    },
    transact: async (actions, token) => {
      const TransactItems = checkedActions(actions).map((action) => {
        const { kind, request } = requestOf(tableName, action);
        return { [kind]: request };
      });
      // A refused SDK retry would not prove that the try before it wrote nothing.
      const command = sentOnce(new TransactOnceCommand({ TransactItems, ClientRequestToken: token }));
      await client.send(command).catch(throwRefused);
    },
    updateEach: async (updates) => {
      assertEachUpdates(updates);
      if (updates.length === 0) return [];
      const Statements = updates.map((update) => statement(tableName, update));
      const { Responses = [] } = await client.send(new BatchExecuteStatementCommand({ Statements }));
      return Promise.all(updates.map(({ key }, index) => eachResult(get, key, Responses[index])));
    },
    createdAt: async () => {
      const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
      const created = Table?.CreationDateTime;
      if (created) return created.getTime();
      throw new MailroomError(
        'NO_CREATION_TIME',
        `DescribeTable returned no CreationDateTime for table ${tableName}, and the first sweep starts there. DynamoDB always returns one: point the client at an engine that does.`,
      );
    },
  };
}

/** The requests of DynamoDB's own client. */
type Requests = { readonly [K in Action['kind']]: NonNullable<TransactWriteItem[K]> };

/** One request of DynamoDB's own client. */
type Request = {
  readonly [K in Action['kind']]: { readonly kind: K; readonly request: Requests[K] };
}[Action['kind']];

function requestOf(tableName: string, { kind, request }: Action): Request {
  const { ExpressionAttributeValues: values } = request;
  return {
    kind,
    request: {
      ...request,
      ...('Item' in request && { Item: attributesOf(request.Item) }),
      ...('Key' in request && { Key: attributesOf(request.Key) }),
      ...(values && { ExpressionAttributeValues: attributesOf(values) }),
      TableName: request.TableName ?? tableName,
    },
  } as Request;
}

async function sendWrite(client: DynamoDBClient, { kind, request }: Request): Promise<Item | undefined> {
  const returned = {
    ReturnValuesOnConditionCheckFailure: request.ReturnValuesOnConditionCheckFailure ?? 'ALL_OLD',
  };
  switch (kind) {
    case 'Put':
      await client.send(new PutItemCommand({ ...request, ...returned }));
      return undefined;
    case 'Update': {
      const command = new UpdateItemCommand({ ...request, ...returned, ReturnValues: 'ALL_NEW' });
      const { Attributes } = await client.send(command);
      return Attributes && itemOf(Attributes);
    }
    case 'Delete':
      await client.send(new DeleteItemCommand({ ...request, ...returned }));
      return undefined;
    case 'ConditionCheck':
      throw new MailroomError('BAD_WRITE', 'A ConditionCheck writes nothing; it belongs in a transaction.');
  }
}

async function eachResult(
  get: Table['get'],
  key: Key,
  response: BatchStatementResponse | undefined,
): Promise<EachResult> {
  if (response === undefined) {
    return {
      ok: false,
      refused: false,
      code: 'NO_ANSWER' satisfies MailroomErrorCode,
      message: `DynamoDB returned no result for the update of ${key.PK}.`,
    };
  }
  if (response.Error === undefined) return { ok: true };
  const { Code = 'UNKNOWN', Message = '', Item } = response.Error;
  if (Code !== 'ConditionalCheckFailed') return { ok: false, refused: false, code: Code, message: Message };
  // Not every result of a refused statement includes the row, although the request asks for it; read it then.
  const item = Item ? itemOf(Item) : await get(key, { consistent: true });
  return { ok: false, refused: true, ...(item && { item }) };
}

function queryInput({ pk, skPrefix, where, containing, consistent, limit, cursor }: Query) {
  const names: Record<string, string> = { '#pk': 'PK' };
  const values: Item = { ':pk': pk };
  let key = '#pk = :pk';
  if (skPrefix) {
    names['#sk'] = 'SK';
    values[':sk'] = skPrefix;
    key += ' AND begins_with(#sk, :sk)';
  }
  const filters = Object.entries(where ?? {}).map(([name, value], index) => {
    if (value === undefined) throw new MailroomError('BAD_QUERY', `"where" compares ${name} with undefined.`);
    names[`#w${index}`] = name;
    values[`:w${index}`] = value;
    return `#w${index} = :w${index}`;
  });
  Object.entries(containing ?? {}).forEach(([name, text], index) => {
    names[`#c${index}`] = name;
    values[`:c${index}`] = text;
    values[':text'] = 'S';
    filters.push(`(contains(#c${index}, :c${index}) OR NOT attribute_type(#c${index}, :text))`);
  });
  return {
    KeyConditionExpression: key,
    FilterExpression: filters.length > 0 ? filters.join(' AND ') : undefined,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: attributesOf(values),
    ConsistentRead: consistent ?? false,
    Limit: limit,
    ExclusiveStartKey: cursor && attributesOf(cursor),
  };
}

/**
 * Makes one PartiQL statement. All names are quoted, so that reserved words (`status`) are accepted, and all values are
 * parameters. An UPDATE whose WHERE matches no item, for example because none exists, fails its condition.
 */
function statement(tableName: string, { key, set, remove = [], when }: EachUpdate) {
  const sets = Object.keys(set).map((name) => ` SET "${name}"=?`);
  const removes = remove.map((name) => ` REMOVE "${name}"`);
  const conditions = Object.keys(when).map((name) => ` AND "${name}"=?`);
  return {
    Statement: `UPDATE "${tableName}"${sets.join('')}${removes.join('')} WHERE "PK"=? AND "SK"=?${conditions.join('')}`,
    Parameters: [...Object.values(set), key.PK, key.SK, ...Object.values(when)].map(attributeOf),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}

/** The two refusals in DynamoDB's model. */
interface ServiceRefusal {
  readonly Item?: AttributeMap;
  readonly CancellationReasons?: readonly {
    readonly Code?: string;
    readonly Message?: string;
    readonly Item?: AttributeMap;
  }[];
}

/** Converts a refusal to the error that the port promises; rethrows any other error. */
function throwRefused(error: unknown): never {
  const { Item, CancellationReasons = [] } = (error ?? {}) as ServiceRefusal;
  switch (errorCode(error)) {
    case 'ConditionalCheckFailedException':
      throw new ConditionFailed(Item && itemOf(Item), { cause: error });
    case 'TransactionCanceledException': {
      const reasons = CancellationReasons.map(({ Code = 'None', Message, Item }) => ({
        code: Code,
        ...(Message && { message: Message }),
        ...(Item && { item: itemOf(Item) }),
      }));
      throw new TransactionCancelled(reasons, { cause: error });
    }
    default:
      throw error;
  }
}

/** Dependencies of {@link dynamoGetEach}. */
interface GetEachDeps {
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly get: Table['get'];
}

/**
 * `getEach` on DynamoDB. BatchGetItem refuses a repeated key, and leaves keys unread when a response reaches 16 MB or the table
 * throttles. Those are read one after another by `get`, so that the client's retries and backoff apply to each: BatchGetItem
 * itself succeeds as long as any key was read, and is not retried.
 *
 * @example
 * ```ts
 * const getEach = dynamoGetEach({ client, tableName, get });
 * const [first, second] = await getEach([firstKey, secondKey]);
 * ```
 */
function dynamoGetEach({ client, tableName, get }: GetEachDeps): Table['getEach'] {
  return async (keys, { consistent = false } = {}) => {
    const distinct = [...new Map(keys.map((key) => [idOf(key), key])).values()];
    const found = new Map<string, Item>();
    for (let from = 0; from < distinct.length; from += GET_EACH_REQUEST_MAX) {
      const Keys = distinct
        .slice(from, from + GET_EACH_REQUEST_MAX)
        .map(({ PK, SK }) => attributesOf({ PK, SK }));
      const { Responses, UnprocessedKeys } = await client.send(
        new BatchGetItemCommand({ RequestItems: { [tableName]: { Keys, ConsistentRead: consistent } } }),
      );
      for (const attributes of Responses?.[tableName] ?? []) {
        const item = itemOf(attributes);
        found.set(idOf(item), item);
      }
      for (const unread of UnprocessedKeys?.[tableName]?.Keys ?? []) {
        const key = itemOf(unread) as Item & Key;
        const item = await get({ PK: key.PK, SK: key.SK }, { consistent });
        if (item !== undefined) found.set(idOf(key), item);
      }
    }
    return keys.map((key) => found.get(idOf(key)));
  };
}

function idOf({ PK, SK }: Item | Key): string {
  return JSON.stringify([PK, SK]);
}
