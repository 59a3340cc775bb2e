import { isObject } from '../../../lambdas/runtime/base/json.ts';

/** A difference between the data of two events. */
export interface DataChange {
  /** E.g. `items[0].price`; empty for the data as a whole. */
  readonly path: string;
  readonly change: 'added' | 'removed' | 'changed';
  /** The value before; `undefined` if it was added. */
  readonly before: unknown;
  /** The value now; `undefined` if it was removed. */
  readonly after: unknown;
}

/** The differences between two JSON values, in the order of their members. None: they are equal. */
export function dataChanges(before: unknown, after: unknown, path = ''): DataChange[] {
  if (Object.is(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
    const longer = before.length > after.length ? before : after;
    return longer.flatMap((_, index) =>
      memberChanges(before, after, index in before, index in after, String(index), `${path}[${index}]`),
    );
  }
  if (!isObject(before) || !isObject(after) || Array.isArray(before) || Array.isArray(after))
    return [{ path, change: 'changed', before, after }];
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
  return names.flatMap((name) => {
    const [was, is] = [Object.hasOwn(before, name), Object.hasOwn(after, name)];
    return memberChanges(before, after, was, is, name, path === '' ? name : `${path}.${name}`);
  });
}

function memberChanges(
  before: object,
  after: object,
  was: boolean,
  is: boolean,
  name: string,
  path: string,
): DataChange[] {
  const [old, now] = [before, after].map((of) => (of as Readonly<Record<string, unknown>>)[name]);
  if (was && is) return dataChanges(old, now, path);
  return [
    { path, change: is ? 'added' : 'removed', before: was ? old : undefined, after: is ? now : undefined },
  ];
}
const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The most digits that every number keeps when it is parsed and written again. */
const DIGITS_MAX = 15;

/**
 * Finds the first number in a JSON text that would change when it is parsed and written again.
 *
 * @returns a sentence about it; `undefined` if every number is kept
 *
 * @example
 * ```ts
 * lossyNumberText('{"id": 12345678901234567890}'); // 'The number 12345678901234567890 has more digits than …'
 * ```
 */
export function lossyNumberText(json: string): string | undefined {
  for (const [token] of json.matchAll(STRINGS_AND_NUMBERS)) {
    if (token.startsWith('"')) continue;
    if (!Number.isFinite(Number(token)))
      return `The number ${token} is larger than JavaScript's numbers, so it would be sent as null.`;
    const digits = token
      .replace(/[eE].*$/, '')
      .replace(/[-.]/g, '')
      .replace(/^0+/, '').length;
    if (digits > DIGITS_MAX && String(Number(token)) !== token)
      return `The number ${token} has more digits than JavaScript keeps, so it would be sent rounded.`;
  }
  return undefined;
}
