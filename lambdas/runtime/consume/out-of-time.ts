import { MailroomError } from '../base/errors.ts';

/** The time before the function is stopped by which the batch response must be sent, milliseconds. */
export const RESPONSE_MARGIN_MS = 1_000;

/** The error of a handler that was still running when the function's time was up. */
export function outOfTime(cause?: unknown): MailroomError {
  return new MailroomError('OUT_OF_TIME', "The handler was still running when the function's time was up.", {
    cause,
  });
}
