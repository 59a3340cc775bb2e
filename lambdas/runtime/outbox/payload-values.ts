import { MailroomError } from '../base/errors.ts';
import type { AnyEventDefinition } from '../events/event.ts';
import { payloadPath } from '../events/payload-issues.ts';

/** A value that JSON omits or replaces, such as a Map, which becomes `{}`. */
interface PayloadFault {
  /** Its path, from the outermost step to the innermost. */
  readonly path: readonly PropertyKey[];
  readonly kind: string;
  /** The remedy, as a sentence. */
  readonly remedy: string;
}

/**
 * Refuses a payload with a value that JSON does not write as it is: consumers would receive something else, and a schema can accept
 * even that. An object with its own `toJSON` chose its JSON, except a Date, which consumers receive as a string.
 *
 * @param data - a payload that `JSON.stringify` accepts: it has no cycles, and is not nested too deeply
 * @throws `INVALID_PAYLOAD`, naming the path and the kind of the value
 */
export function assertJsonValues(definition: AnyEventDefinition, data: unknown): void {
  const fault = faultOf(data);
  if (fault === undefined) return;
  const path = payloadPath(definition, fault.path);
  throw new MailroomError(
    'INVALID_PAYLOAD',
    `The payload of ${definition.type} cannot be written as JSON: ${path} is ${fault.kind}. ${fault.remedy}`,
  );
}

function faultOf(value: unknown): PayloadFault | undefined {
  switch (typeof value) {
    case 'number':
      if (Number.isFinite(value)) return undefined;
      return faulty(Number.isNaN(value) ? 'NaN' : 'an infinite number', 'Omit it, or pass null.');
    case 'function':
      return faulty('a function', 'Call it, or omit it.');
    case 'symbol':
      return faulty('a symbol', 'Pass a string instead.');
    case 'object':
      return value === null ? undefined : objectFault(value);
    default:
      return undefined;
  }
}

function objectFault(value: object): PayloadFault | undefined {
  if (Array.isArray(value)) return membersFault(value.entries());
  // By name, because a value may come from another realm.
  const name = value.constructor?.name ?? 'Object';
  if (name === 'Date') return faulty('a Date', 'Pass its toISOString() or its getTime().');
  if (typeof Reflect.get(value, 'then') === 'function') return faulty('a Promise', 'Await it first.');
  if (name === 'Map') return faulty('a Map', 'Pass Object.fromEntries(map).');
  if (name === 'Set') return faulty('a Set', 'Pass a list: [...set].');
  if (ArrayBuffer.isView(value) || name === 'ArrayBuffer')
    return faulty(`an instance of ${name}`, 'Pass its bytes as a base64 string.');
  if (typeof Reflect.get(value, 'toJSON') === 'function') return undefined;
  return membersFault(Object.entries(value));
}

function membersFault(members: Iterable<readonly [PropertyKey, unknown]>): PayloadFault | undefined {
  for (const [key, member] of members) {
    const fault = faultOf(member);
    if (fault) return { ...fault, path: [key, ...fault.path] };
  }
  return undefined;
}

function faulty(kind: string, remedy: string): PayloadFault {
  return { path: [], kind, remedy };
}
