import { Duration } from 'aws-cdk-lib';
import { FunctionUrlAuthType } from 'aws-cdk-lib/aws-lambda';
import { readStage, type Stage } from '../lib/example/stage.ts';

/**
 * The stage that is verified: like `local`, it retains nothing and retries within seconds. Like `prod`, its API requires a
 * signature, and in AWS it sweeps once a minute and has composite alarms.
 *
 * @param name - of the deployment, as `randomName` returns it
 * @param env - with `AWS_ENDPOINT_URL` it is for a local engine, else for the account of `CDK_DEFAULT_ACCOUNT`
 *
 * @example
 * ```ts
 * orderSystem(app, verifyStage('verify-x7k2q9mt', process.env));
 * ```
 */
export function verifyStage(name: string, env: Readonly<Record<string, string | undefined>>): Stage {
  const stage = { ...readStage('local', env), name, ordersAuth: FunctionUrlAuthType.AWS_IAM };
  if (env.AWS_ENDPOINT_URL) return stage;
  return {
    ...stage,
    env: { account: env.CDK_DEFAULT_ACCOUNT, region: env.CDK_DEFAULT_REGION },
    sweepEvery: Duration.minutes(1),
    compositeAlarms: true,
  };
}
