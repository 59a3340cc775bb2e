import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** Where packages come from, and how they are reached, is the machine's. */
const REGISTRY =
  /^npm_config_(?:registry|userconfig|globalconfig|cache|ca|cafile|proxy|https_proxy|noproxy)$/i;

/** Two programs of the same command read each other's settings from the environment: these must not be ours. */
const NOT_THEIRS = /^(?:npm_|VITEST|NODE_ENV$|NODE_OPTIONS$|AWS_|CDK_|FORCE_COLOR$)/i;

/**
 * Runs one command as a user in a shell would, and waits for its end.
 *
 * @param variables - set for the command
 * @returns what it printed to its standard output
 * @throws Error when it fails, with the command and everything that it printed
 */
export async function step(
  folder: string,
  command: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const own = Object.entries(process.env).filter(([name]) => REGISTRY.test(name) || !NOT_THEIRS.test(name));
  const env = { ...Object.fromEntries(own), CI: 'true', NO_COLOR: '1', ...variables };
  try {
    const { stdout } = await promisify(execFile)(command, [...args], {
      cwd: folder,
      env,
      maxBuffer: 64 * 1024 * 1024,
    });
    return stdout;
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    const printed = [stdout, stderr].join('\n').trim() || message;
    throw new Error(`"${[command, ...args].join(' ')}" failed:\n${printed.slice(-8_000)}`);
  }
}
