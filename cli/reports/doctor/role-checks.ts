import { readConsumerConfig } from '../../../lambdas/runtime/base/config.ts';
import { type CheckedFunction, functionOf, relayFunctions } from '../status/wiring-problems.ts';
import type { DeployedFunction, DeployedQueue, DoctorDeps } from './deployed-resources.ts';
import { type DoctorCheck, NEEDS, ofFunction } from './doctor-problem.ts';
import { settingsOf } from './function-problems.ts';
import {
  consumerNeeds,
  type RoleNeed,
  type RoleResources,
  roleProblems,
  streamRelayNeeds,
  sweepNeeds,
} from './role-needs.ts';

const SIMULATE = ['iam:SimulatePrincipalPolicy'];

/** The checks of the roles; none without a simulator. */
export function roleChecks(deps: DoctorDeps, queues: ReadonlyMap<string, DeployedQueue>): DoctorCheck[] {
  const { directory, resources, roles } = deps;
  if (typeof roles === 'string') return [];
  const { mailroom, consumers } = directory;
  const { relay, sweep } = relayFunctions(deps.directory.mailroom);
  const roleResources = async (): Promise<RoleResources> => {
    const { arn, streamArn } = await resources.table();
    return { table: arn, stream: streamArn, queue: (url) => queues.get(url)?.arn };
  };
  const check = (
    checked: CheckedFunction,
    needs: (resources: RoleResources, found: DeployedFunction) => readonly RoleNeed[],
  ): DoctorCheck => ({
    part: checked.part,
    needs: [...NEEDS.table, ...NEEDS.function, ...SIMULATE],
    find: () =>
      ofFunction(resources, checked, async (found) =>
        roleProblems(roles, checked, found.role, needs(await roleResources(), found)),
      ),
  });
  return [
    check(relay, (arns) => streamRelayNeeds(arns, mailroom)),
    check(sweep, (arns) => sweepNeeds(arns, mailroom)),
    ...consumers.map((consumer) =>
      check(functionOf(consumer), (arns, found) => {
        const settings = settingsOf(readConsumerConfig, found);
        const { publishes = [] } = typeof settings === 'string' ? {} : settings;
        return consumerNeeds(arns, consumer, publishes.length > 0);
      }),
    ),
  ];
}
