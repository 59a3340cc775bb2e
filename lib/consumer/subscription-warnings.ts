import { Annotations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { isForeignEvent, patternLength } from '../checks/filter-problems.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Warns of subscriptions that work only under a condition. */
export function warnOfSubscriptions(consumer: IConstruct, props: InboxConsumerProps): void {
  warnOfEcho(consumer, props);
  warnOfLongPattern(consumer, props);
}

/** Warns of an event that the consumer both subscribes to and publishes. A handler that does so on purpose must end the chain itself. */
function warnOfEcho(consumer: IConstruct, { events, publishes = [] }: InboxConsumerProps): void {
  for (const { source, type } of events) {
    if (!publishes.some((own) => own.source === source && own.type === type)) continue;
    Annotations.of(consumer).addWarningV2(
      `cdk-mailroom:echo-${type}`,
      `events and publishes both contain ${type} of "${source}", so the consumer receives the events it publishes. If each one triggers another, the chain is ` +
        'stopped after 32 hops, and the message is rejected with TOO_MANY_HOPS. Remove it from one of the two, or acknowledge this warning.',
    );
  }
}

/** The default quota for the length of a rule's pattern, which can be raised (EventBridge quotas, "Event pattern size"). */
const PATTERN_LENGTH_QUOTA = 2_048;

/** Warns of a pattern that an account with default quotas refuses at deployment. */
function warnOfLongPattern(consumer: IConstruct, { events }: InboxConsumerProps): void {
  const length = patternLength(events);
  if (length <= PATTERN_LENGTH_QUOTA) return;
  Annotations.of(consumer).addWarningV2(
    'cdk-mailroom:longPattern',
    `events make a rule pattern of ${length} characters, and the default quota of an account is ${PATTERN_LENGTH_QUOTA}. Raise the quota "Event pattern ` +
      'size" of EventBridge before you deploy, then acknowledge this warning; or shorten the filters.',
  );
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
