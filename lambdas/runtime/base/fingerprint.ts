import { errorCode, errorMessage } from './errors.ts';

/**
 * Groups failures by cause: returns the error's code and its message, with everything that differs from event to event (ids,
 * numbers, quoted values) replaced by `#`.
 *
 * @returns at most 240 characters, e.g. `BankError: bank answered # for order #`
 *
 * @example
 * ```ts
 * fingerprint(new Error('order 42 not found')); // 'Error: order # not found'
 * ```
 */
export function fingerprint(error: unknown): string {
  const normalized = errorMessage(error)
    .replace(/"[^"]*"|'[^']*'|`[^`]*`/g, '#')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '#')
    .replace(/\b(?=[0-9a-z_-]*\d)[0-9a-z_-]+\b/gi, '#')
    .replace(/\s+/g, ' ')
    .trim();
  return `${errorCode(error)}: ${normalized}`.slice(0, 240);
}
