import { types } from 'node:util';
import { PAYLOAD_DEPTH_MAX } from './json.ts';

/** A value that JSON cannot write, or would silently replace, such as a Map, which becomes `{}`. */
export interface JsonFault {
  /** Its path, from the outermost step to the innermost. The names may be data: mask them in logs. */
  readonly path: readonly PropertyKey[];
  /** The kind of the value, e.g. `a Map`. It never contains the value. */
  readonly kind: string;
  /** The remedy, as a sentence. */
  readonly remedy: string;
}

/**
 * Finds the first value that JSON cannot write as it is: the one rule for everything that Mailroom stores or publishes as JSON. It
 * visits each value once, as `JSON.stringify` does, with the results of `toJSON` in place of their objects.
 *
 * Refused are numbers that are not finite, bigints, functions, symbols, Maps, Sets, Promises, errors, binary data, invalid
 * dates, values that contain themselves or nest too deeply, and other objects of a class without own fields. An object with its own `toJSON`
 * chose its JSON. As in JSON, a member that is undefined is dropped, and an element of a list that is undefined becomes null.
 *
 * @param dates - whether a valid `Date` may become a string @default 'allowed'
 * @returns `undefined` if `JSON.stringify` may write it
 */
export function jsonFault(
  value: unknown,
  { dates = 'allowed' }: { readonly dates?: 'allowed' | 'refused' } = {},
): JsonFault | undefined {
  try {
    return valueFault(value, '', { dates, within: [] });
  } catch {
    return faulty('an object that throws an error when it is read', 'Copy its values into a plain object.');
  }
}

interface JsonWalk {
  readonly dates: 'allowed' | 'refused';
  /** The lists and objects that contain the current value. */
  readonly within: object[];
}

function valueFault(
  value: unknown,
  key: PropertyKey,
  walk: JsonWalk,
  isChosen = false,
): JsonFault | undefined {
  switch (typeof value) {
    case 'number':
      if (Number.isFinite(value)) return undefined;
      return faulty(Number.isNaN(value) ? 'NaN' : 'an infinite number', 'Omit it, or use null.');
    case 'bigint':
      if (hasToJson(value) && !isChosen) return valueFault(value.toJSON(String(key)), key, walk, true);
      return faulty('a bigint', 'Use a string: String(value).');
    case 'function':
      return faulty('a function', 'Call it, or omit it.');
    case 'symbol':
      return faulty('a symbol', 'Use a string.');
    case 'object':
      return value === null ? undefined : objectFault(value, key, walk, isChosen);
    default:
      return undefined;
  }
}

/** @param isChosen - the object is the result of a `toJSON`, to which JSON applies no other */
function objectFault(
  value: object,
  key: PropertyKey,
  walk: JsonWalk,
  isChosen: boolean,
): JsonFault | undefined {
  const isList = Array.isArray(value);
  const isClass = !isList && !isPlain(value);
  const refused = isClass ? classFault(value, walk) : undefined;
  if (refused !== undefined) return refused;
  if (!isChosen && hasToJson(value)) return valueFault(value.toJSON(String(key)), key, walk, true);
  if (isClass && types.isBoxedPrimitive(value)) return valueFault(value.valueOf(), key, walk, true);
  const lost = isClass ? lostFault(value) : undefined;
  if (lost !== undefined) return lost;
  const { within } = walk;
  if (within.includes(value)) return faulty('part of itself', 'Break the cycle, e.g. use an id.');
  if (within.length === PAYLOAD_DEPTH_MAX) return TOO_DEEP;
  within.push(value);
  const fault = isList ? listFault(value, walk) : membersFault(value, walk);
  within.pop();
  return fault;
}

const TOO_DEEP: JsonFault = faulty(
  `nested more than ${PAYLOAD_DEPTH_MAX} levels deep`,
  'Flatten it, or store the deep part elsewhere (S3) and use its address.',
);

/** An object whose own `toJSON` does not make its JSON right. */
function classFault(value: object, { dates }: JsonWalk): JsonFault | undefined {
  if (types.isDate(value)) {
    if (Number.isNaN(value.getTime())) return faulty('an invalid Date', 'Omit it, or use null.');
    return dates === 'allowed' ? undefined : faulty('a Date', 'Use its toISOString() or its getTime().');
  }
  if (ArrayBuffer.isView(value) || types.isAnyArrayBuffer(value))
    return faulty(`an instance of ${nameOf(value)}`, 'Use its bytes as a base64 string.');
  return undefined;
}

/** An object without a `toJSON` whose content is not in the fields that JSON writes. */
function lostFault(value: object): JsonFault | undefined {
  if (typeof Reflect.get(value, 'then') === 'function') return faulty('a Promise', 'Await it first.');
  if (types.isMap(value)) return faulty('a Map', 'Use Object.fromEntries(map).');
  if (types.isSet(value)) return faulty('a Set', 'Use a list: [...set].');
  if (types.isNativeError(value))
    return faulty(`an error (${nameOf(value)})`, 'Use its name and its message.');
  if (Object.keys(value).length > 0) return undefined;
  return faulty(`an instance of ${nameOf(value)} without own fields`, 'Copy its values into a plain object.');
}

/** Returns true for an object literal, also of another realm, and for one without a prototype. */
function isPlain(value: object): boolean {
  const prototype: object | null = Object.getPrototypeOf(value);
  if (prototype === null || prototype === Object.prototype) return true;
  return Object.getPrototypeOf(prototype) === null;
}

function hasToJson(value: object | bigint): value is (object | bigint) & { toJSON(key: string): unknown } {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}

function nameOf(value: object): string {
  const name: unknown = value.constructor?.name;
  return typeof name === 'string' && /^[\w$]{1,64}$/.test(name) ? name : 'an unnamed class';
}

function listFault(list: readonly unknown[], walk: JsonWalk): JsonFault | undefined {
  for (let index = 0; index < list.length; index += 1) {
    const fault = valueFault(list[index], index, walk);
    if (fault) return inside(index, fault);
  }
  return undefined;
}

function membersFault(value: object, walk: JsonWalk): JsonFault | undefined {
  for (const name of Object.keys(value)) {
    const fault = valueFault((value as Readonly<Record<string, unknown>>)[name], name, walk);
    if (fault) return inside(name, fault);
  }
  return undefined;
}

/** A value that is too deep is reported without its path of a hundred steps. */
function inside(step: PropertyKey, fault: JsonFault): JsonFault {
  return fault === TOO_DEEP ? fault : { ...fault, path: [step, ...fault.path] };
}

function faulty(kind: string, remedy: string): JsonFault {
  return { path: [], kind, remedy };
}
