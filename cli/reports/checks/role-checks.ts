import { readConsumerConfig } from '../../../lambdas/runtime/base/config.ts';
import { deployWords, invokedFunction } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedFunction } from '../../deployment/resources.ts';
import {
  type CheckDeps,
  type CheckedFunction,
  check,
  functionOf,
  NEEDS,
  type PartCheck,
  relayFunctions,
} from './check.ts';
import { settingsOf } from './function-checks.ts';
import {
  consumerNeeds,
  type RoleNeed,
  type RoleResources,
  type RoleSimulator,
  streamRelayNeeds,
  sweepNeeds,
} from './role-needs.ts';

/** Checks that the policies of each role allow what its function does. */
export function roleChecks({ directory, resources }: CheckDeps, simulator: RoleSimulator): PartCheck[] {
  const { mailroom, consumers } = directory;
  const { relay, sweep } = relayFunctions(mailroom);
  const roleCheck = (
    checked: CheckedFunction,
    queueUrl: string,
    needsOf: (arns: RoleResources, found: DeployedFunction) => readonly RoleNeed[],
  ): PartCheck =>
    check(
      checked.part,
      'surroundings',
      [...NEEDS.table, ...NEEDS.function, ...NEEDS.queue, 'iam:SimulatePrincipalPolicy'],
      async (add) => {
        const found = await resources.function(invokedFunction(checked.name, checked.alias));
        if (found === undefined) return; // reported as `no-function`
        const [{ arn: table, streamArn: stream }, queue] = await Promise.all([
          resources.table(),
          resources.queue(queueUrl),
        ]);
        const needs = needsOf({ table, stream, queue: queue?.arn }, found);
        const denials = await Promise.all(needs.map((need) => simulator.denied(found.role, need)));
        for (const [index, { resource, context }] of needs.entries()) {
          const denied = denials[index] ?? [];
          if (denied.length === 0) continue;
          const condition = context ? ` (${context.key} ${context.values.join(', ')})` : '';
          const text = `the role of ${checked.part} may not ${denied.join(', ')} on ${resource}${condition}: its calls fail`;
          add('role', text, deployWords(checked));
        }
      },
    );
  return [
    roleCheck(relay, mailroom.failureQueue, (arns) => streamRelayNeeds(arns, mailroom)),
    roleCheck(sweep, mailroom.failureQueue, (arns) => sweepNeeds(arns, mailroom)),
    ...consumers.map((consumer) =>
      roleCheck(functionOf(consumer), consumer.queue, (arns, found) => {
        const settings = settingsOf(readConsumerConfig, found);
        const { publishes = [] } = typeof settings === 'string' ? {} : settings;
        return consumerNeeds(arns, consumer, publishes.length > 0);
      }),
    ),
  ];
}
