import { readFile, rm, writeFile } from 'node:fs/promises';
import type { Engine } from './engine.ts';
import { stopLocalStack } from './localstack.ts';
import { endMiniStack, type MiniStackProcess } from './ministack.ts';
import { runsWith } from './process-group.ts';
import { localFile } from './workspace.ts';

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
  if (left?.kind === 'localstack') {
    await stopLocalStack(port);
  } else if (left?.process && (await runsWith(left.process.pid, left.process.mark))) {
    await endMiniStack(left.process);
  } else {
    return false;
  }
  await rm(stateFile(port), { force: true });
  return true;
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
