import {
  type CloudWatchClient,
  type CompositeAlarm,
  GetMetricDataCommand,
  type MetricAlarm,
  paginateDescribeAlarms,
} from '@aws-sdk/client-cloudwatch';
import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type DynamoDBClient,
  GetResourcePolicyCommand,
} from '@aws-sdk/client-dynamodb';
import { ListTargetsByRuleCommand } from '@aws-sdk/client-eventbridge';
import { GetAccountSettingsCommand, GetFunctionConfigurationCommand } from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { errorCode } from '../../../lambdas/runtime/base/errors.ts';
import { orMissing } from '../../deployment/aws-wiring.ts';
import type { Clients } from '../../deployment/clients.ts';
import type { DeployedAlarm, DeployedQueue, DeployedResources, DeployedTable } from './deployed-resources.ts';

/** The period in which the peak of the account's concurrency is looked for. */
const PEAK_MS = 3_600_000;

/** The resources port on AWS. @param TableName - of the Mailroom table @param now - AWS's time, epoch milliseconds */
export function awsResources(clients: Clients, TableName: string, now: number): DeployedResources {
  const { dynamo, sqs, events, lambdaReads: lambda, cloudwatch } = clients;
  const table = () => readTable(dynamo, TableName);
  return {
    table,
    expiryAttribute: async () => {
      const { TimeToLiveDescription } = await dynamo.send(new DescribeTimeToLiveCommand({ TableName }));
      const { TimeToLiveStatus: state = '', AttributeName } = TimeToLiveDescription ?? {};
      return state === 'ENABLED' || state === 'ENABLING' ? AttributeName : undefined;
    },
    tablePolicy: async () => {
      const { arn: ResourceArn } = await table();
      const answer = await orMissing(
        () => dynamo.send(new GetResourcePolicyCommand({ ResourceArn })),
        'PolicyNotFoundException',
      );
      return answer?.Policy;
    },
    hasRecovery: async () => {
      const { ContinuousBackupsDescription } = await dynamo.send(
        new DescribeContinuousBackupsCommand({ TableName }),
      );
      return (
        ContinuousBackupsDescription?.PointInTimeRecoveryDescription?.PointInTimeRecoveryStatus === 'ENABLED'
      );
    },
    queue: (url) => readQueue(sqs, url),
    targets: async (EventBusName, Rule) => {
      const answer = await orMissing(() => events.send(new ListTargetsByRuleCommand({ EventBusName, Rule })));
      return (answer?.Targets ?? []).map(({ Id = '', Arn = '', DeadLetterConfig }) => ({
        id: Id,
        arn: Arn,
        deadLetterQueue: DeadLetterConfig?.Arn,
      }));
    },
    function: (FunctionName) =>
      orMissing(async () => {
        const found = await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }));
        const failures = [
          ...(found.State === 'Failed' ? [found.StateReason ?? found.State] : []),
          ...(found.LastUpdateStatus === 'Failed'
            ? [found.LastUpdateStatusReason ?? found.LastUpdateStatus]
            : []),
        ];
        return {
          timeoutS: found.Timeout ?? 0,
          role: found.Role ?? '',
          environment: found.Environment?.Variables ?? {},
          failure: failures[0],
        };
      }),
    concurrency: async () => {
      const { AccountLimit } = await lambda.send(new GetAccountSettingsCommand({}));
      const { ConcurrentExecutions: limit = 0, UnreservedConcurrentExecutions: unreserved = limit } =
        AccountLimit ?? {};
      return { limit, unreserved };
    },
    concurrencyPeak: () => readPeak(cloudwatch, now),
    alarms: async () => {
      const found: DeployedAlarm[] = [];
      const all = { AlarmTypes: ['MetricAlarm' as const, 'CompositeAlarm' as const] };
      for await (const { MetricAlarms = [], CompositeAlarms = [] } of paginateDescribeAlarms(
        { client: cloudwatch },
        all,
      ))
        found.push(...[...MetricAlarms, ...CompositeAlarms].map(alarmOf));
      return found;
    },
  };
}

async function readTable(dynamo: DynamoDBClient, TableName: string): Promise<DeployedTable> {
  const { Table } = await dynamo.send(new DescribeTableCommand({ TableName }));
  const { StreamEnabled, StreamViewType } = Table?.StreamSpecification ?? {};
  return {
    arn: Table?.TableArn ?? '',
    isProtected: Table?.DeletionProtectionEnabled ?? false,
    streamView: StreamEnabled ? StreamViewType : undefined,
    streamArn: StreamEnabled ? Table?.LatestStreamArn : undefined,
  };
}

async function readQueue(sqs: SQSClient, QueueUrl: string): Promise<DeployedQueue | undefined> {
  try {
    const { Attributes = {} } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }),
    );
    return {
      arn: Attributes.QueueArn ?? '',
      visibilityS: Number(Attributes.VisibilityTimeout),
      retentionS: Number(Attributes.MessageRetentionPeriod),
      messageBytesMax: Number(Attributes.MaximumMessageSize),
      delayS: Number(Attributes.DelaySeconds ?? 0),
      policy: Attributes.Policy,
      redrive: Attributes.RedrivePolicy,
    };
  } catch (error) {
    if (/QueueDoesNotExist|NonExistentQueue/.test(errorCode(error))) return undefined;
    throw error;
  }
}

async function readPeak(cloudwatch: CloudWatchClient, now: number): Promise<number | undefined> {
  const answer = await cloudwatch.send(
    new GetMetricDataCommand({
      StartTime: new Date(now - PEAK_MS),
      EndTime: new Date(now),
      MetricDataQueries: [
        {
          Id: 'peak',
          MetricStat: {
            Metric: { Namespace: 'AWS/Lambda', MetricName: 'UnreservedConcurrentExecutions' },
            Period: 300,
            Stat: 'Maximum',
          },
        },
      ],
    }),
  );
  const values = answer.MetricDataResults?.[0]?.Values ?? [];
  return values.length === 0 ? undefined : Math.max(...values);
}

function alarmOf(alarm: MetricAlarm & Pick<CompositeAlarm, 'AlarmRule'>): DeployedAlarm {
  return {
    name: alarm.AlarmName ?? '',
    arn: alarm.AlarmArn ?? '',
    description: alarm.AlarmDescription ?? '',
    isFiring: alarm.StateValue === 'ALARM',
    actionsEnabled: alarm.ActionsEnabled ?? true,
    actions: alarm.AlarmActions ?? [],
    rule: alarm.AlarmRule,
  };
}
