import { readFile, rm, writeFile } from 'node:fs/promises';
import type { Engine } from './engine.ts';
import { stopLocalStack } from './localstack.ts';
import { endMiniStack, type MiniStackProcess } from './ministack.ts';
import { runsWith } from './process-group.ts';
import { DEFAULT_PORT, localFile } from './workspace.ts';

/** Identifies an engine that was left running, so that it can be stopped. */
interface LeftRunning {
  readonly kind: Engine['kind'];
  readonly process?: MiniStackProcess;
}

/** Records an engine that keeps running after this process ends, so that {@link stopLeftRunning} can stop it. */
export async function leaveRunning(engine: Engine): Promise<void> {
  const left: LeftRunning = { kind: engine.kind, ...(engine.process && { process: engine.process }) };
  await writeFile(stateFile(engine.port), JSON.stringify(left));
}

/**
 * Stops the engine that was left running on a port, and no other process.
 *
 * @returns true if there was one
 */
export async function stopLeftRunning(port: number): Promise<boolean> {
  const left = await recall(port);
  if (left === undefined || !(await isRunning(left))) return false;
  await (left.process ? endMiniStack(left.process) : stopLocalStack(port));
  await rm(stateFile(port), { force: true });
  return true;
}

/** The commands that stop an engine. The port of another one than the default follows. */
const STOP = {
  script: ['npm run local:stop', ' -- '],
  command: ['npx cdk-mailroom local stop', ' '],
} as const;

/**
 * Describes what happens to an engine that keeps running, and how to stop it. Names a command only if it would stop it.
 *
 * @param by - the script of the repository, or the `mailroom` command
 */
export async function howToStop(
  { endpoint, port }: Pick<Engine, 'endpoint' | 'port'>,
  by: keyof typeof STOP = 'script',
): Promise<string> {
  const isHere = ['127.0.0.1', 'localhost'].includes(new URL(endpoint).hostname);
  const left = isHere ? await recall(port) : undefined;
  if (left === undefined || !(await isRunning(left)))
    return 'The engine was already running and was left running.';
  const [stop, separator] = STOP[by];
  return `The engine keeps running. To stop it: ${stop}${port === DEFAULT_PORT ? '' : `${separator}--port ${port}`}`;
}

async function isRunning({ kind, process }: LeftRunning): Promise<boolean> {
  return kind === 'localstack' || (process !== undefined && (await runsWith(process.pid, process.mark)));
}

async function recall(port: number): Promise<LeftRunning | undefined> {
  try {
    return JSON.parse(await readFile(stateFile(port), 'utf8')) as LeftRunning;
  } catch {
    return undefined;
  }
}

function stateFile(port: number): string {
  return localFile(`engine-${port}.json`);
}
