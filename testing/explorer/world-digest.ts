import { isAnyArrayBuffer } from 'node:util/types';
import { hash } from './schedule.ts';

/**
 * A digest of a user's `world`: equal for worlds that look alike from outside. It reads the state that an object exposes: its own
 * enumerable fields, the entries of a Map or a Set, and the result of `toJSON`. Private fields, closures and promises expose
 * nothing. Order counts, because a handler can observe it. A repeated object is represented by its first position, so that cycles
 * end and shared objects differ from equal ones.
 */
export function worldDigest(world: unknown): string {
  const met = new Map<object, number>();
  return hash(text(world));

  function text(value: unknown): string {
    if (typeof value === 'string') return JSON.stringify(value);
    if (typeof value === 'function') return 'function';
    if (typeof value !== 'object' || value === null) {
      return `${typeof value} ${Object.is(value, -0) ? '-0' : String(value)}`;
    }
    const before = met.get(value);
    if (before !== undefined) return `#${before}`;
    met.set(value, met.size);
    return `${value.constructor?.name ?? ''}${contents(value)}`;
  }

  function contents(value: object): string {
    if (value instanceof Map) return list('{', value.entries(), '}') + fields(value);
    if (value instanceof Set) return list('{', value.values(), '}') + fields(value);
    if (Array.isArray(value)) return list('[', value, ']');
    if (isAnyArrayBuffer(value)) return list('[', new Uint8Array(value), ']');
    if (value instanceof Error) return text(`${value.name}: ${value.message}`) + fields(value);
    const shown: unknown = 'toJSON' in value && typeof value.toJSON === 'function' ? value.toJSON() : value;
    return shown === value ? fields(value) : text(shown);
  }

  function fields(value: object): string {
    return list('(', Object.entries(value), ')');
  }

  function list(open: string, parts: Iterable<unknown>, close: string): string {
    return `${open}${Array.from(parts, text).join()}${close}`;
  }
}

/** A digest of a value: equal texts for equal values. Includes errors and sets, which JSON omits. */
export function digest(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) => {
      if (part instanceof Set) return { set: [...part].sort() };
      if (part instanceof Error) return { ...part, error: `${part.name}: ${part.message}` };
      return part;
    }) ?? 'undefined'
  );
}

/** Returns true if two items are equal. */
export function equalItems(one: unknown, other: unknown): boolean {
  return one === other || digest(one) === digest(other);
}
