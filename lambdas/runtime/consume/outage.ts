import { errorCode, errorMessage, isMailroomError } from '../base/errors.ts';
import type { TransactAction } from '../store/table.ts';

/**
 * Errors of AWS calls that are unrelated to the message: throttling, conflicts with other transactions, service failures, lost
 * connections, missing permissions or keys. The names come from the DynamoDB developer guide ("Error handling"), the DynamoDB API
 * reference ("Common Error Types", TransactWriteItems), the Lambda API reference (Invoke), the AWS SDK and Node.js's `errno` codes.
 */
const OUTAGE =
  /Throttl|^(ProvisionedThroughputExceeded|RequestLimitExceeded|LimitExceeded|TransactionConflict|TransactionInProgress|ReplicatedWriteConflict|InternalServer|InternalFailure|ServiceUnavailable|ResourceNotFound|ResourceInUse|AccessDenied|NotAuthorized|UnrecognizedClient|InvalidClientTokenId|InvalidSignature|IncompleteSignature|SignatureDoesNotMatch|MissingAuthentication|ExpiredToken|OptInRequired|CredentialsProvider|TokenProvider|KMS|Timeout|RequestTimeout|AbortError|RequestExpired|EAI_|ECONN|EHOST|ENET|ENOTFOUND|EPIPE|EPROTO|EADDR|EMFILE|ENFILE|ETIMEDOUT)/;

/**
 * Returns true if a failed call of Mailroom's own is an infrastructure outage, which does not count as an attempt. A failed
 * condition or an invalid request is not an outage: the handler caused it.
 */
export function isOutage(error: unknown): boolean {
  if (isMailroomError(error, 'TRANSACTION_CANCELLED')) {
    // A commit's error lists the reasons of the handler's writes only; its cause also lists that of the inbox row.
    const whole = isMailroomError(error.cause, 'TRANSACTION_CANCELLED') ? error.cause : error;
    const codes = whole.reasons.map(({ code }) => code).filter((code) => code !== 'None');
    return codes.length > 0 && codes.every((code) => OUTAGE.test(code));
  }
  return OUTAGE.test(errorCode(error)) || statusOf(error) >= 500 || isKeyError(error);
}

/** DynamoDB reports a key that it cannot use, such as a disabled one, as an invalid request whose message quotes KMS. */
function isKeyError(error: unknown): boolean {
  return errorCode(error) === 'ValidationException' && /^KMS [\w ]*error:/.test(errorMessage(error));
}

/** The table does not exist or access to it is denied. */
const NO_TABLE = /^(ResourceNotFound|AccessDenied)/;

/** As {@link isOutage}, for a commit. If it writes to one of your tables, a missing or inaccessible table is the handler's mistake. */
export function isOutageOf(actions: readonly TransactAction[], tableName: string, error: unknown): boolean {
  const otherTable = actions.some((action) =>
    Object.values(action).some(
      (request?: { readonly TableName?: string | undefined }) =>
        request?.TableName !== undefined && request.TableName !== tableName,
    ),
  );
  return isOutage(error) && !(otherTable && NO_TABLE.test(errorCode(error)));
}

/** The HTTP status of an SDK error; 0 if it has none. */
function statusOf(error: unknown): number {
  const { $metadata } = (error ?? {}) as { $metadata?: { httpStatusCode?: unknown } };
  return typeof $metadata?.httpStatusCode === 'number' ? $metadata.httpStatusCode : 0;
}
