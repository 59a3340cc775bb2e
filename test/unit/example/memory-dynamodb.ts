import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import {
  type Item,
  isConditionFailed,
  isTransactionCancelled,
  type Key,
  type Table,
  type TransactAction,
} from '../../../lambdas/runtime/index.ts';

type Wire = Record<string, unknown>;

/**
 * A real DynamoDB client whose calls end in an in-memory table instead of the network, so that code which makes
 * its own SDK calls (Powertools, the bank's ledger) is tested as it runs.
 */
export function memoryDynamoClient(table: Table): DynamoDBClient {
  const handle = async (request: { headers: Record<string, string>; body: Uint8Array }) => {
    const operation = request.headers['x-amz-target']?.split('.')[1] ?? '';
    try {
      return answer(
        200,
        await call(table, operation, JSON.parse(new TextDecoder().decode(request.body)) as Wire),
      );
    } catch (error) {
      return answer(400, failure(error));
    }
  };
  return new DynamoDBClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    requestHandler: { handle } as never,
    maxAttempts: 1,
  });
}

function answer(statusCode: number, body: Wire) {
  const headers = { 'content-type': 'application/x-amz-json-1.0' };
  return { response: { statusCode, headers, body: Buffer.from(JSON.stringify(body)) } };
}

async function call(table: Table, operation: string, input: Wire): Promise<Wire> {
  switch (operation) {
    case 'GetItem': {
      const item = await table.get(plain(input.Key) as unknown as Key, { consistent: true });
      return item === undefined ? {} : { Item: wire(item) };
    }
    case 'PutItem':
      await table.write({ Put: action(input) as never });
      return {};
    case 'UpdateItem': {
      const item = await table.write({ Update: action(input) as never });
      return input.ReturnValues === undefined || item === undefined ? {} : { Attributes: wire(item) };
    }
    case 'DeleteItem':
      await table.write({ Delete: action(input) as never });
      return {};
    case 'TransactWriteItems': {
      const actions = (input.TransactItems as Record<string, Wire>[]).map((each) =>
        Object.fromEntries(Object.entries(each).map(([kind, request]) => [kind, action(request)])),
      );
      await table.transact(actions as TransactAction[]);
      return {};
    }
    default:
      throw new Error(`${operation} is not known here`);
  }
}

function action({ Item, Key, ExpressionAttributeValues, ReturnValues: _, ...rest }: Wire): Wire {
  return {
    ...rest,
    ...(Item === undefined ? {} : { Item: plain(Item) }),
    ...(Key === undefined ? {} : { Key: plain(Key) }),
    ...(ExpressionAttributeValues === undefined
      ? {}
      : { ExpressionAttributeValues: plain(ExpressionAttributeValues) }),
  };
}

function failure(error: unknown): Wire {
  if (isConditionFailed(error)) {
    return {
      __type: 'com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException',
      message: 'The conditional request failed',
      ...(error.item === undefined ? {} : { Item: wire(error.item) }),
    };
  }
  if (isTransactionCancelled(error)) {
    return {
      __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
      Message: error.message,
      CancellationReasons: error.reasons.map(({ code }) => ({ Code: code })),
    };
  }
  return { __type: 'com.amazon.coral.validate#ValidationException', message: String(error) };
}

const plain = (item: unknown): Item => unmarshall(item as never);
const wire = (item: Item): Wire => marshall(item) as Wire;
