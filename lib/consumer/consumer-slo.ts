import { Duration } from 'aws-cdk-lib';
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
