import type { CloudWatchClient } from '@aws-sdk/client-cloudwatch';
import type { SQSClient } from '@aws-sdk/client-sqs';
import { expect, test } from 'vitest';
import { cloudWatchQueueAges } from '../../../../../lambdas/runtime/operations/audit/audit-queue-age.ts';
import { manualClock } from '../../../../../testing/index.ts';

const NOW = Date.UTC(2026, 0, 1, 12);
const URL = 'https://sqs.eu-west-1.amazonaws.com/123456789012/payments-queue';

/** Ages by canned answers: the datapoints of the metric, newest first, and the queue's attributes. */
function ages(points: readonly (readonly [secondsAgo: number, ageS: number])[], attributes: object) {
  const asked: unknown[] = [];
  const client = (answer: object) => ({
    send: async ({ input }: { input: unknown }) => {
      asked.push(input);
      return answer;
    },
  });
  const result = {
    Timestamps: points.map(([secondsAgo]) => new Date(NOW - secondsAgo * 1_000)),
    Values: points.map(([, ageS]) => ageS),
  };
  const made = cloudWatchQueueAges({
    cloudwatch: client({ MetricDataResults: [result] }) as unknown as CloudWatchClient,
    sqs: client({ Attributes: attributes }) as unknown as SQSClient,
    clock: manualClock(NOW),
  });
  return { oldestAt: () => made.oldestAt(URL), atLeastMs: () => made.atLeastMs(URL), asked };
}

const QUEUE = { VisibilityTimeout: '60', RedrivePolicy: '{"maxReceiveCount":"8"}' };

test('the age of the oldest message is that of the newest datapoint', async () => {
  const { oldestAt, asked } = ages(
    [
      [60, 900],
      [120, 5],
    ],
    QUEUE,
  );
  expect(await oldestAt()).toBe(NOW - 960_000);
  const names = JSON.stringify(asked);
  expect(names).toContain('"Name":"QueueName","Value":"payments-queue"');
  expect(names).toContain('ApproximateAgeOfOldestMessage');
});

test('but nothing younger than all receives of a message take is older than it: the metric leaves such messages out', async () => {
  const { oldestAt, atLeastMs } = ages([[0, 1]], QUEUE);
  expect(await oldestAt()).toBe(NOW - 480_000);
  expect(await atLeastMs()).toBe(480_000);
});

test('unknown without a datapoint, or without a limit on receives', async () => {
  expect(await ages([], QUEUE).oldestAt()).toBeUndefined();
  expect(await ages([[0, 1]], { VisibilityTimeout: '60' }).oldestAt()).toBeUndefined();
});
