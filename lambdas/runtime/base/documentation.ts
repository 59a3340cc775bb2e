import type { MailroomErrorCode } from './error-codes.ts';

/**
 * The address of this version's documentation. Written out, because it is loaded as an ES module, as CommonJS and in bundles, and not all
 * of them find package.json; `test/infra/documentation.test.ts` compares it with package.json.
 */
export const DOCUMENTATION_URL = 'https://github.com/cdk-mailroom/cdk-mailroom/blob/v0.1.0/docs';

/**
 * Returns the address of the entry of docs/errors.md that explains a code.
 *
 * @example
 * ```ts
 * errorHelp('LEASED'); // 'https://github.com/…/docs/errors.md#leased'
 * ```
 */
export function errorHelp(code: MailroomErrorCode): string {
  return `${DOCUMENTATION_URL}/errors.md#${code.toLowerCase()}`;
}
