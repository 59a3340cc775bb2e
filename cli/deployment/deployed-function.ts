import { invokedFunction } from '../../lambdas/runtime/operations/directory.ts';
import type { Resources } from './resources.ts';

/** The settings of a deployed function and its mappings. Absent members are unknown, or not set. */
export interface FunctionSettings {
  readonly timeoutMs: number;
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
  resources: Pick<Resources, 'function' | 'reservedConcurrency' | 'mappings'>,
  name: string,
  alias?: string,
): Promise<FunctionSettings | undefined> {
  const invoked = invokedFunction(name, alias);
  const [found, reservedConcurrency = null, mappings] = await Promise.all([
    resources.function(invoked),
    // Concurrency is reserved for a function with all its aliases.
    resources.reservedConcurrency(name),
    resources.mappings(invoked),
  ]);
  if (found === undefined) return undefined;
  const { timeoutS, memoryMb = null, runtime = null, logGroup = defaultLogGroup(name) } = found;
  return {
    timeoutMs: timeoutS * 1_000,
    memoryMb,
    runtime,
    logGroup,
    reservedConcurrency,
    mappings: mappings.map(({ source, state, batchSize, batchingWindowMs, concurrencyMax }) => ({
      source,
      state,
      batchSize: batchSize ?? null,
      batchingWindowMs: batchingWindowMs ?? null,
      maxConcurrency: concurrencyMax ?? null,
    })),
  };
}

/** The log group that Lambda creates for a function that has none. */
export function defaultLogGroup(functionName: string): string {
  return `/aws/lambda/${functionName}`;
}
