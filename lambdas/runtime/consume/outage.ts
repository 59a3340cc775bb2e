import { awsFault } from '../base/aws-errors.ts';
import { errorCode, errorMessage, isMailroomError, type TransactionCancelled } from '../base/errors.ts';
import type { TransactAction } from '../store/table.ts';

/**
 * Returns true if a failed call of Mailroom's own is an infrastructure outage, which does not count as an attempt. A failed
 * condition or an invalid request is not an outage: the handler caused it.
 */
export function isOutage(error: unknown): boolean {
  if (isMailroomError(error, 'TRANSACTION_CANCELLED')) return areAll(error, isFault);
  return (
    isMailroomError(error, 'PAYLOADS_UNAVAILABLE') ||
    isFault(errorCode(error)) ||
    statusOf(error) >= 500 ||
    isKeyError(error)
  );
}

/** Returns true if a transaction was refused only because of others at the same moment, which write the same rows. */
export function isConflictOnly(error: unknown): boolean {
  return (
    isMailroomError(error, 'TRANSACTION_CANCELLED') && areAll(error, (code) => awsFault(code) === 'conflict')
  );
}

/**
 * Returns true if the failure of several messages is that of each of them. What is denied or missing may be what one of them reads or writes.
 */
export function isOutageOfAll(error: unknown): boolean {
  const fault = awsFault(errorCode(error));
  return isOutage(error) && fault !== 'denied' && fault !== 'missing';
}

/** A commit's error lists the reasons of the handler's writes only; its cause also lists that of the inbox row. */
function areAll(error: TransactionCancelled, is: (code: string) => boolean): boolean {
  const whole = isMailroomError(error.cause, 'TRANSACTION_CANCELLED') ? error.cause : error;
  const codes = whole.reasons.map(({ code }) => code).filter((code) => code !== 'None');
  return codes.length > 0 && codes.every(is);
}

/** DynamoDB reports a key that it cannot use, such as a disabled one, as an invalid request whose message quotes KMS. */
function isKeyError(error: unknown): boolean {
  return errorCode(error) === 'ValidationException' && /^KMS [\w ]*error:/.test(errorMessage(error));
}

/** Any fault of AWS is unrelated to the message: none of the names is that of a condition or of an invalid request. */
function isFault(code: string): boolean {
  return awsFault(code) !== undefined;
}

/** As {@link isOutage}, for a commit. If it writes to one of your tables, a missing or inaccessible table is the handler's mistake. */
export function isOutageOf(actions: readonly TransactAction[], tableName: string, error: unknown): boolean {
  const otherTable = actions.some((action) =>
    Object.values(action).some(
      (request?: { readonly TableName?: string | undefined }) =>
        request?.TableName !== undefined && request.TableName !== tableName,
    ),
  );
  const fault = awsFault(errorCode(error));
  return isOutage(error) && !(otherTable && (fault === 'missing' || fault === 'denied'));
}

/** The HTTP status of an SDK error; 0 if it has none. */
function statusOf(error: unknown): number {
  const { $metadata } = (error ?? {}) as { $metadata?: { httpStatusCode?: unknown } };
  return typeof $metadata?.httpStatusCode === 'number' ? $metadata.httpStatusCode : 0;
}
