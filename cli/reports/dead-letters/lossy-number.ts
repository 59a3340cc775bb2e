const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

/** The most digits that every number keeps when it is parsed and written again. */
const DIGITS_MAX = 15;

/**
 * Finds the first number in a JSON text that would change when it is parsed and written again.
 *
 * @returns a sentence about it; `undefined` if every number is kept
 *
 * @example
 * ```ts
 * lossyNumberText('{"id": 12345678901234567890}'); // 'The number 12345678901234567890 has more digits than …'
 * ```
 */
export function lossyNumberText(json: string): string | undefined {
  for (const [token] of json.matchAll(STRINGS_AND_NUMBERS)) {
    if (token.startsWith('"')) continue;
    if (!Number.isFinite(Number(token)))
      return `The number ${token} is larger than JavaScript's numbers, so it would be sent as null.`;
    const digits = token
      .replace(/[eE].*$/, '')
      .replace(/[-.]/g, '')
      .replace(/^0+/, '').length;
    if (digits > DIGITS_MAX && String(Number(token)) !== token)
      return `The number ${token} has more digits than JavaScript keeps, so it would be sent rounded.`;
  }
  return undefined;
}
