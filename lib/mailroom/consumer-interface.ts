import { Duration } from 'aws-cdk-lib';
import type { Rule } from 'aws-cdk-lib/aws-events';
import type { Alias, Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import type { Queue } from 'aws-cdk-lib/aws-sqs';
import type { IConstruct } from 'constructs';
import type { EventOrder } from '../../lambdas/runtime/base/order.ts';
import { between, unless } from '../checks/refusal.ts';

/** The default of {@link ConsumerSlo.percentile}. */
export const SLO_PERCENTILE = 99;

/**
 * A consumer's latency objective (SLO), from the commit of an event to the end of its processing.
 *
 * @example
 * ```ts
 * const slo: ConsumerSlo = { latency: Duration.seconds(30), critical: true };
 * ```
 */
export interface ConsumerSlo {
  /** From the event's commit to the message's PROCESSED, 1 second to 7 days. */
  readonly latency: Duration;
  /** The share of messages that must meet it, in percent, above 0 and below 100. @default 99 */
  readonly percentile?: number;
  /** Makes a missed SLO page, and a consumer that is stalled, fails every attempt or fills its dead-letter queues. @default false: a ticket */
  readonly critical?: boolean;
}

/**
 * Validates an SLO.
 *
 * @returns one sentence per problem; none without an SLO
 */
export function sloProblems(slo: ConsumerSlo | undefined): string[] {
  if (slo === undefined) return [];
  const percentile = slo.percentile ?? SLO_PERCENTILE;
  return [
    ...between('slo.latency', slo.latency, Duration.seconds(1), Duration.days(7), ''),
    ...unless(
      percentile > 0 && percentile < 100,
      `slo.percentile is ${percentile}, but must be above 0 and below 100: it is the percentage of messages that meet the ` +
        'latency. Use 99 for 99 %.',
    ),
  ];
}

/** A consumer of a `Mailroom` as its alarms and metrics see it. Every `InboxConsumer` is one. */
export interface IInboxConsumer extends IConstruct {
  /** Its name, part of the keys of its inbox rows. */
  readonly name: string;
  /** The service it belongs to. */
  readonly service: string;
  /** Its SLO, if it has one. */
  readonly slo?: ConsumerSlo | undefined;
  /** Its order, if it has one. */
  readonly order?: EventOrder | undefined;
  /** Its source queue, which receives events from the rules and redriven messages; or its existing queue. */
  readonly queue: Queue;
  /** Messages that SQS moved here after `maxReceiveCount` receives: rejected, or out of attempts. */
  readonly deadLetterQueue: Queue;
  /**
   * Events that EventBridge could not deliver to the queue for a day, or had no permission to deliver. Absent for a consumer of
   * an existing queue.
   */
  readonly undeliveredQueue?: Queue | undefined;
  /** Sends exactly the Mailroom events that the consumer subscribes to. Absent for a consumer of an existing queue. */
  readonly rule?: Rule | undefined;
  /** Sends exactly the external events that the consumer subscribes to. Absent if there are none, and for a consumer of an existing queue. */
  readonly externalRule?: Rule | undefined;
  /** The name of the bus of that rule. */
  readonly externalBus?: string | undefined;
  /** Runs its handlers. Grant it any access it needs beyond the Mailroom table. */
  readonly function: LambdaFunction;
  /** The alias that its mapping invokes. Absent: the mapping invokes the function itself. */
  readonly alias?: Alias | undefined;
}
