import type { MailroomErrorCode } from './error-codes.ts';

/**
 * The address of the documentation: at the tag of this version once it is released, and on `main` before, when the tag does not exist.
 * Written out, because it is loaded as an ES module, as CommonJS and in bundles, and not all of them find package.json;
 * `test/infra/documentation.test.ts` compares it with package.json and the changelog.
 */
export const DOCUMENTATION_URL = 'https://github.com/cdk-mailroom/cdk-mailroom/blob/main/docs';

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
