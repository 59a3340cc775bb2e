import { Annotations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Warns of an event that the consumer both subscribes to and publishes. A handler that does so on purpose must end the chain itself. */
export function warnOfEcho(consumer: IConstruct, { events, publishes = [] }: InboxConsumerProps): void {
  for (const { source, type } of events) {
    if (!publishes.some((own) => own.source === source && own.type === type)) continue;
    Annotations.of(consumer).addWarningV2(
      `cdk-mailroom:echo-${type}`,
      `events and publishes both hold ${type} of "${source}": the consumer sees what it publishes. If it answers each with another one, the chain is ` +
        'stopped after 32 hops, and the message is rejected with TOO_MANY_HOPS. Take it out of one of the two, or acknowledge this.',
    );
  }
}

/** Warns of an event that no service declares. Call it at synth, when every producer is known: nothing else reports a misspelt event. */
export function warnOfSilence(consumer: IConstruct, { mailroom, events }: InboxConsumerProps): void {
  const { _declared: declared } = mailroom;
  for (const event of events.filter((subscribed) => !declared.has(subscribed))) {
    Annotations.of(consumer).addWarningV2(
      'cdk-mailroom:nobodyWrites',
      `events holds ${event.type} of "${event.source}", but no producer or consumer of ${mailroom.node.path} declares in its ` +
        `publishes that it publishes it; declared are: ${declared.text}. No such event will come. Correct the source or the type, ` +
        "or add the source to the Mailroom's sources where its producer is in another app.",
    );
  }
}
