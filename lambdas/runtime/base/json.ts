import { MailroomError } from './errors.ts';

/** Returns a string; `undefined` for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** Returns true for a text that UTF-8 cannot encode, because half of a surrogate pair is missing: stores replace the other half. */
export function hasLoneSurrogate(text: string): boolean {
  return /\p{Surrogate}/u.test(text);
}

/** Returns true for an object or a list. */
export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}

/** Parses a JSON object; `undefined` if the text is not one. */
export function jsonObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? parseJson(text) : undefined;
    return isObject(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** The maximum nesting depth of lists and objects in an event payload: a flat object has depth 1. */
export const PAYLOAD_DEPTH_MAX = 100;

/**
 * The maximum nesting depth of JSON that is read from a row or a message. It leaves room for the envelope around a payload and
 * for payloads written before there was a limit; recursion to this depth fits on any stack.
 */
export const JSON_DEPTH_MAX = 256;

/** Completes an error message about text that {@link parseJson} refuses. */
export const TOO_DEEP = `nested more than ${JSON_DEPTH_MAX} levels deep`;

/**
 * Returns true if JSON text nests lists and objects deeper than a limit. It counts brackets without recursion, so it accepts any
 * text, including text that is not JSON.
 *
 * @example
 * ```ts
 * isDeeperThan('[[1]]', 1); // true
 * ```
 */
export function isDeeperThan(json: string, max: number): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < json.length; at += 1) {
    const code = json.charCodeAt(at);
    if (code === QUOTE) quoted = !quoted;
    else if (quoted) at += code === BACKSLASH ? 1 : 0;
    else if (code === OPEN_LIST || code === OPEN_OBJECT) {
      depth += 1;
      if (depth > max) return true;
    } else if (code === CLOSE_LIST || code === CLOSE_OBJECT) depth -= 1;
  }
  return false;
}

const [QUOTE, BACKSLASH, OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT] = [...'"\\[]{}'].map((character) =>
  character.charCodeAt(0),
);

/**
 * Parses JSON from an external writer. Its result is safe to traverse and to serialize recursively.
 *
 * @throws `JSON_TOO_DEEP` if it nests more than {@link JSON_DEPTH_MAX} levels deep; `SyntaxError` if it is not JSON
 */
export function parseJson(json: string): unknown {
  if (isDeeperThan(json, JSON_DEPTH_MAX))
    throw new MailroomError('JSON_TOO_DEEP', `The JSON is ${TOO_DEEP}.`);
  return JSON.parse(json);
}

/**
 * The type of a value after it is written as JSON and read back: a `Date` becomes a string, `toJSON` is applied, methods are
 * dropped, and list elements that are undefined become `null`. A value that is refused, such as a bigint or a `Map`, is `never`.
 *
 * @example
 * ```ts
 * type Charge = JsonOf<{ chargeId: string; at: Date }>; // { chargeId: string; at: string }
 * ```
 */
export type JsonOf<T> = 0 extends 1 & T // any
  ? T
  : T extends { toJSON(key: never): infer Json }
    ? JsonOf<Json>
    : T extends string | number | boolean | null | undefined
      ? T
      : T extends void
        ? undefined
        : // Not all that is refused: the types of errors and of binary data also fit plain objects.
          T extends
              | bigint
              | symbol
              | ((...args: never) => unknown)
              | ReadonlyMap<unknown, unknown>
              | ReadonlySet<unknown>
          ? never
          : T extends readonly unknown[]
            ? {
                [I in keyof T]: JsonOf<T[I]> extends infer Json
                  ? Json extends undefined
                    ? null
                    : Json
                  : never;
              }
            : T extends object
              ? {
                  // Only names that JSON keeps: no symbols, and no members that are only functions, which may be methods.
                  [Name in keyof T as Name extends symbol
                    ? never
                    : T[Name] extends (...args: never) => unknown
                      ? never
                      : Name]: JsonOf<T[Name]>;
                }
              : T;
