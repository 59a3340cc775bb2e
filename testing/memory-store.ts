import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { marshall, type NativeAttributeValue, unmarshall } from '@aws-sdk/util-dynamodb';
import { READ_NUMBERS } from '../lambdas/runtime/store/dynamo/attributes.ts';
import type { Item } from '../lambdas/runtime/store/table.ts';
import { type Attributes, byteOrder, typeOf } from './attribute-values.ts';
import { ValidationException } from './validation-exception.ts';

/** The maximum lengths of a partition key and a sort key, in bytes (DynamoDB service quotas). */
const KEY_BYTES_MAX = { partition: 2_048, sort: 1_024 };

/** The names of a table's key attributes: the partition key and, if there is one, the sort key. */
export type KeyNames = readonly [partition: string, sort?: string];

/** The contents of one in-memory table. Items go in and out by reference: copy one before you change it. */
export interface Store {
  readonly tableName: string;
  readonly keyNames: readonly string[];
  /** A unique text for a key. */
  id(key: Attributes): string;
  get(key: Attributes): Attributes | undefined;
  put(item: Attributes): void;
  delete(key: Attributes): void;
  /** The items of one partition, in the order of their sort keys. */
  partition(value: string): Attributes[];
  all(): Attributes[];
  keyOf(item: Attributes): Attributes;
  /** The violation of the table's schema by a key, if any: a part is missing, has the wrong type, or is not part of the key. */
  keyFault(key: Attributes): ValidationException | undefined;
  /** The violation of the table's schema by an item's key, if any: a part is missing or has the wrong type. */
  itemFault(item: Attributes): ValidationException | undefined;
  /** @throws ValidationException if a part of the key is empty or too long */
  assertKeyBytes(key: Attributes): void;
}

/**
 * Marshals an item with the same options as the table on DynamoDB.
 *
 * @throws for values that the SDK does not send either: an empty set, NaN, an instance of a class
 */
export function toAttributes(item: Item | undefined): Attributes {
  return own(marshall(item ?? {}, { removeUndefinedValues: true }));
}

/** Unmarshals a stored item into a copy. */
export function toItem(attributes: Attributes): Item {
  return unmarshall(own(attributes), READ_NUMBERS) as Record<string, NativeAttributeValue>;
}

/** Immutable attributes; everything else is copied by marshalling. */
function own(attributes: Attributes): Attributes {
  return Object.values(attributes).some(hasBytes) ? structuredClone(attributes) : attributes;
}

function hasBytes(value: AttributeValue): boolean {
  if (value.M !== undefined) return Object.values(value.M).some(hasBytes);
  return value.B !== undefined || value.BS !== undefined || (value.L?.some(hasBytes) ?? false);
}

/** Creates an empty store. Keys of the Mailroom table are strings; those of other tables are strings, numbers or binaries. */
export function createStore(
  tableName: string,
  [partitionName, sortName]: KeyNames,
  textKeys: boolean,
): Store {
  const partitions = new Map<string, Map<string, Attributes>>();
  const keyNames = sortName === undefined ? [partitionName] : [partitionName, sortName];

  function keyOf(item: Attributes): Attributes {
    return Object.fromEntries(keyNames.flatMap((name) => (item[name] ? [[name, item[name]]] : [])));
  }

  function fits(value: AttributeValue): boolean {
    return (textKeys ? ['S'] : ['S', 'N', 'B']).includes(typeOf(value));
  }

  return {
    tableName,
    keyNames,
    keyOf,
    id: (key) => JSON.stringify(keyNames.map((name) => key[name])),
    get: (key) => partitions.get(part(key, partitionName))?.get(part(key, sortName)),
    put: (item) => {
      const partition = partitions.get(part(item, partitionName)) ?? new Map<string, Attributes>();
      partitions.set(part(item, partitionName), partition);
      partition.set(part(item, sortName), item);
    },
    delete: (key) => {
      const partition = partitions.get(part(key, partitionName));
      partition?.delete(part(key, sortName));
      if (partition?.size === 0) partitions.delete(part(key, partitionName));
    },
    partition: (value) => {
      const items = [...(partitions.get(JSON.stringify({ S: value }))?.values() ?? [])];
      const sortKey = (item: Attributes) => item[sortName ?? '']?.S ?? '';
      return items.sort((a, b) => byteOrder(sortKey(a), sortKey(b)));
    },
    all: () => [...partitions.values()].flatMap((partition) => [...partition.values()]),
    keyFault: (key) => {
      const names = Object.keys(key);
      const whole =
        names.length === keyNames.length && keyNames.every((name) => key[name] && fits(key[name]));
      return whole
        ? undefined
        : new ValidationException('The provided key element does not match the schema');
    },
    itemFault: (item) => {
      for (const name of keyNames) {
        const value = item[name];
        if (!value) return invalid(`Missing the key ${name} in the item`);
        if (!fits(value))
          return invalid(`Type mismatch for key ${name} expected: S actual: ${typeOf(value)}`);
      }
      return undefined;
    },
    assertKeyBytes: (key) => {
      for (const name of keyNames) {
        const value = key[name]?.S ?? key[name]?.B;
        const max = name === partitionName ? KEY_BYTES_MAX.partition : KEY_BYTES_MAX.sort;
        const bytes = value === undefined ? 1 : Buffer.byteLength(value);
        if (bytes === 0) throw invalid(`a key attribute cannot contain an empty string value. Key: ${name}`);
        if (bytes > max) throw invalid(`Size of key ${name} is ${bytes} bytes; at most ${max} are allowed`);
      }
    },
  };
}

function part(item: Attributes, name: string | undefined): string {
  return name === undefined ? '' : JSON.stringify(item[name]);
}

function invalid(what: string): ValidationException {
  return new ValidationException(`One or more parameter values were invalid: ${what}`);
}
