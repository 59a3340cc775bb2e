import { parseJson } from './json-depth.ts';

/** Returns a string; `undefined` for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
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
