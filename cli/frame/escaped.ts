import { JSON_DEPTH_MAX } from '../../lambdas/runtime/json-depth.ts';

/**
 * Characters that a terminal acts on or hides, and that no text of a row may bring to one: control characters (C0, C1: an
 * OSC or a cursor code begins with one), format characters (bidi, zero width), and the separators of lines and paragraphs.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Values nested deeper than this are cut: no row and no report is, with the limit of the JSON in it. */
const DEPTH_MAX = 2 * JSON_DEPTH_MAX;

/**
 * A text with its control and format characters written as JSON writes them, e.g. `\u001b`: it moves no cursor, begins no line
 * and reads in the order in which it is stored.
 */
export function escaped(text: string): string {
  return text.replace(UNSAFE, unicodeEscape);
}

/** A copy of a value that may be shown to people: every text in it, names of members too, is {@link escaped}. */
export function shown<T>(value: T): T {
  return shownAt(value, 0) as T;
}

/** One line of JSON that a terminal does not act on. It parses to the same value. */
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
