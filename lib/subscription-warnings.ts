import { Annotations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { isForeignEvent } from './foreign-events.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Warns of an event that the consumer both subscribes to and publishes. A handler that does so on purpose must end the chain itself. */
export function warnOfEcho(consumer: IConstruct, { events, publishes = [] }: InboxConsumerProps): void {
  for (const { source, type } of events) {
    if (!publishes.some((own) => own.source === source && own.type === type)) continue;
    Annotations.of(consumer).addWarningV2(
      `cdk-mailroom:echo-${type}`,
      `events and publishes both contain ${type} of "${source}", so the consumer receives the events it publishes. If each one triggers another, the chain is ` +
        'stopped after 32 hops, and the message is rejected with TOO_MANY_HOPS. Remove it from one of the two, or acknowledge this warning.',
    );
  }
}

/**
 * Warns of an event that no service declares. Call it at synth, when every producer is known: a misspelt event is not reported
 * anywhere else.
 */
export function warnOfSilence(consumer: IConstruct, { mailroom, events }: InboxConsumerProps): void {
  const { _declared: declared } = mailroom;
  const own = events.filter((subscribed) => !isForeignEvent(subscribed));
  for (const event of own.filter((subscribed) => !declared.has(subscribed))) {
    Annotations.of(consumer).addWarningV2(
      'cdk-mailroom:nobodyWrites',
      `events contains ${event.type} of "${event.source}", but no producer or consumer of ${mailroom.node.path} lists it ` +
        `in publishes (listed: ${declared.text}). The consumer would never receive it. Correct the source or the type, ` +
        "or add the source to the Mailroom's sources if its producer is in another app.",
    );
  }
}
