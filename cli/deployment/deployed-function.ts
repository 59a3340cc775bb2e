import {
  GetFunctionConcurrencyCommand,
  GetFunctionConfigurationCommand,
  type LambdaClient,
  paginateListEventSourceMappings,
} from '@aws-sdk/client-lambda';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import { invokedFunction } from '../../lambdas/runtime/operations/directory.ts';

/** The settings of a deployed function and its mappings. Absent members are unknown, or not set. */
export interface FunctionSettings {
  readonly timeoutMs: number | null;
  readonly memoryMb: number | null;
  readonly runtime: string | null;
  /** The name of its log group. */
  readonly logGroup: string;
  /** `null` if none is reserved. */
  readonly reservedConcurrency: number | null;
  readonly mappings: readonly {
    /** The ARN of the queue or stream. */
    readonly source: string;
    /** As Lambda reports it: `Enabled`, `Disabled`, … */
    readonly state: string;
    readonly batchSize: number | null;
    readonly batchingWindowMs: number | null;
    readonly maxConcurrency: number | null;
  }[];
}

/** Reads a function's settings, those of its alias if one is named; `undefined` if it does not exist. */
export async function readFunction(
  client: LambdaClient,
  FunctionName: string,
  alias?: string,
): Promise<FunctionSettings | undefined> {
  const invoked = invokedFunction(FunctionName, alias);
  try {
    const [configuration, concurrency, mappings] = await Promise.all([
      client.send(new GetFunctionConfigurationCommand({ FunctionName: invoked })),
      // Concurrency is reserved for a function with all its aliases.
      client.send(new GetFunctionConcurrencyCommand({ FunctionName })),
      readMappings(client, invoked),
    ]);
    const { Timeout, MemorySize = null, Runtime = null, LoggingConfig } = configuration;
    return {
      timeoutMs: Timeout === undefined ? null : Timeout * 1_000,
      memoryMb: MemorySize,
      runtime: Runtime,
      logGroup: LoggingConfig?.LogGroup ?? defaultLogGroup(FunctionName),
      reservedConcurrency: concurrency.ReservedConcurrentExecutions ?? null,
      mappings,
    };
  } catch (error) {
    if (errorCode(error) === 'ResourceNotFoundException') return undefined;
    throw error;
  }
}

/** The log group that Lambda creates for a function that has none. */
export function defaultLogGroup(functionName: string): string {
  return `/aws/lambda/${functionName}`;
}

async function readMappings(
  client: LambdaClient,
  FunctionName: string,
): Promise<FunctionSettings['mappings']> {
  const found: FunctionSettings['mappings'][number][] = [];
  for await (const page of paginateListEventSourceMappings({ client }, { FunctionName })) {
    for (const mapping of page.EventSourceMappings ?? []) {
      const window = mapping.MaximumBatchingWindowInSeconds;
      found.push({
        source: mapping.EventSourceArn ?? '',
        state: mapping.State ?? '?',
        batchSize: mapping.BatchSize ?? null,
        batchingWindowMs: window === undefined ? null : window * 1_000,
        maxConcurrency: mapping.ScalingConfig?.MaximumConcurrency ?? null,
      });
    }
  }
  return found;
}
