import { Annotations, Duration } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';
import { orderOfText, orderText } from '../../lambdas/runtime/base/order.ts';
import type { EventRef } from '../../lambdas/runtime/events/event.ts';
import { isExternalEvent } from '../checks/filter-problems.ts';
import { maxReceiveCount, strictWait } from '../checks/receives.ts';
import { say, unless } from '../checks/refusal.ts';
import type { ConsumerSettings } from '../checks/timings.ts';
import { aggregateOf } from '../mailroom/declared-events.ts';
import type { InboxConsumerProps } from './inbox-consumer-props.ts';

/** A strict consumer that waits for less than this dead-letters events that were only delayed. */
const WAIT_MIN = Duration.minutes(15);

/**
 * Validates the order of a consumer against its subscriptions: a message that never comes would block its aggregate.
 *
 * @returns one sentence per problem
 */
export function orderProblems({ order, events }: InboxConsumerProps): string[] {
  if (order === undefined) return [];
  const text = orderText(order);
  if (orderOfText(text) === undefined)
    return [
      `order is ${JSON.stringify(order)}, but must be made by strict(…) or latest(…). Use one of them.`,
    ];
  const numbered = events.filter((event) => aggregateOf(event) !== undefined);
  return [
    ...unless(
      numbered.length > 0,
      events.every(isExternalEvent)
        ? `order is ${text}, but events contains external events only, which carry no sequence. Omit order.`
        : `order is ${text}, but no definition in events declares sequence, so there is nothing to order. Set sequence: true in a definition of ` +
            `${events.map(({ type }) => type).join(', ')} and pass that definition, or omit order.`,
    ),
    ...numbered
      .filter(({ filter }) => order.mode === 'strict' && filter !== undefined)
      .map(
        ({ source, type }) =>
          `order is ${text}, but events contains ${type} of "${source}" with a filter: each event that it leaves out would hold up the events after it. ` +
          'List the definition itself, or use order: latest().',
      ),
  ];
}

/** At synth, when every producer is known, refuses a strict consumer that does not receive every number of its aggregates. */
export function refuseGaps(consumer: IConstruct, { mailroom, events, order }: InboxConsumerProps): void {
  if (order?.mode !== 'strict') return;
  const isWhole = (source: string, type: string) =>
    events.some((event) => event.source === source && event.type === type && event.filter === undefined);
  const gaps = (event: EventRef) => {
    const { aggregateType, types = [] } = mailroom._declared.numbersOf(event) ?? {};
    const missing = types.filter((type) => !isWhole(event.source, type));
    return unless(
      missing.length === 0,
      `The consumer ${consumer.node.path} has order ${orderText(order)}, but events does not contain every event of "${event.source}" that numbers the same ` +
        `${aggregateType}: ${missing.join(', ')}. Each of these would hold up the events after it. Add them to events without a filter, or use order: latest().`,
    );
  };
  consumer.node.addValidation({ validate: () => [...new Set(events.flatMap(gaps))] });
}

/** Warns of an order that works only under a condition. */
export function warnOfOrder(
  consumer: IConstruct,
  { order }: InboxConsumerProps,
  settings: ConsumerSettings,
): void {
  if (order === undefined) return;
  const warn = (id: string, text: string) =>
    Annotations.of(consumer).addWarningV2(`cdk-mailroom:${id}`, `order is ${orderText(order)}, but ${text}`);
  const receives = maxReceiveCount(settings);
  const wait = strictWait(receives);
  if (order.mode === 'strict' && wait.toMilliseconds() < WAIT_MIN.toMilliseconds())
    warn(
      'shortWait',
      `a message has ${receives} receives, so it waits for at most ${say(wait)} for the event before it; then it is rejected (OUT_OF_ORDER). ` +
        'Raise retry.outageTolerance, or acknowledge this warning.',
    );
}
