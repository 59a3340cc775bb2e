import { type CloudWatchClient, GetMetricDataCommand } from '@aws-sdk/client-cloudwatch';
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { type Clock, systemClock } from '../../clock.ts';

/** The port that says how far back a queue that is not empty reaches. */
export interface QueueAges {
  /**
   * From when the oldest message is that a queue may hold, epoch milliseconds; `undefined` when nobody knows.
   *
   * @param url - the queue's
   */
  oldestAt(url: string): Promise<number | undefined>;
  /**
   * How far back at least {@link QueueAges.oldestAt} reaches, milliseconds: while the queue is not empty, nothing younger can be
   * known to be lost.
   */
  atLeastMs(url: string): Promise<number>;
}

/** SQS's metrics may come this late. */
const METRIC_DELAY_MS = 20 * 60_000;

/**
 * Reads it from the metric `ApproximateAgeOfOldestMessage`. That leaves out what was received three times and more (SQS
 * developer guide, available CloudWatch metrics). A working consumer has a row for each of those; one whose function cannot
 * even start has not, and its messages leave for the dead-letter queue when their receives are spent. So nothing younger
 * than that takes is called older than the oldest message.
 *
 * @example
 * ```ts
 * const ages = cloudWatchQueueAges({ cloudwatch: new CloudWatchClient(clientSettings), sqs: new SQSClient(clientSettings) });
 * ```
 */
export function cloudWatchQueueAges(deps: {
  readonly cloudwatch: CloudWatchClient;
  readonly sqs: SQSClient;
  /** @default the machine's */
  readonly clock?: Clock;
}): QueueAges {
  const { cloudwatch, sqs, clock = systemClock } = deps;

  /** How long a message may be handed out again and again: its receives, a visibility timeout each. */
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
