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
