import { fork } from 'node:child_process';
import { join } from 'node:path';
import { endGroupOf, type Outputs } from '../localstack/cdk-process.ts';
import { lastLines } from '../localstack/health.ts';
import type { StepPrinter } from '../localstack/step-printer.ts';
import { projectRoot } from '../localstack/workspace.ts';
import type { VerifyResult } from './receipt.ts';
import { mailroomStack } from './system-name.ts';

/** A message of the process that runs the tests. */
export type TestMessage =
  | { readonly file: string }
  | { readonly begun: string }
  | { readonly result: VerifyResult };

/** The tests of one deployment. */
interface TestRun {
  readonly name: string;
  readonly outputs: Outputs;
  /** Orders of the demo. */
  readonly orders: number;
  /** Orders per second. */
  readonly rate: number;
  readonly steps: Pick<StepPrinter, 'step' | 'detail'>;
  /** Kills the tests when it is aborted. */
  readonly signal: AbortSignal;
  readonly onResult: (result: VerifyResult) => void;
}

/**
 * Runs the tests of vitest.verify.config.ts against a deployment. They find the account or the engine in the environment,
 * as the SDK and the `mailroom` command do.
 *
 * @throws an error with the last lines of the output if they did not run to their end
 */
export async function runTests({
  name,
  outputs,
  orders,
  rate,
  steps,
  signal,
  onResult,
}: TestRun): Promise<void> {
  const config = join(projectRoot, 'vitest.verify.config.ts');
  // In a process group of its own, which a Ctrl-C in the terminal does not reach, and which is killed as a whole.
  const child = fork(join(projectRoot, 'node_modules/vitest/vitest.mjs'), ['run', '--config', config], {
    cwd: projectRoot,
    env: {
      ...process.env,
      VERIFY_DEPLOYMENT: JSON.stringify({ stack: mailroomStack(name), outputs, orders, rate }),
    },
    detached: true,
    execArgv: [],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  let [output, failed] = ['', false];
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (output += chunk));
  child.on('message', (message: TestMessage) => {
    if ('file' in message) steps.step(message.file);
    else if ('begun' in message) steps.detail(message.begun);
    else {
      failed ||= message.result.outcome === 'failed';
      onResult(message.result);
    }
  });
  const kill = (): void => endGroupOf(child.pid, 'SIGKILL');
  signal.addEventListener('abort', kill);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject).once('close', resolve);
  }).finally(() => signal.removeEventListener('abort', kill));
  signal.throwIfAborted();
  if (code !== 0 && !failed)
    throw new Error(`vitest ended with ${code}. The last lines of its output:\n${lastLines(output)}`);
}
