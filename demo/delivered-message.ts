import type { Envelope } from '../lambdas/runtime/event.ts';
import { deliveredEvent } from '../lambdas/runtime/operations/delivered-event.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../localstack/workspace.ts';

/**
 * The body of a message as the bus delivers it to a queue, under an EventBridge id of its own: that is what every
 * repeated delivery of an event has.
 *
 * @param source - the service whose event it is
 */
export function asDelivered(source: string, envelope: Envelope): string {
  return deliveredEvent(
    { source, type: envelope.type, envelope: JSON.stringify(envelope) },
    { account: LOCAL_ACCOUNT, region: LOCAL_REGION, time: envelope.occurredAt },
  );
}
