import {
  type CloudWatchClient,
  type CompositeAlarm,
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
import { DescribeEventBusCommand } from '@aws-sdk/client-eventbridge';
import {
  type EventSourceMappingConfiguration,
  type FunctionConfiguration,
  GetAccountSettingsCommand,
  GetFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  type LambdaClient,
  paginateListEventSourceMappings,
} from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { awsFault } from '../../lambdas/runtime/base/aws-errors.ts';
import type { Clock } from '../../lambdas/runtime/base/clock.ts';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import { eventBridgeRules } from '../../lambdas/runtime/operations/audit/eventbridge-rules.ts';
import { readBacklog, readInvocations, readPeak } from './aws-metrics.ts';
import type { Clients } from './clients.ts';
import type {
  DeployedAlarm,
  DeployedFunction,
  DeployedQueue,
  DeployedTable,
  Mapping,
  Resources,
} from './resources.ts';

/** States in which a mapping reads, or is about to. `Disabling`, `Disabled` and `Deleting` are the others. */
const READING = new Set(['Enabled', 'Enabling', 'Creating', 'Updating']);

/** The resources port on AWS. @param TableName - of the Mailroom table */
export function awsResources(clients: Clients, TableName: string, clock: Clock): Resources {
  const { dynamo, sqs, events, lambdaReads: lambda, cloudwatch } = clients;
  const table = () => readTable(dynamo, TableName);
  const rules = eventBridgeRules(events);
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
    hasBus: async (Name) =>
      (await orMissing(() => events.send(new DescribeEventBusCommand({ Name })))) !== undefined,
    rule: (bus, name) => rules.describe(bus, name),
    mappings: async (FunctionName) => (await orMissing(() => readMappings(lambda, FunctionName))) ?? [],
    function: (FunctionName) =>
      orMissing(async () =>
        functionOf(await lambda.send(new GetFunctionConfigurationCommand({ FunctionName }))),
      ),
    reservedConcurrency: (FunctionName) =>
      orMissing(async () => {
        const answer = await lambda.send(new GetFunctionConcurrencyCommand({ FunctionName }));
        return answer.ReservedConcurrentExecutions ?? null;
      }),
    concurrency: async () => {
      const { AccountLimit } = await lambda.send(new GetAccountSettingsCommand({}));
      const { ConcurrentExecutions: limit = 0, UnreservedConcurrentExecutions: unreserved = limit } =
        AccountLimit ?? {};
      return { limit, unreserved };
    },
    concurrencyPeak: () => readPeak(cloudwatch, clock.now()),
    invocations: (name) => readInvocations(cloudwatch, name, clock.now()),
    backlog: (url) => readBacklog(cloudwatch, url, clock.now()),
    alarms: () => readAlarms(cloudwatch),
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
      url: QueueUrl,
      arn: Attributes.QueueArn ?? '',
      messages:
        Number(Attributes.ApproximateNumberOfMessages ?? 0) +
        Number(Attributes.ApproximateNumberOfMessagesNotVisible ?? 0),
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

async function readAlarms(client: CloudWatchClient): Promise<DeployedAlarm[]> {
  const found: DeployedAlarm[] = [];
  const all = { AlarmTypes: ['MetricAlarm' as const, 'CompositeAlarm' as const] };
  for await (const { MetricAlarms = [], CompositeAlarms = [] } of paginateDescribeAlarms({ client }, all))
    found.push(...[...MetricAlarms, ...CompositeAlarms].map(alarmOf));
  return found;
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

function functionOf(found: FunctionConfiguration): DeployedFunction {
  const { State, LastUpdateStatus } = found;
  const failures = [
    ...(State === 'Failed' ? [found.StateReason ?? State] : []),
    ...(LastUpdateStatus === 'Failed' ? [found.LastUpdateStatusReason ?? LastUpdateStatus] : []),
  ];
  return {
    timeoutS: found.Timeout ?? 0,
    role: found.Role ?? '',
    environment: found.Environment?.Variables ?? {},
    memoryMb: found.MemorySize,
    runtime: found.Runtime,
    logGroup: found.LoggingConfig?.LogGroup,
    failure: failures[0],
  };
}

async function readMappings(client: LambdaClient, FunctionName: string): Promise<Mapping[]> {
  const found: Mapping[] = [];
  for await (const page of paginateListEventSourceMappings({ client }, { FunctionName }))
    found.push(...(page.EventSourceMappings ?? []).map(mappingOf));
  return found;
}

function mappingOf(found: EventSourceMappingConfiguration): Mapping {
  const window = found.MaximumBatchingWindowInSeconds;
  return {
    uuid: found.UUID ?? '',
    source: found.EventSourceArn ?? '',
    enabled: READING.has(found.State ?? ''),
    state: found.State ?? '?',
    isSettled: found.State === 'Enabled' || found.State === 'Disabled',
    filters: (found.FilterCriteria?.Filters ?? []).map(({ Pattern = '' }) => Pattern),
    batchSize: found.BatchSize,
    batchingWindowMs: window && window * 1_000,
    reportsItemFailures: found.FunctionResponseTypes?.includes('ReportBatchItemFailures') ?? false,
    bisects: found.BisectBatchOnFunctionError ?? false,
    failureDestination: found.DestinationConfig?.OnFailure?.Destination,
    retriesMax: found.MaximumRetryAttempts,
    concurrencyMax: found.ScalingConfig?.MaximumConcurrency,
  };
}

/** Makes a read; `undefined` if the resource does not exist. @param missing - the code of the error that means this */
async function orMissing<T>(
  read: () => Promise<T>,
  missing = 'ResourceNotFoundException',
): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (errorCode(error) === missing) return undefined;
    throw error;
  }
}

/** True if AWS denied a call. */
export function isDenied(error: unknown): boolean {
  return awsFault(errorCode(error)) === 'denied';
}

/** True if an endpoint, a local engine, does not have the operation: no permission changes that. */
export function isUnsupported(error: unknown): boolean {
  return /UnknownOperation/.test(errorCode(error));
}
