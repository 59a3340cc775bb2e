import { spawn } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { projectRoot } from './workspace.ts';

/** The outputs of all stacks by name, e.g. `TableName`, `OrdersUrl`. Names are unique across stacks. */
export type Outputs = Readonly<Record<string, string>>;

/** A run of the project's own CDK. */
export interface CdkRun {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly args: readonly string[];
  /** Receives each line of its output. */
  readonly onLine?: ((line: string) => void) | undefined;
  /**
   * Ends the CDK and the processes it started when it is aborted. With it, the CDK runs in its own process group, which a
   * Ctrl-C in the terminal does not reach.
   *
   * @default it ends with this process's group
   */
  readonly signal?: AbortSignal | undefined;
}

/** The end of a run of the CDK. */
export interface CdkEnd {
  /** `null` if a signal ended it. */
  readonly code: number | null;
  readonly lines: readonly string[];
}

/**
 * Runs the project's own CDK, and resolves when it has ended, whatever its exit code.
 *
 * @example
 * ```ts
 * const { code, lines } = await runCdk({ cwd: projectRoot, env, args: ['list'] });
 * ```
 */
export async function runCdk({ cwd, env, args, onLine, signal }: CdkRun): Promise<CdkEnd> {
  const cli = join(projectRoot, 'node_modules', 'aws-cdk', 'bin', 'cdk');
  const child = spawn(process.execPath, [cli, ...args, '--no-notices', '--no-color', '--ci'], {
    cwd,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: signal !== undefined,
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      onLine?.(line);
    });
  }
  const end = (): void => endGroupOf(child.pid);
  signal?.addEventListener('abort', end, { once: true });
  if (signal?.aborted) end();
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { code, lines };
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

/** Ends a process that was started in its own group, with the processes it started. */
export function endGroupOf(pid: number | undefined, signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // It has already ended.
  }
}

/** Merges the outputs of all stacks in the file that `cdk deploy --outputs-file` wrote. */
export async function readOutputs(file: string): Promise<Outputs> {
  const stacks = JSON.parse(await readFile(file, 'utf8')) as Record<string, Record<string, string>>;
  const named = Object.values(stacks).flatMap((outputs) => Object.entries(outputs));
  // The CDK adds outputs for cross-stack references.
  return Object.fromEntries(named.filter(([name]) => !name.startsWith('ExportsOutput')));
}
