import { MailroomError } from './errors.ts';

/** The deepest that lists and objects may nest in the payload of an event: a flat object is 1 deep. */
export const PAYLOAD_DEPTH_MAX = 100;

/**
 * The deepest that lists and objects may nest in JSON that is read out of a row or a message. It has room for what is around a
 * payload, and for payloads that were written before there was a limit; a walk through so many levels fits on any stack.
 */
export const JSON_DEPTH_MAX = 256;

/** How a text that {@link parseJson} refuses is told of in a sentence. */
export const TOO_DEEP = `nested more than ${JSON_DEPTH_MAX} levels deep`;

/**
 * Whether a text of JSON nests its lists and objects deeper than a limit. It counts brackets and never recurses, so it can be
 * asked of any text, also one that is no JSON.
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
 * Parses JSON that somebody else wrote. What it returns may be walked through and written as JSON again by recursion.
 *
 * @throws `JSON_TOO_DEEP` when it nests more than {@link JSON_DEPTH_MAX} levels deep; `SyntaxError` when it is no JSON
 */
export function parseJson(json: string): unknown {
  if (isDeeperThan(json, JSON_DEPTH_MAX)) throw new MailroomError('JSON_TOO_DEEP', `The JSON is ${TOO_DEEP}`);
  return JSON.parse(json);
}
