import { MailroomError } from './errors.ts';

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
  if (isDeeperThan(json, JSON_DEPTH_MAX)) throw new MailroomError('JSON_TOO_DEEP', `The JSON is ${TOO_DEEP}`);
  return JSON.parse(json);
}
