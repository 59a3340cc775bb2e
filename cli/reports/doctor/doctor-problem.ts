import { type ConsumerEntry, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { PartCheck, PartProblem } from '../status/part-checks.ts';
import type { WiringProblem } from '../status/wiring.ts';
import type { CheckedFunction } from '../status/wiring-problems.ts';
import type { AccountProblem } from './account-problems.ts';
import type { AlarmProblem } from './alarm-problems.ts';
import type { DeployedFunction, DeployedResources } from './deployed-resources.ts';
import type { FunctionProblem } from './function-problems.ts';
import type { MappingProblem } from './mapping-problems.ts';
import type { QueueProblem } from './queue-problems.ts';
import type { TableProblem } from './table-problems.ts';

/** A finding of `mailroom doctor`. */
export type DoctorProblem = PartProblem<
  | (WiringProblem | TableProblem | MappingProblem | QueueProblem)['problem']
  | (FunctionProblem | AlarmProblem | AccountProblem)['problem']
  | 'role'
>;

/** A check of `mailroom doctor`. */
export type DoctorCheck = PartCheck<DoctorProblem['problem']>;

/** The actions that checks need. */
export const NEEDS = {
  queue: ['sqs:GetQueueAttributes'],
  function: ['lambda:GetFunctionConfiguration'],
  mappings: ['lambda:ListEventSourceMappings'],
  table: ['dynamodb:DescribeTable'],
} as const;

/** Checks a function; one that does not exist is reported as `no-function`. */
export async function ofFunction(
  resources: DeployedResources,
  { name, alias }: CheckedFunction,
  find: (found: DeployedFunction) => readonly DoctorProblem[] | Promise<readonly DoctorProblem[]>,
): Promise<readonly DoctorProblem[]> {
  const found = await resources.function(invokedFunction(name, alias));
  return found === undefined ? [] : find(found);
}

/** The queues of a consumer. The last one is absent for a consumer of an existing queue. */
export function urlsOf({ queue, deadLetterQueue, undeliveredQueue }: ConsumerEntry): string[] {
  return [queue, deadLetterQueue, ...(undeliveredQueue === undefined ? [] : [undeliveredQueue])];
}
