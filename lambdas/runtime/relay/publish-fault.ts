import { errorCode } from '../base/errors.ts';

/**
 * The origin of a failed publish:
 *
 * - `bus`: the broker (throttling, an internal failure, no response). It passes; the event's attempts are not counted.
 * - `access`: the configuration (authorization, a wrong account). An immediate retry cannot succeed; no attempt is counted.
 * - `event`: the event itself was refused. It becomes DEAD.
 * - `unknown`: this entry failed for an unknown reason. An attempt is counted, so that retries are limited.
 */
export type PublishFault = 'bus' | 'access' | 'event' | 'unknown';

/** Per-entry error codes of PutEvents (EventBridge API reference, PutEventsResultEntry). */
const EVENT_CODES = /^(InvalidArgument|MalformedDetail|ValidationException)/;
const BUS_CODES =
  /^(InternalFailure|InternalException|InternalError|NO_ANSWER|ServiceUnavailable\w*|RequestLimitExceeded)|Throttl/;
const ACCESS_CODES =
  /^(AccessDenied|NotAuthorized|UnauthorizedOperation|InvalidAccountId|InvalidClientTokenId|InvalidSignature|UnrecognizedClient|ExpiredToken|IncompleteSignature|MissingAuthentication|OptInRequired|InvalidToken|CredentialsProviderError|SignatureDoesNotMatch)/;

/** Classifies the failure of one entry by its error code. */
export function faultOfEntry(code: string): PublishFault {
  if (EVENT_CODES.test(code)) return 'event';
  if (ACCESS_CODES.test(code)) return 'access';
  return BUS_CODES.test(code) ? 'bus' : 'unknown';
}

/**
 * Classifies the failure of a whole call. Only a validation error can be caused by an event; any other failure of a whole call
 * (a timeout, a lost connection, a 5xx) is the broker's.
 */
export function faultOfCall(error: unknown): PublishFault {
  const code = errorCode(error);
  if (
    /^(ValidationException|ValidationError|RequestEntityTooLarge\w*|SerializationException|InvalidArgument|InvalidInput)/.test(
      code,
    )
  ) {
    return 'event';
  }
  return ACCESS_CODES.test(code) ? 'access' : 'bus';
}
