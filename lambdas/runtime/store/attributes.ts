import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { convertToAttr, marshall, unmarshall } from '@aws-sdk/util-dynamodb';
import { READ_NUMBERS } from './item-numbers.ts';
import type { Item } from './table.ts';

/** An item as DynamoDB's own client sends and receives it. */
export type AttributeMap = Record<string, AttributeValue>;

/** As the document client with `removeUndefinedValues`. */
const WRITE_VALUES = { removeUndefinedValues: true };

/** Converts an item, a key or the values of an expression; members that are `undefined` are left out. */
export function attributesOf(item: Item | undefined): AttributeMap {
  return marshall(item ?? {}, WRITE_VALUES);
}

/** Converts one value. */
export function attributeOf(value: unknown): AttributeValue {
  // All values of a claim or a mark: a shortcut past the checks of other types.
  if (typeof value === 'string') return { S: value };
  if (Number.isSafeInteger(value)) return { N: String(value) };
  return convertToAttr(value, WRITE_VALUES);
}

/** Converts an item that was read. */
export function itemOf(attributes: AttributeMap): Item {
  return unmarshall(attributes, READ_NUMBERS);
}
