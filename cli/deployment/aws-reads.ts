import { type CompositeAlarm, type MetricAlarm, paginateDescribeAlarms } from '@aws-sdk/client-cloudwatch';
import {
  DescribeContinuousBackupsCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  GetResourcePolicyCommand,
} from '@aws-sdk/client-dynamodb';
import {
  DescribeEventBusCommand,
  DescribeRuleCommand,
  ListTargetsByRuleCommand,
} from '@aws-sdk/client-eventbridge';
import {
  GetEventSourceMappingCommand,
  GetFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  GetFunctionEventInvokeConfigCommand,
  GetPolicyCommand,
} from '@aws-sdk/client-lambda';
import { GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import { GetParameterCommand } from '@aws-sdk/client-ssm';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import type { Clients } from './clients.ts';

/** The clients that the reads need. */
export type ReadingClients = Pick<
  Clients,
  'dynamo' | 'sqs' | 'ssm' | 'lambdaReads' | 'events' | 'cloudwatch'
>;

/** The codes of the errors that mean that a resource does not exist. */
const MISSING =
  /^(ResourceNotFound(Exception)?|NotFoundException|PolicyNotFoundException|ParameterNotFound)$|QueueDoesNotExist|NonExistentQueue/;

/** The answers of AWS about single resources. Except for tables, `undefined` means that the resource does not exist. */
export type AwsReads = ReturnType<typeof awsReads>;

/** Reads resources from AWS. Each call is a request. */
export function awsReads({ dynamo, sqs, ssm, lambdaReads: lambda, events, cloudwatch }: ReadingClients) {
  return {
    region: async () => dynamo.config.region(),
    table: async (TableName: string) => (await dynamo.send(new DescribeTableCommand({ TableName }))).Table,
    expiry: async (TableName: string) =>
      (await dynamo.send(new DescribeTimeToLiveCommand({ TableName }))).TimeToLiveDescription,
    recovery: async (TableName: string) => {
      const answer = await dynamo.send(new DescribeContinuousBackupsCommand({ TableName }));
      return answer.ContinuousBackupsDescription?.PointInTimeRecoveryDescription;
    },
    tablePolicy: (ResourceArn: string) =>
      orMissing(async () => (await dynamo.send(new GetResourcePolicyCommand({ ResourceArn }))).Policy),
    queue: (QueueUrl: string) =>
      orMissing(async () => {
        const all = new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] });
        return (await sqs.send(all)).Attributes ?? {};
      }),
    parameter: (Name: string) =>
      orMissing(async () => (await ssm.send(new GetParameterCommand({ Name }))).Parameter),
    function: (FunctionName: string) =>
      orMissing(() => lambda.send(new GetFunctionConfigurationCommand({ FunctionName }))),
    /** `null` if none is reserved. */
    reservedConcurrency: (FunctionName: string) =>
      orMissing(async () => {
        const answer = await lambda.send(new GetFunctionConcurrencyCommand({ FunctionName }));
        return answer.ReservedConcurrentExecutions ?? null;
      }),
    functionPolicy: (FunctionName: string, Qualifier?: string) =>
      orMissing(async () => (await lambda.send(new GetPolicyCommand({ FunctionName, Qualifier }))).Policy),
    mapping: (UUID: string) => orMissing(() => lambda.send(new GetEventSourceMappingCommand({ UUID }))),
    invokeConfig: (FunctionName: string, Qualifier: string) =>
      orMissing(() => lambda.send(new GetFunctionEventInvokeConfigCommand({ FunctionName, Qualifier }))),
    bus: (Name: string) => orMissing(() => events.send(new DescribeEventBusCommand({ Name }))),
    rule: (EventBusName: string, Name: string) =>
      orMissing(() => events.send(new DescribeRuleCommand({ EventBusName, Name }))),
    /** A rule has at most five targets, so one page is enough. */
    targets: (EventBusName: string, Rule: string) =>
      orMissing(
        async () => (await events.send(new ListTargetsByRuleCommand({ EventBusName, Rule }))).Targets ?? [],
      ),
    /** All alarms of the account and region. */
    alarms: async () => {
      const metric: MetricAlarm[] = [];
      const composite: CompositeAlarm[] = [];
      const all = { AlarmTypes: ['MetricAlarm' as const, 'CompositeAlarm' as const] };
      for await (const page of paginateDescribeAlarms({ client: cloudwatch }, all)) {
        metric.push(...(page.MetricAlarms ?? []));
        composite.push(...(page.CompositeAlarms ?? []));
      }
      return { metric, composite };
    },
  };
}

/** The reads, each made once for the same resource. */
export function readOnce(reads: AwsReads): AwsReads {
  const made = new Map<string, unknown>();
  const entries = Object.entries(reads).map(([name, read]: [string, (...of: never[]) => unknown]) => [
    name,
    (...of: never[]) => {
      const key = JSON.stringify([name, ...of]);
      if (!made.has(key)) made.set(key, read(...of));
      return made.get(key);
    },
  ]);
  return Object.fromEntries(entries) as AwsReads;
}

/** Makes a read; `undefined` if the resource does not exist. */
export async function orMissing<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (MISSING.test(errorCode(error))) return undefined;
    throw error;
  }
}
