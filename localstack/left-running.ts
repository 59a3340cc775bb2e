import { readFile, rm, writeFile } from 'node:fs/promises';
import type { Engine } from './engine.ts';
import { stopLocalStack } from './localstack.ts';
import { endMiniStack, type MiniStackProcess } from './ministack.ts';
import { runsWith } from './process-group.ts';
import { DEFAULT_PORT, localFile } from './workspace.ts';

/** What is needed to end an engine that was left running. */
interface LeftRunning {
  readonly kind: Engine['kind'];
  readonly process?: MiniStackProcess;
}

/** Notes an engine that goes on when this process ends, so that {@link stopLeftRunning} can end it. */
export async function leaveRunning(engine: Engine): Promise<void> {
  const left: LeftRunning = { kind: engine.kind, ...(engine.process && { process: engine.process }) };
  await writeFile(stateFile(engine.port), JSON.stringify(left));
}

/**
 * Ends the engine that was left running on a port, and no other process.
 *
 * @returns whether there was one
 */
export async function stopLeftRunning(port: number): Promise<boolean> {
  const left = await recall(port);
  if (left === undefined || !(await isRunning(left))) return false;
  await (left.process ? endMiniStack(left.process) : stopLocalStack(port));
  await rm(stateFile(port), { force: true });
  return true;
}

/** What becomes of an engine that goes on, and how to stop it: `npm run local:stop` is named only where it would stop it. */
export async function howToStop({ endpoint, port }: Pick<Engine, 'endpoint' | 'port'>): Promise<string> {
  const isHere = ['127.0.0.1', 'localhost'].includes(new URL(endpoint).hostname);
  const left = isHere ? await recall(port) : undefined;
  if (left === undefined || !(await isRunning(left)))
    return 'The engine was running before, and is left as it is.';
  return `The engine keeps running. To stop it: npm run local:stop${port === DEFAULT_PORT ? '' : ` -- --port ${port}`}`;
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
