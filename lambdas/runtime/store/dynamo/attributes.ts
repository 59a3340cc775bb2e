import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { convertToAttr, marshall, NumberValueImpl as NumberValue, unmarshall } from '@aws-sdk/util-dynamodb';
import type { Item } from '../table.ts';

/**
 * Settings for reading numbers: a number if it fits, a bigint if it is whole and too large for a number, otherwise DynamoDB's own
 * text. By default, the SDK throws in the last case, and one such number in one row would stop the reading of its whole page, and
 * with it the sweep of its shard.
 */
export const READ_NUMBERS = {
  wrapNumbers: (text: string): number | bigint | NumberValue => {
    const number = Number(text);
    if (Math.abs(number) <= Number.MAX_SAFE_INTEGER) return number;
    return /^-?\d+$/.test(text) ? BigInt(text) : NumberValue.from(text);
  },
};

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
