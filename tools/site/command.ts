import { spawn } from 'node:child_process';
import { once } from 'node:events';

/**
 * Runs a command in the foreground and waits for its end.
 *
 * @param variables - set for the command
 * @throws Error If it fails; its own output says why.
 */
export async function command(
  folder: string,
  program: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<void> {
  const child = spawn(program, args, {
    cwd: folder,
    stdio: 'inherit',
    env: { ...process.env, ...variables },
  });
  const [code] = await once(child, 'exit');
  if (code !== 0) throw new Error(`"${[program, ...args].join(' ')}" ended with exit code ${code}.`);
}
