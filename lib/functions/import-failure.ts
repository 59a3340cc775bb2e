import { dirname, sep } from 'node:path';

/** The error of a bundle that could not be imported. */
export interface ImportFailure {
  /** Absent if the process ended without an error. */
  readonly name?: string | undefined;
  /** The code of Node.js, e.g. `ENOENT`. */
  readonly code?: string | undefined;
  /** The file that the error names. */
  readonly path?: string | undefined;
}

/** The codes of a connection that failed. */
const CONNECTION = /^(?:ECONNREFUSED|ECONNRESET|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ETIMEDOUT)$/;

/** The name of the failure of an import that takes too long. */
export const TOO_LONG = 'TimeoutError';

/**
 * Returns what to do about a bundle that could not be imported, by the name and the code of the error. `function.checkHandlers: false` is a
 * remedy only for what the function may have and this machine lacks.
 *
 * @param bundle - the bundled file
 */
export function importRemedy(bundle: string, { name, code = '', path = '' }: ImportFailure): string {
  if (/^(?:ERR_)?MODULE_NOT_FOUND$/.test(code)) {
    return (
      'Install the package, or remove it from bundling.externalModules; if a layer has it, set function.checkHandlers: false. ' +
      'If it is a credential provider of AWS, the entry calls AWS while it is imported: make that call in the handler.'
    );
  }
  if (code === 'ENOENT' && path.startsWith(`${dirname(bundle)}${sep}`)) {
    return (
      'The function would fail in the same way, because a bundle has no files beside it. Add the package that reads the file to bundling.nodeModules, ' +
      'which keeps its files, or copy the file to the output folder in bundling.commandHooks.'
    );
  }
  if (name === 'ReferenceError' || name === 'SyntaxError') {
    return (
      'The function would fail in the same way: correct the code. A banner in bundling replaces that of Mailroom, which defines require, ' +
      '__dirname and __filename.'
    );
  }
  if (CONNECTION.test(code) || name === TOO_LONG)
    return 'Connect to databases and other services in the handler, or set function.checkHandlers: false.';
  return 'The function would fail in the same way, unless it has what is missing here, such as a layer: then set function.checkHandlers: false.';
}
