import { expect, test } from 'vitest';
import { type AwsFault, awsFault, isAccessFault } from '../../../../lambdas/runtime/base/aws-errors.ts';

const NAMES: Readonly<Record<AwsFault, readonly string[]>> = {
  throttled: [
    'ThrottlingException',
    'KMSThrottlingException',
    'RequestThrottled',
    'ProvisionedThroughputExceededException',
    'RequestLimitExceeded',
    'LimitExceededException',
    'TooManyRequestsException',
  ],
  unavailable: [
    'InternalServerError',
    'InternalFailure',
    'InternalException',
    'InternalError',
    'ServiceUnavailableException',
  ],
  unreachable: [
    'TimeoutError',
    'RequestTimeoutException',
    'AbortError',
    'NetworkingError',
    'EAI_AGAIN',
    'ECONNREFUSED',
    'EHOSTUNREACH',
    'ENETUNREACH',
    'ENOTFOUND',
    'EPIPE',
    'EPROTO',
    'EADDRNOTAVAIL',
    'EMFILE',
    'ENFILE',
    'ETIMEDOUT',
  ],
  conflict: [
    'TransactionConflictException',
    'TransactionInProgressException',
    'ReplicatedWriteConflictException',
    'ResourceInUseException',
  ],
  'no-credentials': [
    'CredentialsProviderError',
    'TokenProviderError',
    'CredentialsError',
    'MissingAuthenticationTokenException',
  ],
  expired: ['ExpiredTokenException', 'ExpiredToken', 'RequestExpired'],
  'unknown-identity': [
    'UnrecognizedClientException',
    'InvalidClientTokenId',
    'InvalidToken',
    'InvalidAccountIdException',
  ],
  signature: ['InvalidSignatureException', 'IncompleteSignatureException', 'SignatureDoesNotMatch'],
  denied: [
    'AccessDenied',
    'AccessDeniedException',
    'NotAuthorizedForSourceException',
    'UnauthorizedOperation',
    'AuthorizationErrorException',
    'OptInRequired',
  ],
  key: ['KMSDisabledException', 'KMSAccessDeniedException', 'KmsAccessDenied'],
  missing: [
    'AWS.SimpleQueueService.NonExistentQueue',
    'ResourceNotFoundException',
    'QueueDoesNotExist',
    'NotFoundException',
    'ParameterNotFound',
  ],
};

const CASES = Object.entries(NAMES).flatMap(([fault, names]) => names.map((name) => [name, fault] as const));

test.each(CASES)('the AWS error %s means %s', (name, fault) => {
  expect(awsFault(name)).toBe(fault);
});

test.each([
  'ConditionalCheckFailedException',
  'ValidationException',
  'TypeError',
  'TRANSACTION_CANCELLED',
  '',
])('the name "%s" has no meaning of AWS', (name) => {
  expect(awsFault(name)).toBeUndefined();
});

test('a fault of the configuration is one of the credentials or of permissions', () => {
  const faults = new Set(CASES.flatMap(([name, fault]) => (isAccessFault(name) ? [fault] : [])));
  expect([...faults]).toEqual(['no-credentials', 'expired', 'unknown-identity', 'signature', 'denied']);
});
