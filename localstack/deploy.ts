import { mkdtemp, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type AssemblyOptions, assemblyOf } from './assembly.ts';
import { type Outputs, readOutputs } from './cdk-process.ts';
import { deployProgress } from './deploy-progress.ts';
import { localCdk } from './local-cdk.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION, localFile } from './workspace.ts';

/** Options of {@link deployLocal}. */
export interface DeployOptions extends AssemblyOptions {
  /** The engine's endpoint. */
  readonly endpoint: string;
  /** The regions of its stacks. @default the region of the local stage */
  readonly regions?: readonly string[];
}

/** The number of stacks deployed concurrently. */
const CONCURRENCY = 4;

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
  const { endpoint, appDir, context, regions = [LOCAL_REGION], ...progress } = options;
  const [assembly] = await Promise.all([
    assemblyOf({ appDir, context, ...progress }),
    bootstrapLocal({ endpoint, regions }),
  ]);
  const outputsFile = join(await mkdtemp(localFile('deploy-')), 'outputs.json');
  try {
    await localCdk({
      endpoint,
      cwd: localFile('.'),
      args: [
        ...['deploy', '--all', '--app', assembly, '--require-approval', 'never', '--method', 'direct'],
        ...['--concurrency', String(CONCURRENCY), '--progress', 'events', '--outputs-file', outputsFile],
      ],
      onLine: deployProgress(progress),
    });
    return await readOutputs(outputsFile);
  } finally {
    await rm(dirname(outputsFile), { recursive: true, force: true });
  }
}

/** Prepares a local engine for the CDK, unless that was done before. */
export async function bootstrapLocal({
  endpoint,
  regions = [LOCAL_REGION],
}: Pick<DeployOptions, 'endpoint' | 'regions'>): Promise<void> {
  const bootstrapped = await Promise.all(regions.map((region) => isBootstrapped(endpoint, region)));
  const missing = regions.filter((_, n) => !bootstrapped[n]);
  if (missing.length === 0) return;
  // Not in the app's folder, where the CDK would synthesize the app just to bootstrap an account.
  await localCdk({
    endpoint,
    cwd: localFile('.'),
    args: ['bootstrap', ...missing.map((region) => `aws://${LOCAL_ACCOUNT}/${region}`)],
  });
}

/**
 * Detects the CDK's own stack by its version parameter. The engines do not check signatures, so a header with a dummy signature
 * is enough.
 */
async function isBootstrapped(endpoint: string, region: string): Promise<boolean> {
  const scope = `19700101/${region}/ssm/aws4_request`;
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
