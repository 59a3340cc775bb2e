import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { MailroomError } from '../lambdas/runtime/base/errors.ts';
import { lastLines } from './health.ts';
import { ownFile } from './workspace.ts';

const run = promisify(execFile);

const ANSWER_TIMEOUT_MS = 10_000;

/** The timeout of the first start in milliseconds, because it downloads the image. */
const UP_TIMEOUT_MS = 600_000;

/** Returns true if a Docker daemon answers and supports `compose`. */
export async function dockerAnswers(): Promise<boolean> {
  try {
    await run('docker', ['info'], { timeout: ANSWER_TIMEOUT_MS });
    await run('docker', ['compose', 'version'], { timeout: ANSWER_TIMEOUT_MS });
    return true;
  } catch {
    return false;
  }
}

/**
 * Starts LocalStack Community in a container and waits until it is healthy.
 *
 * @throws `ENGINE_START` if it does not become healthy, with the last lines of Docker's output
 */
export async function startLocalStack(port: number): Promise<void> {
  try {
    await compose(port, ['up', '--detach', '--wait'], UP_TIMEOUT_MS);
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    throw new MailroomError(
      'ENGINE_START',
      `The local AWS (LocalStack, in Docker) did not start on port ${port}:\n${lastLines(stderr) || `  ${String(error)}`}\n` +
        'To use MiniStack instead of Docker, install Python 3.10 or later.',
      { cause: error },
    );
  }
}

/** Stops the LocalStack of a port and removes its container. */
export async function stopLocalStack(port: number): Promise<void> {
  await compose(port, ['down', '--volumes'], UP_TIMEOUT_MS);
}

async function compose(port: number, args: readonly string[], timeout: number): Promise<void> {
  const file = ownFile('compose.yml');
  await run('docker', ['compose', '--project-name', `mailroom-${port}`, '--file', file, ...args], {
    env: { ...process.env, MAILROOM_PORT: String(port) },
    timeout,
  });
}
