import { spawn } from 'node:child_process';

/** A command that says by its exit code whether all is well. */
export interface Step {
  readonly name: string;
  /** As a shell takes it. */
  readonly command: string;
  /** What its environment has besides this process's. */
  readonly env?: Readonly<Record<string, string>>;
  /** Finds the line of its output that is worth a place beside its name when all is well. */
  readonly gist?: RegExp;
}

/**
 * Runs all steps at once and writes a line about each when it ends; of a step that failed, everything that it wrote.
 * Whatever fails, the others run to their end: one run shows all there is to repair.
 *
 * @returns the names of the steps that failed.
 */
export async function sideBySide(
  steps: readonly Step[],
  write: (text: string) => void,
  now: () => number = Date.now,
): Promise<string[]> {
  const startedAt = now();
  const failed: string[] = [];
  const width = Math.max(...steps.map(({ name }) => name.length));
  await Promise.all(
    steps.map(async ({ name, command, env, gist }) => {
      const { ok, output } = await run(command, env);
      const seconds = ((now() - startedAt) / 1000).toFixed(1);
      const [, found] = gist?.exec(output.replace(COLOURS, '')) ?? [];
      write(
        `${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(width)} ${seconds} s${ok && found ? `, ${found}` : ''}\n`,
      );
      if (ok) return;
      failed.push(name);
      write(`${output.trimEnd()}\n\n`);
    }),
  );
  return failed;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control characters
const COLOURS = /\u001b\[[\d;]*m/g;

function run(command: string, env: Step['env']): Promise<{ readonly ok: boolean; readonly output: string }> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const child = spawn(command, {
      shell: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    child.stdout.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => chunks.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => resolve({ ok: code === 0, output: Buffer.concat(chunks).toString('utf8') }));
  });
}
