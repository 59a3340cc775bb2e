import type { Envelope } from '../lambdas/runtime/events/event.ts';
import { deliveredEvent } from '../lambdas/runtime/operations/delivered-event.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../localstack/workspace.ts';

/**
 * A message body as the bus delivers it to a queue, with a new EventBridge id: every redelivery of an event has a different one.
 *
 * @param source - the service that owns the event
 */
export function asDelivered(source: string, envelope: Envelope): string {
  return deliveredEvent(
    { source, type: envelope.type, envelope: JSON.stringify(envelope) },
    { account: LOCAL_ACCOUNT, region: LOCAL_REGION, time: envelope.occurredAt },
  );
}
