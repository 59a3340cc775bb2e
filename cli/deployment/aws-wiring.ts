import { DescribeTableCommand } from '@aws-sdk/client-dynamodb';
import { DescribeEventBusCommand } from '@aws-sdk/client-eventbridge';
import {
  type EventSourceMappingConfiguration,
  GetFunctionConcurrencyCommand,
  paginateListEventSourceMappings,
} from '@aws-sdk/client-lambda';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import type { DeployedRules } from '../../lambdas/runtime/operations/audit/audit-drift.ts';
import { eventBridgeRules } from '../../lambdas/runtime/operations/eventbridge-rules.ts';
import type { Clients } from './clients.ts';

/** The wiring port: the deployed resources that move events from one part to the next. */
export interface Wiring {
  /** The event source mappings of a function, or of an alias (`name:alias`); none if it does not exist. */
  mappings(functionName: string): Promise<readonly Mapping[]>;
  /** The reserved concurrency of a function; `null` if none is reserved, `undefined` if the function does not exist. */
  reservedConcurrency(functionName: string): Promise<number | null | undefined>;
  hasBus(name: string): Promise<boolean>;
  readonly rules: DeployedRules;
  /** The ARN of the table's stream; `undefined` if it is off. */
  stream(): Promise<string | undefined>;
}

/** An event source mapping. */
export interface Mapping {
  readonly uuid: string;
  /** The ARN of the queue or stream that it reads. */
  readonly source: string;
  readonly enabled: boolean;
  /** Lambda is not about to change its state. */
  readonly isSettled: boolean;
  /** Its filters as JSON: Lambda drops what none of them matches. Empty: it drops nothing. */
  readonly filters: readonly string[];
  /** The most messages or records of one invocation. */
  readonly batchSize: number | undefined;
  /** Lambda keeps the messages or records that the function reports as failed (`ReportBatchItemFailures`). */
  readonly reportsItemFailures: boolean;
  /** Lambda halves a batch of a stream before it retries it. */
  readonly bisects: boolean;
  /** The ARN of the queue that receives discarded records of a stream. */
  readonly failureDestination: string | undefined;
  /** The most retries of a batch of a stream; `undefined` or -1 for no limit. */
  readonly retriesMax: number | undefined;
  /** The most concurrent invocations for a queue; `undefined` for no limit. */
  readonly concurrencyMax: number | undefined;
}

/** States in which a mapping reads, or is about to. `Disabling`, `Disabled` and `Deleting` are the others. */
const READING = new Set(['Enabled', 'Enabling', 'Creating', 'Updating']);

/** The wiring port on AWS. It only reads. @param tableName - of the Mailroom table */
export function awsWiring(
  { dynamo, events, lambdaReads: lambda }: Pick<Clients, 'dynamo' | 'events' | 'lambdaReads'>,
  tableName: string,
): Wiring {
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
    filters: (found.FilterCriteria?.Filters ?? []).map(({ Pattern = '' }) => Pattern),
    batchSize: found.BatchSize,
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
