import {
  type CloudWatchClient,
  GetMetricDataCommand,
  type MetricDataQuery,
} from '@aws-sdk/client-cloudwatch';
import { HOUR_MS, MINUTE_MS } from '../../lambdas/runtime/base/units.ts';
import type { BacklogHistory, Invocations } from './resources.ts';

/** The period in which invocations are counted: several redeliveries of a message, after the default visibility timeout of 3 minutes. */
export const INVOCATIONS_MS = 15 * MINUTE_MS;

/** The period of a queue's history. */
const HISTORY_MS = 3 * HOUR_MS;

/** The points of one metric, oldest first. */
type Points = readonly { readonly at: number; readonly value: number }[];

/** Returns the most unreserved concurrency that the account used in the last hour. */
export async function readPeak(client: CloudWatchClient, now: number): Promise<number | undefined> {
  const metric = { namespace: 'AWS/Lambda', name: 'UnreservedConcurrentExecutions', stat: 'Maximum' };
  const [points = []] = await readMetrics(client, [{ ...metric, periodS: 300 }], now - HOUR_MS, now);
  return points.length === 0 ? undefined : Math.max(...points.map(({ value }) => value));
}

/** Counts the invocations of a function. */
export async function readInvocations(
  client: CloudWatchClient,
  functionName: string,
  now: number,
): Promise<Invocations> {
  const dimension = { Name: 'FunctionName', Value: functionName };
  const of = { namespace: 'AWS/Lambda', stat: 'Sum', periodS: 60, dimension };
  const metrics = [
    { ...of, name: 'Invocations' },
    { ...of, name: 'Errors' },
  ];
  const found = await readMetrics(client, metrics, now - INVOCATIONS_MS, now);
  const [all = [], failed = []] = found;
  const [invocations = 0, errors = 0] = found.map((points) =>
    points.reduce((total, { value }) => total + value, 0),
  );
  return { invocations, errors, newest: newestErrors(all, failed, now) };
}

/** The errors of the newest minutes in which every invocation failed. The minute that is not over has no final counts. */
function newestErrors(all: Points, failed: Points, now: number): Invocations['newest'] {
  const errorsAt = new Map(failed.map(({ at, value }) => [at, value]));
  const minutes = all
    .filter(({ at, value }) => at <= now - MINUTE_MS && value > 0)
    .map(({ at, value }) => ({ at, value, errors: errorsAt.get(at) ?? 0 }));
  const failing = minutes.slice(minutes.findLastIndex(({ value, errors }) => errors < value) + 1);
  const [first] = failing;
  const errors = failing.reduce((total, minute) => total + minute.errors, 0);
  return { errors, forMs: first === undefined ? 0 : now - first.at };
}

/** Reads the history of a queue's messages. */
export async function readBacklog(
  client: CloudWatchClient,
  queueUrl: string,
  now: number,
): Promise<BacklogHistory> {
  const of = { namespace: 'AWS/SQS', stat: 'Maximum', dimension: queueDimension(queueUrl) };
  const metrics = [
    { ...of, name: 'ApproximateNumberOfMessagesVisible', periodS: 60 },
    { ...of, name: 'ApproximateAgeOfOldestMessage', periodS: 300 },
  ];
  const [waiting = [], agesS = []] = await readMetrics(client, metrics, now - HISTORY_MS, now);
  return { waiting, agesMs: agesS.map(({ at, value }) => ({ at, value: value * 1_000 })) };
}

function queueDimension(url: string) {
  return { Name: 'QueueName', Value: url.split('/').at(-1) ?? url };
}

interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly stat: string;
  readonly periodS: number;
  readonly dimension?: { readonly Name: string; readonly Value: string };
}

/** Returns the points of each metric, with one call. */
async function readMetrics(
  client: CloudWatchClient,
  metrics: readonly Metric[],
  since: number,
  until: number,
): Promise<Points[]> {
  const queries = metrics.map(
    ({ namespace, name, stat, periodS, dimension }, index): MetricDataQuery => ({
      Id: `m${index}`,
      MetricStat: {
        Metric: {
          Namespace: namespace,
          MetricName: name,
          ...(dimension !== undefined && { Dimensions: [dimension] }),
        },
        Period: periodS,
        Stat: stat,
      },
    }),
  );
  const { MetricDataResults = [] } = await client.send(
    new GetMetricDataCommand({
      StartTime: new Date(since),
      EndTime: new Date(until),
      ScanBy: 'TimestampAscending',
      MetricDataQueries: queries,
    }),
  );
  return queries.map((query) => {
    const { Timestamps = [], Values = [] } = MetricDataResults.find(({ Id }) => Id === query.Id) ?? {};
    return Timestamps.map((at, index) => ({ at: at.getTime(), value: Values[index] ?? 0 }));
  });
}
