import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { runCdk } from './cdk-process.ts';
import { identify, lastLines } from './health.ts';
import { LOCAL_ACCOUNT, LOCAL_REGION, localEnvironment, withoutAws } from './workspace.ts';

/** The number of lines of CDK output that an error shows. */
const ERROR_LINES = 30;

/** A run of the CDK that can reach nothing but a local engine. */
export interface LocalCdkRun {
  /** The engine. @default none: for a synthesis */
  readonly endpoint?: string;
  readonly cwd: string;
  readonly args: readonly string[];
  /** Receives each line of its output. */
  readonly onLine?: (line: string) => void;
}

/**
 * Runs the project's own CDK against a local engine.
 *
 * @throws `DEPLOY_FAILED` with the last lines of its output and the remedy
 *
 * @example
 * ```ts
 * await localCdk({ endpoint, cwd, args: ['bootstrap', 'aws://000000000000/us-east-1'] });
 * ```
 */
export async function localCdk({ endpoint, cwd, args, onLine }: LocalCdkRun): Promise<void> {
  const { code, lines } = await runCdk({ cwd, args, onLine, env: cdkEnvironment(endpoint) });
  if (code !== 0) throw await cdkFailed(endpoint, args[0] ?? '', lines);
}

/** The environment of a CDK that can reach nothing but a local engine. */
export function cdkEnvironment(endpoint?: string): Record<string, string> {
  return {
    ...withoutAws(process.env),
    ...(endpoint !== undefined && localEnvironment(endpoint)),
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

async function cdkFailed(
  endpoint: string | undefined,
  what: string,
  lines: readonly string[],
): Promise<MailroomError> {
  const advice =
    endpoint === undefined || (await identify(endpoint)) !== 'nothing'
      ? 'Correct the cause and run the same command again. To start over with a new engine, run `npm run local:stop` first.'
      : `The engine at ${endpoint} has stopped answering. Its log, .local/engine-<port>.log, contains the reason.`;
  return new MailroomError(
    'DEPLOY_FAILED',
    `cdk ${what} failed${endpoint === undefined ? '' : ` on ${endpoint}`}. The last lines of its output:\n${lastLines(lines.join('\n'), ERROR_LINES)}\n${advice}`,
  );
}
