import {
  type AttributeValue,
  BatchExecuteStatementCommand,
  type BatchStatementResponse,
  DescribeTableCommand,
  type DynamoDBClient,
} from '@aws-sdk/client-dynamodb';
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { convertToAttr, unmarshall } from '@aws-sdk/util-dynamodb';
import { sentOnce } from '../client-settings.ts';
import { ConditionFailed, errorCode, MailroomError, TransactionCancelled } from '../errors.ts';
import { READ_NUMBERS } from './item-numbers.ts';
import type { EachResult, EachUpdate, Item, Key, Query, Table } from './table.ts';
import { type Action, assertEachUpdates, checkedAction, checkedActions } from './table-checks.ts';

/** The document client's options for writing values. */
const WRITE_VALUES = { removeUndefinedValues: true };

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
export function dynamoTable({ client, tableName }: DynamoTableDeps): Table {
  const documents = DynamoDBDocumentClient.from(client, {
    marshallOptions: { ...WRITE_VALUES },
    unmarshallOptions: { ...READ_NUMBERS }, // a copy, because the document client modifies it
  });
  const get: Table['get'] = async (key, { consistent = false } = {}) => {
    const command = new GetCommand({ TableName: tableName, Key: { ...key }, ConsistentRead: consistent });
    return (await documents.send(command)).Item;
  };
  return {
    name: tableName,
    get,
    query: async (query) => {
      const answer = await documents.send(new QueryCommand({ TableName: tableName, ...queryInput(query) }));
      const items = answer.Items ?? [];
      return answer.LastEvaluatedKey ? { items, cursor: answer.LastEvaluatedKey } : { items };
    },
    write: async (write) => {
      const action = checkedAction(write);
      return sendWrite(documents, tableName, action).catch(throwRefused);
    },
    transact: async (actions, token) => {
      const TransactItems = checkedActions(actions).map(({ kind, request }) => ({
        [kind]: { ...request, TableName: request.TableName ?? tableName },
      }));
      // A refused SDK retry would not prove that the try before it wrote nothing.
      const command = sentOnce(new TransactWriteCommand({ TransactItems, ClientRequestToken: token }));
      await documents.send(command).catch(throwRefused);
    },
    updateEach: async (updates) => {
      assertEachUpdates(updates);
      if (updates.length === 0) return [];
      const Statements = updates.map((update) => statement(tableName, update));
      // The relay's most frequent call: the document client would search the whole request and response for values.
      const { Responses = [] } = await client.send(new BatchExecuteStatementCommand({ Statements }));
      return Promise.all(updates.map(({ key }, index) => eachResult(get, key, Responses[index])));
    },
    createdAt: async () => {
      const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
      const created = Table?.CreationDateTime;
      if (created) return created.getTime();
      throw new MailroomError(
        'NO_CREATION_TIME',
        `DescribeTable returned no creation time for table ${tableName}.`,
      );
    },
  };
}

async function sendWrite(
  documents: DynamoDBDocumentClient,
  tableName: string,
  { kind, request }: Action,
): Promise<Item | undefined> {
  const input = {
    ...request,
    ReturnValuesOnConditionCheckFailure: request.ReturnValuesOnConditionCheckFailure ?? 'ALL_OLD',
    TableName: request.TableName ?? tableName,
  };
  switch (kind) {
    case 'Put':
      await documents.send(new PutCommand({ ...input, Item: request.Item }));
      return undefined;
    case 'Update': {
      const command = new UpdateCommand({ ...input, Key: request.Key, ReturnValues: 'ALL_NEW' });
      return (await documents.send(command)).Attributes;
    }
    case 'Delete':
      await documents.send(new DeleteCommand({ ...input, Key: request.Key }));
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
      code: 'NoAnswer',
      message: 'DynamoDB returned no result for this update',
    };
  }
  if (response.Error === undefined) return { ok: true };
  const { Code = 'UNKNOWN', Message = '', Item } = response.Error;
  if (Code !== 'ConditionalCheckFailed') return { ok: false, refused: false, code: Code, message: Message };
  // Not every result of a refused statement includes the row, although the request asks for it; read it then.
  const item = Item ? unmarshall(Item, READ_NUMBERS) : await get(key, { consistent: true });
  return { ok: false, refused: true, ...(item && { item }) };
}

function queryInput({ pk, skPrefix, where, consistent, limit, cursor }: Query) {
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
  return {
    KeyConditionExpression: key,
    FilterExpression: filters.length > 0 ? filters.join(' AND ') : undefined,
    ExpressionAttributeNames: names,
    ExpressionAttributeValues: values,
    ConsistentRead: consistent ?? false,
    Limit: limit,
    ExclusiveStartKey: cursor,
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
    Parameters: [...Object.values(set), key.PK, key.SK, ...Object.values(when)].map((value) =>
      convertToAttr(value, WRITE_VALUES),
    ),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD' as const,
  };
}

/** The two refusals in DynamoDB's model; the document client does not unmarshall their items. */
interface ServiceRefusal {
  readonly Item?: Record<string, AttributeValue>;
  readonly CancellationReasons?: readonly {
    readonly Code?: string;
    readonly Message?: string;
    readonly Item?: Record<string, AttributeValue>;
  }[];
}

/** Converts a refusal to the error that the port promises; rethrows any other error. */
function throwRefused(error: unknown): never {
  const { Item, CancellationReasons = [] } = (error ?? {}) as ServiceRefusal;
  switch (errorCode(error)) {
    case 'ConditionalCheckFailedException':
      throw new ConditionFailed(Item && unmarshall(Item, READ_NUMBERS), { cause: error });
    case 'TransactionCanceledException': {
      const reasons = CancellationReasons.map(({ Code = 'None', Message, Item }) => ({
        code: Code,
        ...(Message && { message: Message }),
        ...(Item && { item: unmarshall(Item, READ_NUMBERS) }),
      }));
      throw new TransactionCancelled(reasons, { cause: error });
    }
    default:
      throw error;
  }
}
