import { spawn } from 'node:child_process';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { MailroomError } from '../lambdas/runtime/errors.ts';
import { identify, lastLines } from './health.ts';
import {
  LOCAL_ACCOUNT,
  LOCAL_REGION,
  localEnvironment,
  localFile,
  projectRoot,
  withoutAws,
} from './workspace.ts';

/** The outputs of all stacks by name, e.g. `TableName`, `OrdersUrl`. A name belongs to one stack only. */
export type Outputs = Readonly<Record<string, string>>;

/** What {@link deployLocal} needs to know. */
export interface DeployOptions {
  /** Where the engine answers. */
  readonly endpoint: string;
  /** The folder of the CDK app: the one with its `cdk.json`. @default the project */
  readonly appDir?: string;
  /** Gets a short line at each step. */
  readonly onProgress?: ((line: string) => void) | undefined;
}

/** How many stacks are deployed at a time. */
const CONCURRENCY = 4;

/** How many lines of the CDK's output an error shows. */
const ERROR_LINES = 30;

/**
 * Deploys every stack of the app, in its local stage, to a local engine, with the project's own CDK. Deploying
 * again updates what is there.
 *
 * @returns the outputs of all stacks
 * @throws `DEPLOY_FAILED` with the end of the CDK's output and what to do
 *
 * @example
 * ```ts
 * const { OrdersUrl } = await deployLocal({ endpoint: 'http://127.0.0.1:4566' });
 * ```
 */
export async function deployLocal(options: DeployOptions): Promise<Outputs> {
  const { endpoint, appDir = projectRoot, onProgress } = options;
  const { port } = new URL(endpoint);
  if (!(await isBootstrapped(endpoint))) {
    onProgress?.('Preparing the account for the CDK');
    // Not in the folder of the app: the CDK would synthesize it just to prepare an account.
    await cdk({
      endpoint,
      cwd: localFile('.'),
      args: ['bootstrap', `aws://${LOCAL_ACCOUNT}/${LOCAL_REGION}`],
    });
  }
  const outputsFile = localFile(`outputs-${port}.json`);
  // A folder for each engine, because the CDK locks it while it deploys.
  const assembly = localFile(`cdk-${port}`);
  await rm(outputsFile, { force: true });
  onProgress?.('Building the functions and stacks');
  try {
    await cdk({
      endpoint,
      cwd: appDir,
      args: [
        ...['deploy', '--all', '--context', 'stage=local', '--output', assembly],
        ...['--require-approval', 'never', '--method', 'direct', '--concurrency', String(CONCURRENCY)],
        ...['--outputs-file', outputsFile],
      ],
      onLine: (line) => {
        const step = progressOf(line);
        if (step) onProgress?.(step);
      },
    });
  } finally {
    await rm(assembly, { recursive: true, force: true });
  }
  return await readOutputs(outputsFile);
}

/** Puts the outputs of all stacks into one list. */
async function readOutputs(file: string): Promise<Outputs> {
  const stacks = JSON.parse(await readFile(file, 'utf8')) as Record<string, Record<string, string>>;
  const named = Object.values(stacks).flatMap((outputs) => Object.entries(outputs));
  // The CDK adds outputs of its own for what one stack takes from another.
  return Object.fromEntries(named.filter(([name]) => !name.startsWith('ExportsOutput')));
}

/**
 * Whether the CDK's own stack is there: its version is a parameter that can be asked for. The engines do not
 * check signatures, so a header that only looks like one will do.
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
  const cli = join(projectRoot, 'node_modules', 'aws-cdk', 'bin', 'cdk');
  const child = spawn(
    process.execPath,
    [cli, ...args, '--no-notices', '--no-color', '--progress', 'events', '--ci'],
    { cwd, env: cdkEnvironment(endpoint), stdio: ['ignore', 'pipe', 'pipe'] },
  );
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      onLine?.(line);
    });
  }
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code !== 0) throw await deployFailed(endpoint, args[0] ?? '', lines);
}

function cdkEnvironment(endpoint: string): Record<string, string> {
  return {
    ...withoutAws(process.env),
    ...localEnvironment(endpoint),
    // No file of the user's may send this to a real account.
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

/** The lines of the CDK's output worth showing, shortened: a stack begun, a stack done. */
function progressOf(line: string): string | undefined {
  const begun = /^(\S+)(?: \(\S+\))?: deploying\.\.\./.exec(line)?.[1];
  if (begun) return `Deploying ${begun}`;
  const done = /^\s*✅\s+(\S+)/u.exec(line)?.[1];
  return done ? `Deployed ${done}` : undefined;
}

async function deployFailed(
  endpoint: string,
  what: string,
  lines: readonly string[],
): Promise<MailroomError> {
  const advice =
    (await identify(endpoint)) !== 'nothing'
      ? 'Correct what it says and run the same command again; an engine in a strange state is made new with ' +
        '`npm run local:stop`.'
      : `The engine at ${endpoint} does not answer any more: its log, .local/engine-<port>.log, says why.`;
  return new MailroomError(
    'DEPLOY_FAILED',
    `cdk ${what} failed on ${endpoint}. The end of its output:\n${lastLines(lines.join('\n'), ERROR_LINES)}\n${advice}`,
  );
}
