import { mkdir, symlink } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { InvokeCommand, LambdaClient, ListFunctionsCommand } from '@aws-sdk/client-lambda';
import { GetParametersByPathCommand, PutParameterCommand, SSMClient } from '@aws-sdk/client-ssm';
import { ensureEnvironment, findPython } from '../../localstack/python-environment.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION } from '../../localstack/workspace.ts';
import { step } from './step.ts';

/** The document of `mailroom local --json`. */
export interface StartedEngine {
  readonly endpoint: string;
  readonly startedHere: boolean;
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * Makes a cache folder in which the engine is installed, as it is after the first `mailroom local`: the installation of the
 * repository. Downloading it again would test the network.
 *
 * @returns the variable that names the folder
 */
export async function cacheWithEngine(folder: string): Promise<{ readonly XDG_CACHE_HOME: string }> {
  const python = await findPython();
  if (python === undefined) throw new Error('This test needs Python 3.10 or later.');
  const environment = dirname(dirname(await ensureEnvironment({ python })));
  await mkdir(join(folder, 'mailroom'), { recursive: true });
  await symlink(environment, join(folder, 'mailroom', basename(environment)));
  return { XDG_CACHE_HOME: folder };
}

/** Deploys an app as `mailroom local` says. */
export async function deployTo(app: string, { environment }: StartedEngine): Promise<void> {
  const cdk = async (...args: string[]) =>
    await step(app, 'npx', ['--no', '--', 'cdk', ...args], environment);
  await cdk('bootstrap', `aws://${LOCAL_ACCOUNT}/${LOCAL_REGION}`);
  await cdk('deploy', '--all', '--require-approval', 'never');
}

/** Clients of an engine, whatever the variables of this process say. */
function settings({ endpoint }: StartedEngine) {
  return { endpoint, region: LOCAL_REGION, credentials: { accessKeyId: 'test', secretAccessKey: 'test' } };
}

/** Invokes the function whose name begins like this. */
export async function invoke(engine: StartedEngine, prefix: string, payload: object): Promise<void> {
  const lambda = new LambdaClient(settings(engine));
  const { Functions = [] } = await lambda.send(new ListFunctionsCommand({}));
  const FunctionName = Functions.map(({ FunctionName = '' }) => FunctionName).find((name) =>
    name.startsWith(prefix),
  );
  const { FunctionError, Payload } = await lambda.send(
    new InvokeCommand({ FunctionName, Payload: JSON.stringify(payload) }),
  );
  if (FunctionError !== undefined) throw new Error(`${FunctionName} failed: ${Payload?.transformToString()}`);
}

/** Adds the directory entry of a second Mailroom: that of the only one, with another stack and table. */
export async function addMailroom(engine: StartedEngine, stack: string): Promise<void> {
  const ssm = new SSMClient(settings(engine));
  const { Parameters = [] } = await ssm.send(
    new GetParametersByPathCommand({ Path: '/mailroom', Recursive: true }),
  );
  const entry = Parameters.find(({ Name = '' }) => /^\/mailroom\/[^/]+\/mailroom$/.test(Name));
  const Value = JSON.stringify({ ...JSON.parse(entry?.Value ?? ''), stack, table: stack });
  await ssm.send(new PutParameterCommand({ Name: `/mailroom/${stack}/mailroom`, Value, Type: 'String' }));
}
