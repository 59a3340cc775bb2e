import { Annotations, Stack } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import {
  type ExternalSubscription,
  externalEventProblems,
} from '../../lambdas/runtime/events/external-event.ts';
import { environmentText, isElsewhere } from '../checks/environment.ts';
import { filtersProblems, isExternalEvent, patternLength } from '../checks/filter-problems.ts';
import { serviceNameProblems } from '../checks/names.ts';
import { unless } from '../checks/refusal.ts';
import type { ConsumerSettings } from '../checks/timings.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** A rule without a source or a type would match either every event on the bus or none. */
export function subscriptionProblems(
  consumer: IConstruct,
  props: InboxConsumerProps,
  { inboxRetention }: Pick<ConsumerSettings, 'inboxRetention'>,
): string[] {
  const events = props.events.filter((event) => !isExternalEvent(event));
  if (props.events.length === 0)
    return ['events is empty. List the events that the consumer subscribes to, e.g. [OrderPlaced].'];
  const sources = new Set(events.map(({ source }) => source));
  return [
    ...externalSubscriptionProblems(consumer, props),
    ...[...sources].flatMap((source) => serviceNameProblems('the source of an event in events', source)),
    ...events.flatMap(({ source, type }) =>
      typeof type === 'string' && type !== ''
        ? []
        : [`events contains an event of "${source}" without a type. Use a definition, or { source, type }.`],
    ),
    ...filtersProblems(props.events),
    ...fairByProblems(props),
    ...(props.mailroom._payloads?._consumerProblems(props.events, props.queue?.fairBy, inboxRetention) ?? []),
  ];
}

/** The paths of texts in an envelope. EventBridge takes dots, dashes, underscores and alphanumeric characters (user guide, "Target parameters"). */
const FAIR_BY = /^\$\.detail\.(?:aggregateId|aggregateType|correlationId|type|data(?:\.[\w-]+)+)$/;

/** The longest path (EventBridge API reference, SqsParameters). */
const FAIR_BY_LENGTH_MAX = 100;

function fairByProblems({ events, queue = {} }: InboxConsumerProps): string[] {
  const { existing, fairBy } = queue;
  if (fairBy === undefined) return [];
  return [
    ...unless(
      FAIR_BY.test(fairBy) && fairBy.length <= FAIR_BY_LENGTH_MAX,
      `queue.fairBy is "${fairBy}", but must be the path of a text in the envelope, of at most ${FAIR_BY_LENGTH_MAX} characters: "$.detail." followed by ` +
        'aggregateId, aggregateType, correlationId, type, or a field of data. Use one like "$.detail.data.tenantId".',
    ),
    ...unless(
      existing === undefined,
      'queue.fairBy and queue.existing are both given, but the senders of an existing queue set the message groups. Omit fairBy.',
    ),
    ...unless(
      existing !== undefined || !events.every(isExternalEvent),
      'queue.fairBy is given, but events contains external events only, which have no envelope. Omit fairBy.',
    ),
  ];
}

/** Validates the external events of a consumer, and their bus or queue. */
function externalSubscriptionProblems(consumer: IConstruct, props: InboxConsumerProps): string[] {
  const { events, queue, externalBus, movedFrom = [] } = props;
  const external = events.filter(isExternalEvent);
  const names = events.map(({ source, type }) => `${type} of "${source}"`);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  return [
    ...external.flatMap((event) =>
      externalEventProblems(event).map(
        (problem) => `events contains the external event ${event.type}: ${problem}.`,
      ),
    ),
    ...external
      .filter((event: Subscription) => event.filter !== undefined)
      .map(
        ({ source, type }) =>
          `events contains the external event ${type} of "${source}" with a filter, but a filter needs the envelope of a Mailroom event. List the ` +
          'definition itself, and return early from the handler for events that it does not need.',
      ),
    ...(external.length === 0 ? [] : twice).map(
      (name) => `events contains ${name} twice. A consumer handles each event once: remove one.`,
    ),
    ...unless(
      externalBus === undefined || external.length > 0,
      'externalBus is given, but events contains no external event. Add a definition made by externalEvent, or omit externalBus.',
    ),
    // Its inbox row under the old name is the only sign that an external event was processed: its id has no time.
    ...unless(
      external.length === 0 || movedFrom.length === 0,
      `movedFrom is given, but events contains the external event ${external[0]?.type}. After a rename, each repeat of one that was processed under an ` +
        'earlier name would run again. Keep the name of a consumer of external events, or let another consumer handle them.',
    ),
    ...busProblems(consumer, props),
    ...(queue?.existing === undefined ? [] : ofQueueProblems(events, external)),
  ];
}

function busProblems(consumer: IConstruct, { mailroom, externalBus }: InboxConsumerProps): string[] {
  if (externalBus === undefined) return [];
  return [
    ...unless(
      externalBus !== mailroom.bus,
      'externalBus is the bus of the Mailroom, which accepts Mailroom events only. Subscribe to their definitions made by defineEvent, or omit ' +
        'externalBus.',
    ),
    // The rule names the bus without its account: it would be created on a bus of the same name, or fail to deploy.
    ...unless(
      !isElsewhere(externalBus.env, consumer),
      `externalBus is in ${environmentText(externalBus.env)}, but a rule must be in the account and the region of its bus: here ` +
        `${environmentText(Stack.of(consumer))}. Let a rule of that bus send its events to a bus of this stack, and pass that one.`,
    ),
  ];
}

function ofQueueProblems(events: readonly EventRef[], external: readonly ExternalSubscription[]): string[] {
  return [
    ...events
      .filter((event) => !isExternalEvent(event))
      .map(
        ({ source, type }) =>
          `events contains ${type} of "${source}", a Mailroom event, but no rule fills the existing queue. Define it with externalEvent, or ` +
          'omit queue.existing.',
      ),
    ...unless(
      external.length <= 1,
      `events contains ${external.length} external events, but a message of an existing queue does not name its event. List one, with a schema ` +
        'that accepts all messages.',
    ),
    ...external
      .filter((event) => event.external.id === undefined)
      .map(
        ({ type }) =>
          `The external event ${type} has no id, but SQS's message id changes with every send and redrive. Name the field that identifies it ` +
          "in its definition, e.g. id: 'id'.",
      ),
  ];
}

/** Warns of external events that are identified by EventBridge's id. */
export function warnOfExternalIds(consumer: IConstruct, { events, queue }: InboxConsumerProps): void {
  if (queue?.existing !== undefined) return; // refused
  for (const { source, type, external } of events.filter(isExternalEvent)) {
    if (external.id !== undefined) continue;
    Annotations.of(consumer).addWarningV2(
      `cdk-mailroom:externalId-${type}`,
      `The external event ${type} of "${source}" has no id, so EventBridge's id identifies it. If its publisher publishes it again, its id ` +
        'changes and it is handled again. Set id to the fields that identify it in its definition, or acknowledge this warning.',
    );
  }
}

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
  const own = events.filter(
    // On a shared bus, services of other apps publish what no one declares here.
    (event) => !isExternalEvent(event) && !(mailroom._shared && !declared.sources.includes(event.source)),
  );
  for (const event of own.filter((subscribed) => !declared.has(subscribed))) {
    Annotations.of(consumer).addWarningV2(
      'cdk-mailroom:nobodyWrites',
      `events contains ${event.type} of "${event.source}", but no producer or consumer of ${mailroom.node.path} lists it ` +
        `in publishes (listed: ${declared.text}). The consumer would never receive it. Correct the source or the type, ` +
        "or add the source to the Mailroom's sources if its producer is in another app.",
    );
  }
}
