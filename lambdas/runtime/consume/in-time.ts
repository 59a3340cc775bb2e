import { type Clock, withDeadline } from '../base/clock.ts';
import { MailroomError } from '../base/errors.ts';
import { outOfTime, RESPONSE_MARGIN_MS } from './out-of-time.ts';

/**
 * Waits for work of a message until the batch must be answered. The work continues then, and its result is ignored.
 *
 * @param late - the error at that time @default that of a handler that is still running
 */
export type InTime = <T>(work: Promise<T>, late?: () => Error) => Promise<T>;

/** Makes an {@link InTime}. @param marginMs - the time that is left after the wait, milliseconds @default that for the batch response */
export function inTimeOf(clock: Clock, endsBy: number, marginMs = RESPONSE_MARGIN_MS): InTime {
  return (work, late = outOfTime) =>
    withDeadline(clock, endsBy - clock.now() - marginMs, work, (): never => {
      throw late();
    });
}

/**
 * The time before the function is stopped by which a leased commit ends without the objects of its events, milliseconds: earlier than the wait for
 * its handler, which the commit's error ends, so that the message is released and no attempt is counted.
 */
export const COMMIT_MARGIN_MS = RESPONSE_MARGIN_MS + 250;

/** The error of objects that S3 had not read or written when the function's time was nearly up: an outage, which counts no attempt. */
export function payloadsLate(): MailroomError {
  return new MailroomError(
    'PAYLOADS_UNAVAILABLE',
    "S3 had not answered when the function's time was nearly up. If it persists, raise the timeout of the function.",
  );
}
