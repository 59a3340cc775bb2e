import { parseJson } from '../../lambdas/runtime/json-depth.ts';

/** The object that a text holds as JSON; `undefined` when it holds none. */
export function jsonObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? parseJson(text) : undefined;
    return typeof value === 'object' && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** A member that is a text; `undefined` when it is anything else. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
