import { awsFault, isAccessFault } from '../base/aws-errors.ts';
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

/** Codes of an entry that was refused for its content (EventBridge API reference, PutEventsResultEntry). */
const EVENT_CODES = /^(InvalidArgument|MalformedDetail|ValidationException)/;
/** Classifies the failure of one entry by its error code. */
export function faultOfEntry(code: string): PublishFault {
  if (EVENT_CODES.test(code)) return 'event';
  if (isAccessFault(code)) return 'access';
  const fault = awsFault(code);
  return fault === 'throttled' || fault === 'unavailable' || code === 'NO_ANSWER' ? 'bus' : 'unknown';
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
  return isAccessFault(code) ? 'access' : 'bus';
}
