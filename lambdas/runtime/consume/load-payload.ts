import { isMailroomError } from '../base/errors.ts';
import type { HandledEvent } from '../events/external-event.ts';
import { withPayload } from '../events/payloads.ts';
import type { Received } from './consumer-context.ts';
import { inTimeOf, payloadsLate } from './in-time.ts';
import { START_MIN_MS } from './message-outcome.ts';

/**
 * Loads the payload of a message, and leaves the time that its handler needs to start.
 *
 * @throws as {@link withPayload}
 */
export function payloadInTime(
  { payloads, clock, delivery }: Received,
  event: HandledEvent,
): Promise<HandledEvent> {
  const inTime = inTimeOf(clock, delivery.endsBy, START_MIN_MS);
  return withPayload(payloads, event, (read) => inTime(read, payloadsLate));
}

/**
 * As {@link payloadInTime}, for a message that is rejected if its payload cannot be loaded: an outage of S3 counts no attempt.
 *
 * @throws `PAYLOADS_UNAVAILABLE`
 */
export async function loadPayload(
  received: Received,
  event: HandledEvent,
): Promise<{ readonly envelope: HandledEvent } | { readonly problem: unknown }> {
  try {
    return { envelope: await payloadInTime(received, event) };
  } catch (problem) {
    if (isMailroomError(problem, 'PAYLOADS_UNAVAILABLE')) throw problem;
    return { problem };
  }
}
