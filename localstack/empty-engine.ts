import { type Engine, startEngine } from './engine.ts';
import { howToStop, leaveRunning } from './left-running.ts';
import { DEFAULT_PORT, LOCAL_ACCOUNT, LOCAL_REGION, localEnvironment } from './workspace.ts';

/** Variables that would send the CDK or the SDK to an account in spite of the exports. */
const REDIRECTING = ['AWS_PROFILE', 'AWS_SESSION_TOKEN'];

/**
 * Starts an engine without any stack in the background, or finds the one on the port. It ignores `AWS_ENDPOINT_URL`: a shell may
 * still have the exports of a stopped engine.
 *
 * @throws the errors of {@link startEngine}
 *
 * @example
 * ```ts
 * const { endpoint } = await startEmptyEngine(4566, console.error);
 * ```
 */
export async function startEmptyEngine(port: number, onProgress: (line: string) => void): Promise<Engine> {
  const engine = await startEngine({ port, detached: true, env: {}, onProgress });
  if (engine.startedHere) await leaveRunning(engine);
  return engine;
}

/** The variables that point AWS SDKs and tools at an engine, without the one that only hides a warning. */
export function engineVariables(endpoint: string): Record<string, string> {
  const { AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: _, ...variables } = localEnvironment(endpoint);
  return variables;
}

/**
 * The lines that point a shell at an engine.
 *
 * @param env - the shell's environment; its profile and session are removed
 */
export function shellExports(
  endpoint: string,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string[] {
  const redirecting = REDIRECTING.filter((name) => env[name] !== undefined);
  return [
    ...Object.entries(engineVariables(endpoint)).map(([name, value]) => `export ${name}=${value}`),
    ...(redirecting.length === 0 ? [] : [`unset ${redirecting.join(' ')}`]),
  ];
}

/**
 * The text below the exports: how to set them, to deploy an app and to stop the engine.
 *
 * @param by - who started it: the script of the repository, or the `mailroom` command
 */
export async function nextSteps(
  engine: Pick<Engine, 'endpoint' | 'port'>,
  by: 'script' | 'command',
): Promise<string> {
  const port = engine.port === DEFAULT_PORT ? '' : ` --port ${engine.port}`;
  const start =
    by === 'command' ? `npx cdk-mailroom local${port}` : `npm run --silent local -- --empty${port}`;
  return [
    '',
    `A local AWS runs at ${engine.endpoint}. To point this shell at it: eval "$(${start})"`,
    'To deploy your CDK app to it, in that shell:',
    `  npx cdk bootstrap aws://${LOCAL_ACCOUNT}/${LOCAL_REGION}   # once per engine`,
    '  npx cdk deploy --all --require-approval never',
    await howToStop(engine, by),
  ].join('\n');
}
