import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorCode } from '../lambdas/runtime/errors.ts';
import { poll } from './health.ts';

const run = promisify(execFile);

/** How long a process group may take to end after it was asked to, milliseconds. */
const TERM_GRACE_MS = 5_000;

/** How long to wait for the system to take a killed group away, milliseconds. */
const KILL_GRACE_MS = 2_000;

/** Whether a process of this id exists, ours or not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * Ends a process group: asks all of it to end, then kills what is left.
 *
 * @param groupId - the id of the process that leads the group
 */
export async function endGroup(groupId: number): Promise<void> {
  if (!signalGroup(groupId, 'SIGTERM')) return;
  if (await poll(TERM_GRACE_MS, () => isGone(groupId))) return;
  signalGroup(groupId, 'SIGKILL');
  // A process that nobody collects stays listed although it has ended: not worth an error.
  await poll(KILL_GRACE_MS, () => isGone(groupId));
}

/**
 * Whether a process runs with this text in its command line: a number alone may belong to another process by
 * now.
 */
export async function runsWith(pid: number, text: string): Promise<boolean> {
  try {
    const { stdout } = await run('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
    return stdout.includes(text);
  } catch {
    return false;
  }
}

function signalGroup(groupId: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-groupId, signal);
    return true;
  } catch {
    return false;
  }
}

function isGone(groupId: number): true | undefined {
  try {
    process.kill(-groupId, 0);
    return undefined;
  } catch {
    return true;
  }
}
