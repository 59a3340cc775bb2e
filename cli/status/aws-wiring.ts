import { DescribeTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DescribeEventBusCommand, type EventBridgeClient } from '@aws-sdk/client-eventbridge';
import {
  type EventSourceMappingConfiguration,
  GetFunctionConcurrencyCommand,
  type LambdaClient,
  paginateListEventSourceMappings,
} from '@aws-sdk/client-lambda';
import { eventBridgeRules } from '../../lambdas/runtime/bus/eventbridge-rules.ts';
import { errorCode } from '../../lambdas/runtime/errors.ts';
import type { Mapping, Wiring } from './wiring.ts';

/** Dependencies of {@link awsWiring}. */
export interface AwsWiringDeps {
  readonly dynamo: DynamoDBClient;
  readonly events: EventBridgeClient;
  readonly lambda: LambdaClient;
  /** The name of the Mailroom table. */
  readonly tableName: string;
}

/** States in which a mapping reads, or is about to. `Disabling`, `Disabled` and `Deleting` are the others. */
const READING = new Set(['Enabled', 'Enabling', 'Creating', 'Updating']);

/** The wiring port on AWS. It only reads. */
export function awsWiring({ dynamo, events, lambda, tableName }: AwsWiringDeps): Wiring {
  return {
    mappings: async (FunctionName) =>
      (await orMissing(async () => {
        const found: Mapping[] = [];
        for await (const page of paginateListEventSourceMappings({ client: lambda }, { FunctionName })) {
          for (const mapping of page.EventSourceMappings ?? []) found.push(mappingOf(mapping));
        }
        return found;
      })) ?? [],
    reservedConcurrency: (FunctionName) =>
      orMissing(async () => {
        const answer = await lambda.send(new GetFunctionConcurrencyCommand({ FunctionName }));
        return answer.ReservedConcurrentExecutions ?? null;
      }),
    hasBus: async (Name) =>
      (await orMissing(() => events.send(new DescribeEventBusCommand({ Name })))) !== undefined,
    rules: eventBridgeRules(events),
    stream: async () => {
      const { Table } = await dynamo.send(new DescribeTableCommand({ TableName: tableName }));
      return Table?.StreamSpecification?.StreamEnabled === true ? Table.LatestStreamArn : undefined;
    },
  };
}

function mappingOf(found: EventSourceMappingConfiguration): Mapping {
  return {
    uuid: found.UUID ?? '',
    source: found.EventSourceArn ?? '',
    enabled: READING.has(found.State ?? ''),
    isSettled: found.State === 'Enabled' || found.State === 'Disabled',
    reportsItemFailures: found.FunctionResponseTypes?.includes('ReportBatchItemFailures') ?? false,
    bisects: found.BisectBatchOnFunctionError ?? false,
    failureDestination: found.DestinationConfig?.OnFailure?.Destination,
    retriesMax: found.MaximumRetryAttempts,
    concurrencyMax: found.ScalingConfig?.MaximumConcurrency,
  };
}

/** Makes a read; `undefined` if the resource does not exist. @param missing - the code of the error that means this */
export async function orMissing<T>(
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
