import { BatchGetItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { attributesOf, itemOf } from './attributes.ts';
import { GET_EACH_REQUEST_MAX, type Item, type Key, type Table } from './table.ts';

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
export function dynamoGetEach({ client, tableName, get }: GetEachDeps): Table['getEach'] {
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
