import { type CloudWatchClient, GetMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { type Clock, systemClock } from '../../base/clock.ts';

/** The port that reports the age of the oldest message in a queue that is not empty. */
export interface QueueAges {
  /**
   * Returns the earliest send time of the messages that a queue may hold, epoch milliseconds; `undefined` if it is unknown.
   *
   * @param url - the queue's URL
   */
  oldestAt(url: string): Promise<number | undefined>;
  /**
   * Returns the minimum period that {@link QueueAges.oldestAt} covers, milliseconds: while the queue is not empty, no younger
   * message can be proven lost.
   */
  atLeastMs(url: string): Promise<number>;
}

/** The maximum delay of SQS's metrics, milliseconds. */
const METRIC_DELAY_MS = 20 * 60_000;

/**
 * Reads the age from the metric `ApproximateAgeOfOldestMessage`. That metric excludes messages that were received three or more
 * times (SQS developer guide, available CloudWatch metrics). A working consumer has a row for each of those. A consumer whose
 * function cannot start has none, and SQS moves its messages to the dead-letter queue when their receives are exhausted.
 * Therefore no message younger than the time that its receives can take is reported as older than the oldest message.
 *
 * @example
 * ```ts
 * const ages = cloudWatchQueueAges({ cloudwatch: new CloudWatchClient(clientSettings), sqs: new SQSClient(clientSettings) });
 * ```
 */
export function cloudWatchQueueAges(deps: {
  readonly cloudwatch: CloudWatchClient;
  readonly sqs: SQSClient;
  /** @default the machine's clock */
  readonly clock?: Clock;
}): QueueAges {
  const { cloudwatch, sqs, clock = systemClock } = deps;

  /** The maximum time during which a message can be redelivered: its receives, with one visibility timeout each. */
  async function receivesMs(url: string): Promise<number> {
    const { Attributes = {} } = await sqs.send(
      new GetQueueAttributesCommand({
        QueueUrl: url,
        AttributeNames: ['VisibilityTimeout', 'RedrivePolicy'],
      }),
    );
    const { maxReceiveCount } = JSON.parse(Attributes.RedrivePolicy ?? '{}') as { maxReceiveCount?: unknown };
    const receives = Number(maxReceiveCount ?? Number.NaN);
    const ms = receives * Number(Attributes.VisibilityTimeout ?? Number.NaN) * 1_000;
    return Number.isFinite(ms) ? ms : Number.POSITIVE_INFINITY;
  }

  return {
    atLeastMs: receivesMs,
    oldestAt: async (url) => {
      const now = clock.now();
      const QueueName = url.slice(url.lastIndexOf('/') + 1);
      const { MetricDataResults = [] } = await cloudwatch.send(
        new GetMetricDataCommand({
          StartTime: new Date(now - METRIC_DELAY_MS),
          EndTime: new Date(now),
          ScanBy: 'TimestampDescending',
          MetricDataQueries: [
            {
              Id: 'age',
              MetricStat: {
                Metric: {
                  Namespace: 'AWS/SQS',
                  MetricName: 'ApproximateAgeOfOldestMessage',
                  Dimensions: [{ Name: 'QueueName', Value: QueueName }],
                },
                Period: 60,
                Stat: 'Maximum',
              },
            },
          ],
        }),
      );
      const { Timestamps: [at] = [], Values: [ageS] = [] } = MetricDataResults[0] ?? {};
      if (at === undefined || ageS === undefined) return undefined;
      const oldestAt = Math.min(at.getTime() - ageS * 1_000, now - (await receivesMs(url)));
      return Number.isFinite(oldestAt) ? oldestAt : undefined;
    },
  };
}
