import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';
import type { Item } from './table.ts';

/** The overhead of a list or map, bytes (DynamoDB developer guide, item sizes and formats). */
const CONTAINER_BYTES = 3;

/** The overhead of each element of a list or map, bytes. */
const ELEMENT_BYTES = 1;

/**
 * Returns the size of an item as DynamoDB counts it: the UTF-8 bytes of its attribute names plus the sizes of their values, by the
 * rule of the developer guide ("DynamoDB item sizes and formats"). The guide gives the size of numbers only approximately; this
 * function never underestimates them. Attributes that are `undefined` are not stored and count nothing.
 *
 * @returns bytes, to compare with `ITEM_BYTES_MAX`
 *
 * @example
 * ```ts
 * itemBytes({ PK: 'ORDER#1', total: 1999 }); // 2 + 7 + 5 + 3 = 17
 * ```
 */
export function itemBytes(item: Item): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(item)) {
    if (value !== undefined) bytes += Buffer.byteLength(name) + valueBytes(value);
  }
  return bytes;
}

/** Deeper values are refused on write (`item-values.ts`), so they are not counted. */
const LEVELS_MAX = 32;

/** Returns the size of one attribute's value, as {@link itemBytes} counts it, without its name. */
export function valueBytes(value: Item[string], level = 0): number {
  switch (typeof value) {
    case 'string':
      return Buffer.byteLength(value);
    case 'number':
    case 'bigint':
      return numberBytes(value);
    case 'boolean':
      return 1;
    case 'undefined':
    case 'function':
    case 'symbol':
      return 0;
    default:
      if (value === null) return 1;
      return level > LEVELS_MAX ? 0 : objectBytes(value, level + 1);
  }
}

function objectBytes(value: object, level: number): number {
  if (Array.isArray(value)) return containerBytes(value, level);
  if (value instanceof Set) return sum(value, (element) => valueBytes(element, level));
  if (value instanceof Map)
    return containerBytes(value.values(), level) + sum(value.keys(), (name) => Buffer.byteLength(name));
  if (value instanceof NumberValue) return numberBytes(Number(value.toString()));
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value.byteLength;
  if (value instanceof Blob) return value.size;
  const entries = Object.entries(value).filter(([, element]) => element !== undefined);
  return (
    containerBytes(
      entries.map(([, element]) => element),
      level,
    ) + sum(entries, ([name]) => Buffer.byteLength(name))
  );
}

function containerBytes(elements: Iterable<Item[string]>, level: number): number {
  return CONTAINER_BYTES + sum(elements, (element) => ELEMENT_BYTES + valueBytes(element, level));
}

/**
 * One byte, plus one for every two significant digits (in pairs aligned at the decimal point, so an unpaired digit at either end
 * takes its own byte), plus one for the sign of a negative number.
 */
function numberBytes(value: number | bigint): number {
  const [mantissa = '', exponent = '0'] = Number(value).toExponential().split('e');
  const digits = mantissa.replace(/[-.]/g, '');
  if (digits === '0') return 1;
  const last = Number(exponent) - (digits.length - 1);
  const shift = Math.abs(last % 2);
  return 1 + Math.ceil((digits.length + shift) / 2) + (value < 0 ? 1 : 0);
}

function sum<T>(values: Iterable<T>, bytes: (value: T) => number): number {
  let total = 0;
  for (const value of values) total += bytes(value);
  return total;
}
