import { Annotations, Aspects } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { PayloadBucket } from '../mailroom/payload-bucket.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/**
 * Refuses filters of events that another Mailroom on the bus publishes with payloads, and warns of these events: the consumer may not read that
 * Mailroom's bucket. At synth, when every Mailroom and producer of the app is known.
 */
export function refuseNeighborPayloads(consumer: IConstruct, props: InboxConsumerProps): void {
  if (!props.mailroom._shared) return;
  consumer.node.addValidation({
    validate: () =>
      neighbors(consumer, props).flatMap(({ bucket, events }) =>
        bucket._filterProblems(events, props.queue?.fairBy),
      ),
  });
  Aspects.of(consumer).add({ visit: (node) => node === consumer && warnOfNeighbors(consumer, props) });
}

function warnOfNeighbors(consumer: IConstruct, props: InboxConsumerProps): void {
  for (const { bucket, events } of neighbors(consumer, props))
    for (const { source, type } of bucket._stored(events))
      Annotations.of(consumer).addWarningV2(
        `cdk-mailroom:payloadElsewhere-${type}`,
        `events contains ${type} of "${source}", and its Mailroom ${bucket.node.scope?.node.path} keeps large payloads in a bucket that consumers of another Mailroom may not ` +
          'read: such an event is rejected with PAYLOAD_NOT_LOADED. List it in payloads.inline of that Mailroom, or acknowledge this warning.',
      );
}

/** The buckets of the other Mailrooms on the bus, each with the events of the consumer that its Mailroom publishes. */
function neighbors(consumer: IConstruct, { mailroom, events }: InboxConsumerProps) {
  return consumer.node.root.node
    .findAll()
    .filter((node) => node instanceof PayloadBucket)
    .flatMap((bucket) => {
      const owner = bucket.node.scope as InboxConsumerProps['mailroom'];
      const isNeighbor = owner !== mailroom && owner.bus.eventBusName === mailroom.bus.eventBusName;
      return isNeighbor ? [{ bucket, events: events.filter((event) => owner._declared.has(event)) }] : [];
    });
}
