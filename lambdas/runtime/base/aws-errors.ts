/**
 * The meanings of the names of AWS errors, those of the SDK, and Node.js's `errno` codes:
 *
 * - `throttled`, `unavailable`, `unreachable`: the service, or the way to it. It passes.
 * - `conflict`: another writer was there at the same moment, or the resource is being changed. It passes.
 * - `no-credentials`: none were found. `expired`, `unknown-identity`: AWS does not accept them.
 * - `signature`: a wrong clock, which the SDK corrects for its next call, or a wrong secret.
 * - `denied`: a permission, or the account's access to the service, is missing. `key`: the key in KMS cannot be used.
 * - `missing`: the resource does not exist.
 */
export type AwsFault =
  | 'throttled'
  | 'unavailable'
  | 'unreachable'
  | 'conflict'
  | 'no-credentials'
  | 'expired'
  | 'unknown-identity'
  | 'signature'
  | 'denied'
  | 'key'
  | 'missing';

/**
 * From the DynamoDB developer guide ("Error handling"), the API references of DynamoDB ("Common Error Types", TransactWriteItems),
 * EventBridge (PutEventsResultEntry), Lambda (Invoke), SQS, SNS, Kinesis and Parameter Store, and the AWS SDK. Services name the same fault
 * with and without `Exception` at the end. The first that matches counts: a throttled key is throttled.
 */
const FAULTS: readonly (readonly [AwsFault, RegExp])[] = [
  [
    'throttled',
    /Throttl|^(ProvisionedThroughputExceeded|RequestLimitExceeded|LimitExceeded|TooManyRequests)/,
  ],
  ['unavailable', /^(InternalServer|InternalFailure|InternalException|InternalError|ServiceUnavailable)/],
  [
    'unreachable',
    /^(Timeout|RequestTimeout|AbortError|NetworkingError|EAI_|ECONN|EHOST|ENET|ENOTFOUND|EPIPE|EPROTO|EADDR|EMFILE|ENFILE|ETIMEDOUT)/,
  ],
  ['conflict', /^(TransactionConflict|TransactionInProgress|ReplicatedWriteConflict|ResourceInUse)/],
  ['no-credentials', /^(CredentialsProvider|TokenProvider|CredentialsError|MissingAuthentication)/],
  ['expired', /^(ExpiredToken|RequestExpired)/],
  ['unknown-identity', /^(UnrecognizedClient|InvalidClientTokenId|InvalidToken|InvalidAccountId)/],
  ['signature', /^(InvalidSignature|IncompleteSignature|SignatureDoesNotMatch)/],
  ['denied', /^(AccessDenied|NotAuthorized|UnauthorizedOperation|AuthorizationError|OptInRequired)/],
  ['key', /^(KMS|Kms)/],
  ['missing', /NonExistentQueue$|^(ResourceNotFound|QueueDoesNotExist|NotFound|ParameterNotFound)/],
];

/** The faults that stay until someone changes the configuration: an immediate retry cannot succeed. */
const CONFIGURATION: ReadonlySet<AwsFault | undefined> = new Set([
  'no-credentials',
  'expired',
  'unknown-identity',
  'signature',
  'denied',
]);

/** Returns the meaning of the name of an AWS error; `undefined` for any other: the request itself, or an error that is not AWS's. */
export function awsFault(name: string): AwsFault | undefined {
  return FAULTS.find(([, names]) => names.test(name))?.[0];
}

/** Returns true if an error's name means that AWS does not accept the caller or its call. */
export function isAccessFault(name: string): boolean {
  return CONFIGURATION.has(awsFault(name));
}
