import { Annotations, Stack, Token, TokenComparison } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import type { Subscription } from '../../lambdas/runtime/events/data-filter.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import {
  type ForeignSubscription,
  foreignEventProblems,
} from '../../lambdas/runtime/events/foreign-event.ts';
import { isForeignEvent } from '../checks/filter-problems.ts';
import { unless } from '../checks/refusal.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** Validates the foreign events of a consumer, and their bus or queue. */
export function foreignSubscriptionProblems(consumer: IConstruct, props: InboxConsumerProps): string[] {
  const { events, queue, foreignBus, movedFrom = [] } = props;
  const foreign = events.filter(isForeignEvent);
  const names = events.map(({ source, type }) => `${type} of "${source}"`);
  const twice = names.filter((name, index) => names.indexOf(name) !== index);
  return [
    ...foreign.flatMap((event) =>
      foreignEventProblems(event).map(
        (problem) => `events contains the foreign event ${event.type}: ${problem}.`,
      ),
    ),
    ...foreign
      .filter((event: Subscription) => event.filter !== undefined)
      .map(
        ({ source, type }) =>
          `events contains the foreign event ${type} of "${source}" with a filter, but a filter needs the envelope of a Mailroom event. List the ` +
          'definition itself, and return early from the handler for events that it does not need.',
      ),
    ...(foreign.length === 0 ? [] : twice).map(
      (name) => `events contains ${name} twice. A consumer handles each event once: remove one.`,
    ),
    ...unless(
      foreignBus === undefined || foreign.length > 0,
      'foreignBus is given, but events contains no foreign event. Add a definition made by foreignEvent, or omit foreignBus.',
    ),
    // Its inbox row under the old name is the only sign that a foreign event was processed: its id has no time.
    ...unless(
      foreign.length === 0 || movedFrom.length === 0,
      `movedFrom is given, but events contains the foreign event ${foreign[0]?.type}. After a rename, each repeat of one that was processed under an ` +
        'earlier name would run again. Keep the name of a consumer of foreign events, or let another consumer handle them.',
    ),
    ...busProblems(consumer, props),
    ...(queue === undefined ? [] : ofQueueProblems(events, foreign)),
  ];
}

function busProblems(consumer: IConstruct, { mailroom, foreignBus }: InboxConsumerProps): string[] {
  if (foreignBus === undefined) return [];
  const { account, region } = Stack.of(consumer);
  const isElsewhere = [
    [foreignBus.env.account, account],
    [foreignBus.env.region, region],
  ].some(([its, own]) => Token.compareStrings(its ?? '', own ?? '') === TokenComparison.DIFFERENT);
  return [
    ...unless(
      foreignBus !== mailroom.bus,
      'foreignBus is the bus of the Mailroom, which accepts Mailroom events only. Subscribe to their definitions made by defineEvent, or omit ' +
        'foreignBus.',
    ),
    // The rule names the bus without its account: it would be created on a bus of the same name, or fail to deploy.
    ...unless(
      !isElsewhere,
      `foreignBus is in ${foreignBus.env.account}, ${foreignBus.env.region}, but a rule must be in the account and the region of its bus: here ` +
        `${account}, ${region}. Let a rule of that bus send its events to a bus of this stack, and pass that one.`,
    ),
  ];
}

function ofQueueProblems(events: readonly EventRef[], foreign: readonly ForeignSubscription[]): string[] {
  return [
    ...events
      .filter((event) => !isForeignEvent(event))
      .map(
        ({ source, type }) =>
          `events contains ${type} of "${source}", a Mailroom event, but no rule fills the existing queue. Define it with foreignEvent, or ` +
          'omit queue.',
      ),
    ...unless(
      foreign.length <= 1,
      `events contains ${foreign.length} foreign events, but a message of an existing queue does not name its event. List one, with a schema ` +
        'that accepts all messages.',
    ),
    ...foreign
      .filter((event) => event.foreign.id === undefined)
      .map(
        ({ type }) =>
          `The foreign event ${type} has no id, but SQS's message id changes with every send and redrive. Name the field that identifies it ` +
          "in its definition, e.g. id: 'id'.",
      ),
  ];
}

/** Warns of foreign events that are identified by EventBridge's id. */
export function warnOfForeignIds(consumer: IConstruct, { events, queue }: InboxConsumerProps): void {
  if (queue !== undefined) return; // refused
  for (const { source, type, foreign } of events.filter(isForeignEvent)) {
    if (foreign.id !== undefined) continue;
    Annotations.of(consumer).addWarningV2(
      `cdk-mailroom:foreignId-${type}`,
      `The foreign event ${type} of "${source}" has no id, so EventBridge's id identifies it. If its publisher publishes it again, its id ` +
        'changes and it is handled again. Set id to the fields that identify it in its definition, or acknowledge this warning.',
    );
  }
}
