import { parseJson } from '../../lambdas/runtime/base/json-depth.ts';

/** Parses a JSON object; `undefined` if the text is not one. */
export function jsonObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? parseJson(text) : undefined;
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns a string; `undefined` for any other value. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
