import { JSON_DEPTH_MAX } from '../../lambdas/runtime/base/json.ts';

/**
 * Characters that a terminal acts on or hides, which no stored text may print: control characters (C0, C1: OSC and cursor codes
 * begin with one), format characters (bidi, zero width), and line and paragraph separators.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Values nested deeper than this are cut. Rows and reports are not, because their JSON is limited. */
const DEPTH_MAX = 2 * JSON_DEPTH_MAX;

/**
 * A text with its control and format characters as JSON escapes, e.g. `\u001b`: it cannot move the cursor, begin a line or reverse
 * what follows.
 */
export function escaped(text: string): string {
  return text.replace(UNSAFE, unicodeEscape);
}

/** A copy of a value in which every string, member names included, is {@link escaped}. */
export function shown<T>(value: T): T {
  return shownAt(value, 0) as T;
}

/** One line of JSON without characters that a terminal acts on. It parses to the same value. */
export function jsonLine(value: unknown): string {
  return escaped(JSON.stringify(value));
}

function unicodeEscape(character: string): string {
  return [...Array(character.length).keys()]
    .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
    .join('');
}

function shownAt(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return escaped(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= DEPTH_MAX) return '…';
  const inner = (one: unknown) => shownAt(one, depth + 1);
  if (Array.isArray(value)) return value.map(inner);
  if (value instanceof Set) return new Set([...value].map(inner));
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [escaped(name), inner(one)]));
}
