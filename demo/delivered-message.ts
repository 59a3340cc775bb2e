import { randomUUID } from 'node:crypto';
import type { Envelope } from '../lambdas/runtime/event.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../localstack/workspace.ts';

/**
 * The body of a message as the bus delivers it to a queue, under an EventBridge id of its own: that is what every
 * repeated delivery of an event has.
 *
 * @param source - the service whose event it is
 */
export function asDelivered(source: string, envelope: Envelope): string {
  return JSON.stringify({
    version: '0',
    id: randomUUID(),
    'detail-type': envelope.type,
    source,
    account: LOCAL_ACCOUNT,
    time: new Date(envelope.occurredAt).toISOString(),
    region: LOCAL_REGION,
    resources: [],
    detail: envelope,
  });
}
