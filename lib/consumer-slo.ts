import { Duration } from 'aws-cdk-lib';
import { between, unless } from './refusal.ts';

/**
 * What a consumer promises: so soon after its event was committed is a message processed.
 *
 * @example
 * ```ts
 * const slo: ConsumerSlo = { latency: Duration.seconds(30), critical: true };
 * ```
 */
export interface ConsumerSlo {
  /** From the event's commit to the message's PROCESSED, 1 second to 7 days. */
  readonly latency: Duration;
  /** Of how many in a hundred messages it is promised, above 0 and below 100. @default 99 */
  readonly percentile?: number;
  /** Whether somebody is paged when it is broken, or when the consumer stands still. @default false: a ticket */
  readonly critical?: boolean;
}

/**
 * What is wrong with a promise.
 *
 * @returns a sentence for each fault; none when there is no promise
 */
export function sloProblems(slo: ConsumerSlo | undefined): string[] {
  if (slo === undefined) return [];
  const percentile = slo.percentile ?? 99;
  return [
    ...between('slo.latency', slo.latency, Duration.seconds(1), Duration.days(7), ''),
    ...unless(
      percentile > 0 && percentile < 100,
      `slo.percentile is ${percentile}, but must be above 0 and below 100: it is of how many in a hundred messages ` +
        'the latency is promised. Write 99 for ninety-nine of a hundred.',
    ),
  ];
}
