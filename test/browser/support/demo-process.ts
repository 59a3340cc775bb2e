import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { projectRoot, withoutAws } from '../../../localstack/workspace.ts';

/** A running `npm run demo -- --ui --no-open`. */
export interface DemoProcess {
  /** The file that opens its page. */
  readonly redirectFile: string;
  /** Everything that it printed so far. */
  output(): string;
  /** Presses Ctrl-C. @returns the exit code */
  stop(): Promise<number | null>;
}

/**
 * Starts the demo with its page on its own engine.
 *
 * @param orders - of a run. @default orders until the run is ended
 * @throws with everything that it printed if it ends before the page is there
 */
export async function startDemo(port: number, orders?: number): Promise<DemoProcess> {
  const args = ['--import', 'tsx', 'demo/main.ts', '--ui', '--no-open', '--port', String(port)];
  const ofRun = orders === undefined ? [] : ['--orders', String(orders)];
  const child = spawn(process.execPath, [...args, ...ofRun], {
    cwd: projectRoot,
    env: withoutAws(process.env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const exit = once(child, 'exit').then(([code]) => code as number | null);
  const opened = new Promise<string>((resolve) => {
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', (line) => {
        lines.push(line);
        const [, file] = /open this file in a browser on this machine: (.+)$/.exec(line) ?? [];
        if (file !== undefined) resolve(file);
      });
    }
  });
  const redirectFile = await Promise.race([opened, exit]);
  if (typeof redirectFile !== 'string') throw new Error(`The demo ended:\n${lines.join('\n')}`);
  return {
    redirectFile,
    output: () => lines.join('\n'),
    stop: async () => {
      interrupt(child);
      return await exit;
    },
  };
}

function interrupt(child: ChildProcess): void {
  if (child.exitCode === null) child.kill('SIGINT');
}
