import { CloudWatchClient, type GetMetricDataCommandInput } from '@aws-sdk/client-cloudwatch';
import { expect, test } from 'vitest';
import { readBacklog, readInvocations, readPeak } from '../../../cli/deployment/aws-metrics.ts';
import { STUB_CONFIGURATION } from '../../support/stub-client.ts';

const NOW = 1_795_266_039_731;
const MINUTE_MS = 60_000;

/** A client that answers each query with the values of its metric, the newest a minute old, in any order. */
function metrics(values: Readonly<Record<string, readonly number[]>>) {
  const calls: GetMetricDataCommandInput[] = [];
  const client = new CloudWatchClient(STUB_CONFIGURATION);
  client.send = async ({ input }: { readonly input: GetMetricDataCommandInput }) => {
    calls.push(input);
    const results = (input.MetricDataQueries ?? []).map(({ Id, MetricStat }) => {
      const points = values[MetricStat?.Metric?.MetricName ?? ''];
      return {
        Id,
        Values: points && [...points],
        Timestamps: points?.map((_value, index) => new Date(NOW - (points.length - index) * MINUTE_MS)),
      };
    });
    return { MetricDataResults: results.reverse() };
  };
  return { client, calls };
}

test('invocations of the last 15 minutes and those that failed are counted with one call', async () => {
  const { client, calls } = metrics({ Invocations: [1, 2, 3], Errors: [1, 2] });
  expect(await readInvocations(client, 'payments-fn', NOW)).toEqual({
    invocations: 6,
    errors: 3,
    newest: { errors: 0, forMs: 0 },
  });
  expect(calls).toHaveLength(1);
  expect(calls[0]?.StartTime).toEqual(new Date(NOW - 15 * MINUTE_MS));
  expect(calls[0]?.MetricDataQueries?.map(({ MetricStat }) => MetricStat?.Metric?.Dimensions)).toEqual([
    [{ Name: 'FunctionName', Value: 'payments-fn' }],
    [{ Name: 'FunctionName', Value: 'payments-fn' }],
  ]);
  expect(await readInvocations(metrics({}).client, 'payments-fn', NOW)).toEqual({
    invocations: 0,
    errors: 0,
    newest: { errors: 0, forMs: 0 },
  });
});

test.each([
  ['after a minute with a success', [4, 3, 2], [1, 3, 2], { errors: 5, forMs: 2 * MINUTE_MS }],
  ['without one', [3, 2], [3, 2], { errors: 5, forMs: 2 * MINUTE_MS }],
  ['with a pause between', [4, 3, 0, 2], [0, 3, 0, 2], { errors: 5, forMs: 3 * MINUTE_MS }],
  ['before a minute with a success', [3, 2], [3, 1], { errors: 0, forMs: 0 }],
])('the newest errors are those of the minutes %s', async (_what, Invocations, Errors, newest) => {
  const found = await readInvocations(metrics({ Invocations, Errors }).client, 'payments-fn', NOW);
  expect(found.newest).toEqual(newest);
});

test('the minute that is not over has no final counts', async () => {
  const { client } = metrics({ Invocations: [3, 2, 2], Errors: [3, 2, 0] });
  const found = await readInvocations(client, 'payments-fn', NOW - MINUTE_MS / 2);
  expect(found.newest).toEqual({ errors: 5, forMs: 2.5 * MINUTE_MS });
});

test('the history of a queue has the counts and ages with their times', async () => {
  const { client, calls } = metrics({
    ApproximateNumberOfMessagesVisible: [5, 7],
    ApproximateAgeOfOldestMessage: [12],
  });
  expect(await readBacklog(client, 'https://sqs.eu-west-1.amazonaws.com/1/payments', NOW)).toEqual({
    waiting: [
      { at: NOW - 2 * MINUTE_MS, value: 5 },
      { at: NOW - MINUTE_MS, value: 7 },
    ],
    agesMs: [{ at: NOW - MINUTE_MS, value: 12_000 }],
  });
  expect(calls[0]?.MetricDataQueries?.[0]?.MetricStat?.Metric?.Dimensions).toEqual([
    { Name: 'QueueName', Value: 'payments' },
  ]);
});

test('the peak of the concurrency is that of the last hour, and unknown without a metric', async () => {
  const { client } = metrics({ UnreservedConcurrentExecutions: [3, 9, 4] });
  expect(await readPeak(client, NOW)).toBe(9);
  expect(await readPeak(metrics({}).client, NOW)).toBeUndefined();
});
