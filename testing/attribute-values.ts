import type { AttributeValue } from '@aws-sdk/client-dynamodb';

/** An item as DynamoDB stores it: every value is tagged with its type. */
export type Attributes = Record<string, AttributeValue>;

/** DynamoDB's names of its ten types. */
export const ATTRIBUTE_TYPES = ['S', 'N', 'B', 'BOOL', 'NULL', 'SS', 'NS', 'BS', 'L', 'M'] as const;

/** The type of an attribute. */
export type AttributeType = (typeof ATTRIBUTE_TYPES)[number];

/** The type of an attribute's value. */
export function typeOf(value: AttributeValue): AttributeType {
  return Object.keys(value)[0] as AttributeType;
}

/** Returns true if two values are equal to DynamoDB: same type and content; the order within a set does not matter. */
export function equal(a: AttributeValue | undefined, b: AttributeValue | undefined): boolean {
  if (a === undefined || b === undefined || typeOf(a) !== typeOf(b)) return false;
  if (a.M && b.M) return equalMaps(a.M, b.M);
  if (a.L && b.L) return a.L.length === b.L.length && a.L.every((value, index) => equal(value, b.L?.[index]));
  const [left, right] = [elements(a), elements(b)];
  if (left && right) {
    return left.length === right.length && left.every((value) => right.some((other) => equal(value, other)));
  }
  if (a.BOOL !== undefined || a.NULL !== undefined) return a.BOOL === b.BOOL;
  return order(a, b) === 0;
}

function equalMaps(a: Attributes, b: Attributes): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => equal(a[name], b[name]));
}

/**
 * Compares two texts (by their UTF-8 bytes), numbers or binaries; `undefined` for values that DynamoDB does not order: other
 * types, or two different ones.
 */
export function order(a: AttributeValue, b: AttributeValue): number | undefined {
  if (a.S !== undefined && b.S !== undefined) return a.S === b.S ? 0 : byteOrder(a.S, b.S);
  if (a.N !== undefined && b.N !== undefined) return Number(a.N) - Number(b.N);
  if (a.B !== undefined && b.B !== undefined) return Buffer.compare(a.B, b.B);
  return undefined;
}

/** Compares two texts by their UTF-8 bytes, the order of sort keys. */
export function byteOrder(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

/** The elements of a set, as separate values; `undefined` for anything else. */
export function elements(value: AttributeValue): AttributeValue[] | undefined {
  if (value.SS) return value.SS.map((S) => ({ S }));
  if (value.NS) return value.NS.map((N) => ({ N }));
  if (value.BS) return value.BS.map((B) => ({ B }));
  return undefined;
}

/** Makes a set with elements of the same type as `like`; `undefined` without elements, because DynamoDB has no empty sets. */
export function setOf(like: AttributeValue, values: readonly AttributeValue[]): AttributeValue | undefined {
  if (values.length === 0) return undefined;
  if (like.SS) return { SS: values.map((value) => value.S ?? '') };
  if (like.NS) return { NS: values.map((value) => value.N ?? '') };
  return { BS: values.map((value) => value.B ?? new Uint8Array()) };
}

/** The result of an expression's `size` function; `undefined` for types that have no size. */
export function sizeOf(value: AttributeValue): number | undefined {
  if (value.S !== undefined) return Buffer.byteLength(value.S);
  if (value.B !== undefined) return value.B.byteLength;
  if (value.M) return Object.keys(value.M).length;
  return (value.L ?? elements(value))?.length;
}

/** Adds two numbers in decimal, as DynamoDB does: 0.1 plus 0.2 is 0.3. */
export function add(a: string, b: string): string {
  const [left, right] = [decimal(a), decimal(b)];
  const exponent = Math.min(left.exponent, right.exponent);
  const sum = scaled(left, exponent) + scaled(right, exponent);
  return String(Number(`${sum}e${exponent}`));
}

/** Negates a number. */
export function negate(number: string): string {
  return number.startsWith('-') ? number.slice(1) : `-${number}`;
}

interface Decimal {
  readonly digits: bigint;
  readonly exponent: number;
}

function decimal(number: string): Decimal {
  const [mantissa = '0', exponent = '0'] = number.toLowerCase().split('e');
  const [whole = '0', fraction = ''] = mantissa.split('.');
  return { digits: BigInt(whole + fraction), exponent: Number(exponent) - fraction.length };
}

function scaled({ digits, exponent }: Decimal, to: number): bigint {
  return digits * 10n ** BigInt(exponent - to);
}
