import { MailroomError } from '../../lambdas/runtime/base/errors.ts';
import { parseJson } from '../../lambdas/runtime/base/json.ts';

/**
 * Parses JSON that an operator hands in: the one reader of it. JavaScript would silently replace a number that it cannot hold, and the operator
 * would confirm another one.
 *
 * @throws `BAD_ARGUMENT`, naming a number that would change, `JSON_TOO_DEEP`; `SyntaxError` if it is not JSON
 */
export function exactJson(text: string): unknown {
  const value = parseJson(text);
  const lossy = lossyNumberText(text);
  if (lossy === undefined) return value;
  throw new MailroomError(
    'BAD_ARGUMENT',
    `${lossy} Write it as a string, if its readers allow that. Otherwise nothing in JSON can hold it: let the service write it.`,
  );
}

const STRINGS_AND_NUMBERS = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

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
    const read = Number(token);
    if (!Number.isFinite(read))
      return `The number ${token} is larger than JavaScript's numbers, so it would become null.`;
    if (decimalOf(String(read)) === decimalOf(token)) continue;
    if (read === 0) return `The number ${token} is smaller than JavaScript's numbers, so it would become 0.`;
    return `The number ${token} has more digits than JavaScript keeps, so it would be rounded.`;
  }
  return undefined;
}

/** A decimal in one spelling: its significant digits, and the exponent of the last one. */
function decimalOf(number: string): string {
  const [, sign, whole = '', fraction = '', exponent = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const all = `${whole}${fraction}`.replace(/^0+/, '');
  const digits = all.replace(/0+$/, '');
  if (digits === '') return '0';
  // Text, because an exponent in the text may have any length.
  return `${sign}${digits}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(all.length - digits.length)}`;
}
