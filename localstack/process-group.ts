import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { errorCode } from '../lambdas/runtime/base/errors.ts';
import { poll } from './health.ts';

const run = promisify(execFile);

/** The longest time that a process group may take to end on request, in milliseconds. */
const TERM_GRACE_MS = 5_000;

/** The longest time that the system may take to remove a killed group, in milliseconds. */
const KILL_GRACE_MS = 2_000;

/** Returns true if a process with this id exists, under any owner. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === 'EPERM';
  }
}

/**
 * Stops a process group: requests its end, then kills the remaining processes.
 *
 * @param groupId - the id of the process that leads the group
 */
export async function endGroup(groupId: number): Promise<void> {
  if (!signalGroup(groupId, 'SIGTERM')) return;
  if (await poll(TERM_GRACE_MS, () => isGone(groupId))) return;
  signalGroup(groupId, 'SIGKILL');
  // A zombie process stays listed after it has ended; that is not an error.
  await poll(KILL_GRACE_MS, () => isGone(groupId));
}

/** Returns true if a process runs with this text in its command line. The id alone may have been reused. */
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
