import { GetParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { GetCallerIdentityCommand, STSClient } from '@aws-sdk/client-sts';
import { errorMessage, MailroomError } from '../lambdas/runtime/base/errors.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION, localEnvironment } from '../localstack/workspace.ts';

/** The account or the local engine in which a deployment is verified. */
export interface VerifyTarget {
  readonly account: string;
  readonly region: string;
  /** The AWS profile; absent for a local engine. */
  readonly profile?: string | undefined;
  /** The engine's URL; absent for AWS. */
  readonly endpoint?: string | undefined;
  /** True for an engine that ends with this process, and everything on it. */
  readonly ends?: boolean | undefined;
}

/** The options that select a target. */
export interface TargetOptions {
  readonly profile?: string | undefined;
  readonly region?: string | undefined;
  readonly local?: boolean | undefined;
}

type Variables = Record<string, string | undefined>;

/** Variables that would take precedence over a profile. */
const OTHER_CREDENTIALS = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'];

/** Written by `cdk bootstrap`. */
const BOOTSTRAP_VERSION = '/cdk-bootstrap/hnb659fds/version';

/**
 * Refuses options that do not name exactly one target. A profile is never taken from the environment: a deployment to an
 * account names it.
 *
 * @throws `WHICH_TARGET` without `--profile` or `--local`, or with both; `OTHER_ENDPOINT` if `AWS_ENDPOINT_URL` redirects AWS
 */
export function checkTarget({ profile, region, local }: TargetOptions, env: Variables): void {
  if ((profile === undefined) !== (local === true)) {
    throw new MailroomError(
      'WHICH_TARGET',
      `${profile === undefined ? 'Neither --profile nor --local is' : 'Both --profile and --local are'} given. ` +
        'Use --profile <name> for an AWS account that may be charged, or --local for a local engine.',
    );
  }
  if (local === true && region !== undefined) {
    throw new MailroomError(
      'WHICH_TARGET',
      `--region is "${region}", but a local engine has only ${LOCAL_REGION}. Omit it.`,
    );
  }
  const redirected = Object.keys(env).find((name) => name.startsWith('AWS_ENDPOINT_URL') && env[name]);
  if (profile !== undefined && redirected !== undefined) {
    throw new MailroomError(
      'OTHER_ENDPOINT',
      `--profile means AWS, but ${redirected} is "${env[redirected]}". Unset it, or use --local.`,
    );
  }
}

/** Selects a local engine: every SDK client and the CDK reach it, and nothing else. */
export function localTarget(
  { endpoint, startedHere }: { readonly endpoint: string; readonly startedHere: boolean },
  env: Variables,
): VerifyTarget {
  delete env.AWS_PROFILE;
  delete env.AWS_SESSION_TOKEN;
  Object.assign(env, localEnvironment(endpoint));
  return { account: LOCAL_ACCOUNT, region: LOCAL_REGION, endpoint, ends: startedHere };
}

/**
 * Selects the account of a profile: every SDK client and the CDK use this profile, whatever other credentials the environment has.
 *
 * @throws `NO_ACCOUNT` if the profile has no region or its credentials do not work; `NOT_BOOTSTRAPPED` if the CDK cannot deploy
 *   there yet
 */
export async function awsTarget(
  { profile = '', region }: TargetOptions,
  env: Variables,
): Promise<VerifyTarget> {
  for (const name of OTHER_CREDENTIALS) delete env[name];
  Object.assign(env, { AWS_PROFILE: profile, ...(region && { AWS_REGION: region }) });
  try {
    const sts = new STSClient({});
    const chosen = await sts.config.region();
    Object.assign(env, { AWS_REGION: chosen, AWS_DEFAULT_REGION: chosen });
    const { Account = '' } = await sts.send(new GetCallerIdentityCommand({}));
    await checkBootstrap({ account: Account, region: chosen, profile });
    return { account: Account, region: chosen, profile };
  } catch (error) {
    if (error instanceof MailroomError) throw error;
    throw new MailroomError(
      'NO_ACCOUNT',
      `The profile "${profile}" does not lead to an account: ${errorMessage(error)}. Check it with ` +
        `aws sts get-caller-identity --profile ${profile}, and name a region with --region if it has none.`,
    );
  }
}

async function checkBootstrap({ account, region, profile }: VerifyTarget): Promise<void> {
  try {
    await new SSMClient({}).send(new GetParameterCommand({ Name: BOOTSTRAP_VERSION }));
  } catch (error) {
    if ((error as Error).name !== 'ParameterNotFound') throw error;
    throw new MailroomError(
      'NOT_BOOTSTRAPPED',
      `The CDK has not been bootstrapped in account ${account}, region ${region}. It stays there, so it is not done for you: ` +
        `npx cdk bootstrap aws://${account}/${region} --profile ${profile}`,
    );
  }
}
