import '../../localstack/quiet-sdk.ts';
import { rename } from 'node:fs/promises';
import { InvokeCommand, LambdaClient } from '@aws-sdk/client-lambda';
import { SSMClient } from '@aws-sdk/client-ssm';
import type { TestProject } from 'vitest/node';
import { readDirectory } from '../../lambdas/runtime/operations/ssm-directory.ts';
import { assemblyOf } from '../../localstack/assembly.ts';
import type { Outputs } from '../../localstack/cdk-process.ts';
import { deployLocal } from '../../localstack/deploy.ts';
import { type Engine, startEngine } from '../../localstack/engine.ts';
import { freePort } from '../../localstack/free-port.ts';
import { LOCAL_REGION, localEnvironment, localFile, projectRoot } from '../../localstack/workspace.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The endpoint of the local AWS of this project's tests; empty for an account, see vitest.verify.config.ts. */
    endpoint: string;
    /** The outputs of all stacks there, by name. */
    outputs: Outputs;
    /** The stack of their Mailroom, if there may be others. */
    stack?: string;
    /** Orders of the demo, for test/account. */
    orders?: number;
    /** Orders of the demo per second, for test/account. */
    rate?: number;
  }
}

/** The folder of the CDK app of a project's system, if it is not the order system. */
const APPS: Readonly<Record<string, string>> = { features: `${projectRoot}/test/local/features` };

let engine: Engine | undefined;
let name: string;

/**
 * Before the tests of a project: starts a local AWS for them on a free port (or takes the one at `AWS_ENDPOINT_URL`), and deploys
 * their system to it. An error here fails the run.
 */
export async function setup(project: TestProject): Promise<void> {
  name = project.name;
  const say = (line: string): void => console.error(`[${name}] ${line}`);
  const { AWS_ENDPOINT_URL } = process.env;
  const where = AWS_ENDPOINT_URL ? { env: { AWS_ENDPOINT_URL } } : { env: {}, port: await freePort() };
  const options = { appDir: APPS[name] ?? projectRoot, onProgress: say };
  const [started] = await Promise.all([startEngine({ ...where, onProgress: say }), assemblyOf(options)]);
  engine = started;
  try {
    project.provide('endpoint', engine.endpoint);
    const outputs = await deployLocal({ ...options, endpoint: engine.endpoint });
    project.provide('outputs', outputs);
    await startSweep(engine.endpoint, outputs);
    // The workers inherit it: an SDK client made without settings reaches this engine.
    project.config.env = { ...project.config.env, ...localEnvironment(engine.endpoint) };
  } catch (error) {
    await engine.stop();
    throw error;
  }
}

/** Starts the sweep now: its rule runs it for the first time a minute after the deployment. */
async function startSweep(endpoint: string, { TableName = '' }: Outputs): Promise<void> {
  const settings = {
    endpoint,
    region: LOCAL_REGION,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  };
  const { mailroom } = await readDirectory(new SSMClient(settings), TableName);
  const run = { FunctionName: mailroom.sweepFunction, InvocationType: 'Event', Payload: '{}' } as const;
  await new LambdaClient(settings).send(new InvokeCommand(run));
}

/** After the tests: stops the engine if it was started for them, and keeps its log under the project's name. */
export async function teardown(): Promise<void> {
  await engine?.stop();
  if (engine?.logFile) await rename(engine.logFile, localFile(`engine-of-${name}.log`));
}
