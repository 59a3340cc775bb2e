import type { IAMClientConfig } from '@aws-sdk/client-iam';
import pLimit from 'p-limit';
import type { RoleSimulator } from './role-checks.ts';

/** IAM throttles the simulator at a few calls per second. */
const AT_ONCE = 4;

/** The simulator port on IAM. Its client is loaded here, because only `doctor` needs it. */
export async function iamSimulator(settings: IAMClientConfig): Promise<RoleSimulator> {
  const iam = await import('@aws-sdk/client-iam');
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
