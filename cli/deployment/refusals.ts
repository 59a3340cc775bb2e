import { awsFault } from '../../lambdas/runtime/base/aws-errors.ts';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';

/** True if AWS denied a call. */
export function isDenied(error: unknown): boolean {
  return awsFault(errorCode(error)) === 'denied';
}

/** True if an endpoint, a local engine, does not have the operation: no permission changes that. */
export function isUnsupported(error: unknown): boolean {
  return /UnknownOperation/.test(errorCode(error));
}
