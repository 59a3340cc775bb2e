import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { projectRoot, withoutAws } from '../../../localstack/workspace.ts';

/** The stacks of the order system. */
export const STACKS = ['Bank', 'Inventory', 'Mailroom', 'Notifications', 'Operations', 'Orders', 'Payments'];

/** What a command printed, and how it ended. */
interface Ended {
  readonly code: number | null;
  readonly output: string;
}

/** Runs one of the project's commands in an environment that knows of no AWS account but what `env` says. */
export async function runCdk(
  script: string,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Ended> {
  const child = spawn(process.execPath, [join(projectRoot, 'node_modules', script), ...args], {
    cwd: projectRoot,
    env: {
      ...withoutAws(process.env),
      AWS_CONFIG_FILE: '/dev/null',
      AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
      AWS_EC2_METADATA_DISABLED: 'true',
      CDK_DISABLE_CLI_TELEMETRY: 'true',
      CDK_DISABLE_VERSION_CHECK: 'true',
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, output };
}
