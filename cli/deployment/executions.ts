import { GetDurableExecutionCommand } from '@aws-sdk/client-lambda';
import { errorCode } from '../../lambdas/runtime/base/errors.ts';
import { jsonObject, textOf } from '../../lambdas/runtime/base/json.ts';
import type { InboxRow } from '../../lambdas/runtime/store/inbox-row.ts';
import { readable, type UnreadableRow } from '../../lambdas/runtime/store/stored-rows.ts';
import type { Clients } from './clients.ts';

/** The state of an execution, as its service knows it. */
export interface ExecutionState {
  /** The service's word: `RUNNING`, `SUCCEEDED`, `FAILED`, `TIMED_OUT`, `ABORTED`, `STOPPED` or `PENDING_REDRIVE`. */
  readonly status: string;
  /** Epoch milliseconds. */
  readonly startedAt?: number | undefined;
  /** Epoch milliseconds; absent while it runs. */
  readonly endedAt?: number | undefined;
  /** The name of the error with which it ended, and its text. */
  readonly error?: string | undefined;
  readonly cause?: string | undefined;
}

/** Reads the state of an execution by its ARN. */
export type ReadExecution = (executionArn: string) => Promise<ExecutionState>;

/** An execution that an effect of a message started. */
export interface EffectExecution {
  readonly effect: string;
  readonly executionName: string;
  /** `null`: a durable execution that an earlier attempt started; only Lambda knows its ARN. */
  readonly executionArn: string | null;
  /** Absent if it was not read. */
  readonly state?: ExecutionState | undefined;
  /** The code of the error with which reading it failed, such as that of a missing permission. */
  readonly unread?: string | undefined;
}

/** Reads executions of Step Functions and of durable functions. The client of Step Functions is loaded for the first of its executions. */
export function awsExecutions({ settings, lambdaReads }: Clients): ReadExecution {
  const sfn = once(async () => {
    const { SFN } = await import('@aws-sdk/client-sfn');
    return new SFN(settings);
  });
  return async (executionArn) => {
    if (DURABLE.test(executionArn)) {
      const command = new GetDurableExecutionCommand({ DurableExecutionArn: executionArn });
      const { Status, StartTimestamp, EndTimestamp, Error: error } = await lambdaReads.send(command);
      return {
        status: Status ?? 'UNKNOWN',
        startedAt: StartTimestamp?.getTime(),
        endedAt: EndTimestamp?.getTime(),
        error: error?.ErrorType,
        cause: error?.ErrorMessage,
      };
    }
    const { status, startDate, stopDate, error, cause } = await (await sfn()).describeExecution({
      executionArn,
    });
    return {
      status: status ?? 'UNKNOWN',
      startedAt: startDate?.getTime(),
      endedAt: stopDate?.getTime(),
      error,
      cause,
    };
  };
}

/** Part 3 of an ARN is its service. */
const DURABLE = /^arn:[^:]+:lambda:/;

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make();
    return made;
  };
}

/** The executions that the effects of a message started, by their stored results. @param read - their states are left out if absent */
export async function effectExecutions(
  row: InboxRow | UnreadableRow | undefined,
  read: ReadExecution | undefined,
): Promise<EffectExecution[]> {
  const effects = Object.entries(readable(row)?.effects ?? {});
  const found = effects.flatMap(([effect, stored]) => executionIn(effect, stored?.result));
  return Promise.all(found.map((execution) => withState(execution, read)));
}

/** The result of `startExecution`, or of an effect that has the same members. */
function executionIn(effect: string, result: unknown): EffectExecution[] {
  const { executionName, executionArn } = jsonObject(result) ?? {};
  const arn = textOf(executionArn);
  const isKnown = arn !== undefined && EXECUTION.test(arn);
  if (typeof executionName !== 'string' || !(isKnown || executionArn === null)) return [];
  return [{ effect, executionName, executionArn: arn ?? null }];
}

/** API references of Step Functions (DescribeExecution) and Lambda (GetDurableExecution). */
const EXECUTION =
  /^arn:[^:]+:(states:[^:]+:\d{12}:execution:|lambda:[^:]+:\d{12}:function:[^/]+\/durable-execution\/)/;

async function withState(
  execution: EffectExecution,
  read: ReadExecution | undefined,
): Promise<EffectExecution> {
  const { executionArn } = execution;
  if (executionArn === null || read === undefined) return execution;
  try {
    return { ...execution, state: await read(executionArn) };
  } catch (error) {
    return { ...execution, unread: errorCode(error) };
  }
}
