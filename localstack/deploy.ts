import { rm } from 'node:fs/promises';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { type Outputs, readOutputs, runCdk } from './cdk-process.ts';
import { type DeployProgress, deployProgress } from './deploy-progress.ts';
import { identify, lastLines } from './health.ts';
import {
  LOCAL_ACCOUNT,
  LOCAL_REGION,
  localEnvironment,
  localFile,
  projectRoot,
  withoutAws,
} from './workspace.ts';

/** Options of {@link deployLocal}. */
export interface DeployOptions extends DeployProgress {
  /** The engine's endpoint. */
  readonly endpoint: string;
  /** The folder of the CDK app, which contains its `cdk.json`. @default the project */
  readonly appDir?: string;
}

/** The number of stacks deployed concurrently. */
const CONCURRENCY = 4;

/** The number of lines of CDK output that an error shows. */
const ERROR_LINES = 30;

/**
 * Deploys every stack of the app, in its local stage, to a local engine with the project's own CDK. Deploying again updates the
 * stacks.
 *
 * @returns the outputs of all stacks
 * @throws `DEPLOY_FAILED` with the last lines of the CDK's output and the remedy
 *
 * @example
 * ```ts
 * const { OrdersUrl } = await deployLocal({ endpoint: 'http://127.0.0.1:4566' });
 * ```
 */
export async function deployLocal(options: DeployOptions): Promise<Outputs> {
  const { endpoint, appDir = projectRoot, onProgress, onDetail } = options;
  const { port } = new URL(endpoint);
  await bootstrapLocal(options);
  const outputsFile = localFile(`outputs-${port}.json`);
  // One folder per engine, because the CDK locks it while it deploys.
  const assembly = localFile(`cdk-${port}`);
  await rm(outputsFile, { force: true });
  try {
    await cdk({
      endpoint,
      cwd: appDir,
      args: [
        ...['deploy', '--all', '--context', 'stage=local', '--output', assembly],
        ...['--require-approval', 'never', '--method', 'direct', '--concurrency', String(CONCURRENCY)],
        ...['--progress', 'events', '--outputs-file', outputsFile],
      ],
      onLine: deployProgress({ onProgress, onDetail }),
    });
  } finally {
    await rm(assembly, { recursive: true, force: true });
  }
  return await readOutputs(outputsFile);
}

/** Prepares a local engine for the CDK, unless that was done before. */
export async function bootstrapLocal({
  endpoint,
  onProgress,
}: Pick<DeployOptions, 'endpoint' | 'onProgress'>): Promise<void> {
  if (await isBootstrapped(endpoint)) return;
  onProgress?.('Bootstrapping the account for the CDK');
  // Not in the app's folder, where the CDK would synthesize the app just to bootstrap an account.
  await cdk({
    endpoint,
    cwd: localFile('.'),
    args: ['bootstrap', `aws://${LOCAL_ACCOUNT}/${LOCAL_REGION}`],
  });
}

/**
 * Detects the CDK's own stack by its version parameter. The engines do not check signatures, so a header with a dummy signature
 * is enough.
 */
async function isBootstrapped(endpoint: string): Promise<boolean> {
  const scope = `19700101/${LOCAL_REGION}/ssm/aws4_request`;
  const response = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': 'application/x-amz-json-1.1',
      'x-amz-target': 'AmazonSSM.GetParameter',
      authorization: `AWS4-HMAC-SHA256 Credential=test/${scope}, SignedHeaders=host, Signature=none`,
    },
    body: JSON.stringify({ Name: '/cdk-bootstrap/hnb659fds/version' }),
  });
  await response.arrayBuffer();
  return response.ok;
}

interface CdkCall {
  readonly endpoint: string;
  readonly cwd: string;
  readonly args: readonly string[];
  readonly onLine?: (line: string) => void;
}

async function cdk(call: CdkCall): Promise<void> {
  const { endpoint, cwd, args, onLine } = call;
  const { code, lines } = await runCdk({ cwd, args, onLine, env: cdkEnvironment(endpoint) });
  if (code !== 0) throw await deployFailed(endpoint, args[0] ?? '', lines);
}

/** The environment of a CDK that can reach nothing but a local engine. */
export function cdkEnvironment(endpoint: string): Record<string, string> {
  return {
    ...withoutAws(process.env),
    ...localEnvironment(endpoint),
    // No configuration file of the user may redirect this to a real account.
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    AWS_EC2_METADATA_DISABLED: 'true',
    CDK_DEFAULT_ACCOUNT: LOCAL_ACCOUNT,
    CDK_DEFAULT_REGION: LOCAL_REGION,
    CDK_DISABLE_CLI_TELEMETRY: 'true',
    CDK_DISABLE_VERSION_CHECK: 'true',
    NODE_NO_WARNINGS: '1',
  };
}

async function deployFailed(
  endpoint: string,
  what: string,
  lines: readonly string[],
): Promise<MailroomError> {
  const advice =
    (await identify(endpoint)) !== 'nothing'
      ? 'Correct the cause and run the same command again. To start over with a new engine, run `npm run local:stop` first.'
      : `The engine at ${endpoint} has stopped answering. Its log, .local/engine-<port>.log, contains the reason.`;
  return new MailroomError(
    'DEPLOY_FAILED',
    `cdk ${what} failed on ${endpoint}. The last lines of its output:\n${lastLines(lines.join('\n'), ERROR_LINES)}\n${advice}`,
  );
}
