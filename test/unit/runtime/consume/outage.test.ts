import { describe, expect, test } from 'vitest';
import { TransactionCancelled } from '../../../../lambdas/runtime/base/errors.ts';
import { isOutage, isOutageOf } from '../../../../lambdas/runtime/consume/outage.ts';

function named(name: string, message = 'of AWS'): Error {
  return Object.assign(new Error(message), { name });
}

/** An error of Node.js, which has a code. */
function coded(code: string): Error {
  return Object.assign(new Error(`connect ${code}`), { code });
}

function answered(httpStatusCode: unknown): Error {
  return Object.assign(named('SomethingNew'), { $metadata: { httpStatusCode } });
}

function cancelled(...codes: readonly string[]): TransactionCancelled {
  return new TransactionCancelled(codes.map((code) => ({ code })));
}

test.each([
  // DynamoDB developer guide, "Error handling with DynamoDB"
  ...['ThrottlingException', 'ProvisionedThroughputExceededException', 'RequestLimitExceeded'],
  ...['LimitExceededException', 'InternalServerError', 'ResourceNotFoundException', 'ResourceInUseException'],
  ...['AccessDeniedException', 'UnrecognizedClientException', 'IncompleteSignatureException'],
  'MissingAuthenticationTokenException',
  // DynamoDB API reference, TransactWriteItems and UpdateItem
  ...['TransactionConflictException', 'TransactionInProgressException', 'ReplicatedWriteConflictException'],
  // DynamoDB API reference, "Common Error Types"
  ...['InternalFailure', 'ServiceUnavailable', 'NotAuthorized', 'OptInRequired', 'RequestExpired'],
  ...['ExpiredTokenException', 'InvalidClientTokenId'],
  // IAM user guide, "Troubleshoot Signature Version 4 signing"
  ...['InvalidSignatureException', 'SignatureDoesNotMatch'],
  // Lambda API reference, Invoke
  ...['KMSAccessDeniedException', 'KMSDisabledException', 'KMSInvalidStateException', 'KMSNotFoundException'],
  // AWS SDK for JavaScript
  ...[
    'CredentialsProviderError',
    'TokenProviderError',
    'TimeoutError',
    'RequestTimeoutException',
    'AbortError',
  ],
])('the AWS error %s is an outage', (name) => {
  expect(isOutage(named(name))).toBe(true);
});

// Node.js, "Common system errors" and the errors of `dns`
test.each([
  ...[
    'EAI_AGAIN',
    'ECONNREFUSED',
    'ECONNRESET',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
    'EPIPE',
    'EPROTO',
  ],
  ...['EADDRNOTAVAIL', 'EMFILE', 'ENFILE', 'ETIMEDOUT'],
])('the system error %s is an outage', (code) => {
  expect(isOutage(coded(code))).toBe(true);
});

test.each([
  'ValidationException',
  'ConditionalCheckFailedException',
  'ItemCollectionSizeLimitExceededException',
  'IdempotentParameterMismatchException',
  'TypeError',
  'NotKMSAccessDeniedException',
  'ENOENT',
])('%s is not an outage', (name) => {
  expect(isOutage(named(name))).toBe(false);
});

test.each([
  [
    'KMS key disabled error: com.amazonaws.services.kms.model.DisabledException: arn:aws:kms:… is disabled.',
    true,
  ],
  ['KMS validation error: com.amazonaws.services.kms.model.NotFoundException: Key … does not exist', true],
  ['The provided key element does not match the schema', false],
  ['Invalid value: "KMS key disabled error: …"', false],
  ['KMS', false],
])('a ValidationException of DynamoDB with the message "%s" is an outage: %s', (message, outage) => {
  expect(isOutage(named('ValidationException', message))).toBe(outage);
  expect(isOutage(named('Error', message))).toBe(false);
});

test.each([undefined, null, 'ThrottlingException', 7])(
  '%j, which is not an error, is not an outage',
  (error) => {
    expect(isOutage(error)).toBe(false);
  },
);

test.each([
  [400, false],
  [499, false],
  [500, true],
  [503, true],
  ['503', false],
  [undefined, false],
])('an unknown error with the HTTP status %j is an outage: %s', (status, outage) => {
  expect(isOutage(answered(status))).toBe(outage);
});

describe('a cancelled transaction', () => {
  test.each([
    [['ThrottlingError'], true],
    [['ProvisionedThroughputExceeded', 'TransactionConflict'], true],
    [['None', 'ThrottlingError'], true],
    [['None'], false],
    [[], false],
    [['ConditionalCheckFailed', 'TransactionConflict'], false],
    [['ValidationError', 'ThrottlingError'], false],
  ])('with the reasons %j is an outage: %s', (codes, outage) => {
    expect(isOutage(cancelled(...codes))).toBe(outage);
  });

  test('is judged by all of its reasons, of which its error may name only those of the handler', () => {
    const error = cancelled('None');
    error.cause = cancelled('ThrottlingError', 'None');
    expect(isOutage(error)).toBe(true);
    error.cause = named('ThrottlingException');
    expect(isOutage(error)).toBe(false);
  });
});

describe('a missing or inaccessible table', () => {
  const put = (TableName?: string) => ({ Put: { TableName, Item: { PK: 'A', SK: 'A' } } });

  test.each([
    ['ResourceNotFoundException', [put('Orders')], false],
    ['AccessDeniedException', [put('Orders')], false],
    ['AccessDeniedException', [put(), put('Orders')], false],
    ['ThrottlingException', [put('Orders')], true],
    ['ResourceNotFoundException', [put()], true],
    ['AccessDeniedException', [put('Mailroom')], true],
    ['AccessDeniedException', [], true],
    ['ValidationException', [put()], false],
  ])('%s is an outage in a commit of %j: %s', (name, actions, outage) => {
    expect(isOutageOf(actions, 'Mailroom', named(name))).toBe(outage);
  });
});
