import { errorCode } from '../errors.ts';

/**
 * Whose fault a failed publish is:
 *
 * - `bus`: the broker's (a throttle, an internal failure, no answer). It passes; no attempt of the event counts.
 * - `access`: the configuration's (authorization, a wrong account). Trying at once again cannot help; no attempt counts.
 * - `event`: the event was refused for what it is. It is DEAD.
 * - `unknown`: this one entry failed for a reason we do not know. An attempt counts, so that it cannot go on for ever.
 */
export type PublishFault = 'bus' | 'access' | 'event' | 'unknown';

/** Per-entry error codes of PutEvents (EventBridge API reference, PutEventsResultEntry). */
const EVENT_CODES = /^(InvalidArgument|MalformedDetail|ValidationException)/;
const BUS_CODES =
  /^(InternalFailure|InternalException|InternalError|NoAnswer|ServiceUnavailable\w*|RequestLimitExceeded)|Throttl/;
const ACCESS_CODES =
  /^(AccessDenied|NotAuthorized|UnauthorizedOperation|InvalidAccountId|InvalidClientTokenId|InvalidSignature|UnrecognizedClient|ExpiredToken|IncompleteSignature|MissingAuthentication|OptInRequired|InvalidToken|CredentialsProviderError|SignatureDoesNotMatch)/;

/** Whose fault the failure of one entry is, by its error code. */
export function faultOfEntry(code: string): PublishFault {
  if (EVENT_CODES.test(code)) return 'event';
  if (ACCESS_CODES.test(code)) return 'access';
  return BUS_CODES.test(code) ? 'bus' : 'unknown';
}

/**
 * Whose fault the failure of a whole call is. Only a validation error can be an event's; what else fails a whole
 * call (a time-out, a lost connection, a 5xx) is the broker's.
 */
export function faultOfCall(error: unknown): PublishFault {
  const code = errorCode(error);
  if (
    /^(ValidationException|ValidationError|RequestEntityTooLarge\w*|SerializationException|InvalidArgument)/.test(
      code,
    )
  ) {
    return 'event';
  }
  return ACCESS_CODES.test(code) ? 'access' : 'bus';
}
