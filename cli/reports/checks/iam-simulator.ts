import type { IAMClient, IAMClientConfig, SimulatePrincipalPolicyCommand } from '@aws-sdk/client-iam';
import pLimit from 'p-limit';
import type { RoleSimulator } from './role-checks.ts';

/** The parts of the package that the simulator uses. */
interface IamPackage {
  readonly IAMClient: typeof IAMClient;
  readonly SimulatePrincipalPolicyCommand: typeof SimulatePrincipalPolicyCommand;
}

/** IAM throttles the simulator at a few calls per second. */
const AT_ONCE = 4;

/**
 * The simulator port on IAM. Its client is an optional peer dependency, which only `doctor` needs.
 *
 * @param load - loads the package
 * @returns `undefined` if the package is not installed
 */
export async function iamSimulator(
  settings: IAMClientConfig,
  load: () => Promise<IamPackage> = () => import('@aws-sdk/client-iam'),
): Promise<RoleSimulator | undefined> {
  const iam = await load().catch((error: { readonly code?: string }) => {
    if (/MODULE_NOT_FOUND/.test(error.code ?? '')) return undefined;
    throw error;
  });
  if (iam === undefined) return undefined;
  const client = new iam.IAMClient(settings);
  const limit = pLimit(AT_ONCE);
  return {
    denied: (role, { actions, resource, context }) =>
      limit(async () => {
        const { EvaluationResults = [] } = await client.send(
          new iam.SimulatePrincipalPolicyCommand({
            PolicySourceArn: role,
            ActionNames: [...actions],
            ResourceArns: [resource],
            ContextEntries: context && [
              {
                ContextKeyName: context.key,
                ContextKeyType: 'stringList',
                ContextKeyValues: [...context.values],
              },
            ],
          }),
        );
        const allowed = new Set(
          EvaluationResults.filter(({ EvalDecision }) => EvalDecision === 'allowed').map(
            ({ EvalActionName }) => EvalActionName,
          ),
        );
        return actions.filter((action) => !allowed.has(action));
      }),
  };
}
