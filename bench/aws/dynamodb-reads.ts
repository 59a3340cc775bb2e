import { GET_EACH_REQUEST_MAX } from '../../lambdas/runtime/store/table.ts';
import type { Attributes } from '../../testing/attribute-values.ts';
import type { Store } from '../../testing/memory-store.ts';
import { ValidationException } from '../../testing/validation-exception.ts';
import { readUnits } from './billing.ts';
import type { Metered } from './dynamodb-write.ts';
import { storedBytes } from './ordered-view.ts';
import { known, type Wire } from './wire.ts';

/** Finds a table by its name. */
export type StoreOf = (name: string | undefined) => Store;

/** GetItem. */
export function getItem(input: Wire, storeOf: StoreOf): Metered {
  known('GetItem', input, ['TableName', 'Key', 'ConsistentRead']);
  const { TableName, Key, ConsistentRead } = input;
  const { item, units } = read(storeOf(TableName as string), Key as Attributes, ConsistentRead === true);
  return { answer: { Item: item }, readUnits: units };
}

/** BatchGetItem: each key is billed as a GetItem of it ("DynamoDB read and write operations"). */
export function batchGetItem(input: Wire, storeOf: StoreOf): Metered {
  known('BatchGetItem', input, ['RequestItems']);
  const tables = Object.entries(input.RequestItems as Record<string, Wire>);
  const keys = tables.flatMap(([, { Keys }]) => Keys as Attributes[]);
  if (keys.length < 1 || keys.length > GET_EACH_REQUEST_MAX)
    throw new ValidationException(`${keys.length} keys; a request must have 1 to ${GET_EACH_REQUEST_MAX}`);
  if (new Set(keys.map((key) => JSON.stringify(key))).size < keys.length)
    throw new ValidationException('Provided list of item keys contains duplicates');
  const Responses: Record<string, Attributes[]> = {};
  let units = 0;
  for (const [tableName, request] of tables) {
    known('BatchGetItem', request, ['Keys', 'ConsistentRead']);
    const { Keys, ConsistentRead } = request;
    const found = (Keys as Attributes[]).map((key) => read(storeOf(tableName), key, ConsistentRead === true));
    Responses[tableName] = found.flatMap(({ item }) => (item === undefined ? [] : [item]));
    units += found.reduce((total, each) => total + each.units, 0);
  }
  return { answer: { Responses, UnprocessedKeys: {} }, readUnits: units };
}

function read(store: Store, key: Attributes, isConsistent: boolean) {
  store.assertKeyBytes(key);
  const fault = store.keyFault(key);
  if (fault) throw fault;
  const item = store.get(key);
  return { item, units: readUnits(storedBytes(item), isConsistent ? 'strong' : 'eventual') };
}
