import { errorCode, isMailroomError } from '../errors.ts';
import type { TransactAction } from '../store/table.ts';

/**
 * Errors of a call to AWS that say nothing about the message: throttles, conflicts with other transactions, failures of
 * the service, lost connections, missing permissions or keys. Names from the DynamoDB API reference ("Error handling",
 * TransactionCanceledException), the Lambda and KMS service errors that DynamoDB passes on, and Node.js's `errno` codes.
 */
const OUTAGE =
  /Throttl|^(ProvisionedThroughputExceeded|RequestLimitExceeded|LimitExceeded|TransactionConflict|TransactionInProgress|ReplicatedWriteConflict|InternalServer|InternalFailure|InternalError|ServiceUnavailable|ResourceNotFound|ResourceInUse|AccessDenied|NotAuthorized|UnrecognizedClient|InvalidClientTokenId|InvalidSignature|IncompleteSignature|SignatureDoesNotMatch|MissingAuthentication|ExpiredToken|InvalidToken|OptInRequired|CredentialsProvider|TokenProvider|KMS|InaccessibleEncryption|Timeout|RequestTimeout|AbortError|NetworkingError|RequestExpired|EAI_|ECONN|EHOST|ENET|ENOTFOUND|EPIPE|EPROTO|EADDR|EMFILE|ENFILE|ETIMEDOUT|ESOCKET)/;

/**
 * Whether a failed call of Mailroom's own is an outage of its infrastructure, of which no attempt of a message counts. A
 * refused condition and an invalid request are not: they are what the handler asked for.
 */
export function isOutage(error: unknown): boolean {
  if (isMailroomError(error, 'TRANSACTION_CANCELLED')) {
    // A commit's error names the handler's writes only; its cause names the inbox row's action too.
    const whole = isMailroomError(error.cause, 'TRANSACTION_CANCELLED') ? error.cause : error;
    const codes = whole.reasons.map(({ code }) => code).filter((code) => code !== 'None');
    return codes.length > 0 && codes.every((code) => OUTAGE.test(code));
  }
  return OUTAGE.test(errorCode(error)) || statusOf(error) >= 500;
}

/** A table that does not exist, or may not be used. */
const NO_TABLE = /^(ResourceNotFound|AccessDenied)/;

/** The same for a commit: where it writes to a table of the handler's own, a table that is missing or closed is the handler's mistake. */
export function isOutageOf(actions: readonly TransactAction[], tableName: string, error: unknown): boolean {
  const otherTable = actions.some((action) =>
    Object.values(action).some(
      (request?: { readonly TableName?: string | undefined }) =>
        request?.TableName !== undefined && request.TableName !== tableName,
    ),
  );
  return isOutage(error) && !(otherTable && NO_TABLE.test(errorCode(error)));
}

/** The HTTP status that an SDK error carries; 0 where there is none. */
function statusOf(error: unknown): number {
  const { $metadata } = (error ?? {}) as { $metadata?: { httpStatusCode?: unknown } };
  return typeof $metadata?.httpStatusCode === 'number' ? $metadata.httpStatusCode : 0;
}
