import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { poll } from '../../../localstack/health.ts';

/** A server that does not stop on request within this time is killed. */
const STOP_DEADLINE_MS = 30_000;

/**
 * Becomes the server, after it has started a watch in the same process group: when the pipe of the process that started it
 * closes, however that process ended, the watch kills the group. It ignores the request to stop, which is the server's.
 */
const WATCHED = '(trap "" TERM INT HUP; read -r _ <&3; kill -s KILL -- -$$) & exec "$@" 3<&-';

export interface ServerCommand {
  readonly command: string;
  readonly args: readonly string[];
  readonly cwd: string;
  /** Its whole environment: it inherits nothing. */
  readonly env: Readonly<Record<string, string>>;
  /** The file to which its output is appended. */
  readonly log: string;
}

/** A running server. */
export interface ServerProcess {
  readonly pid: number;
  readonly hasEnded: () => boolean;
  /** Requests its end, and kills it if it does not end. */
  readonly stop: () => Promise<void>;
  /** Ends it as `kill -9` does, and returns when it has ended. */
  readonly kill: () => Promise<void>;
}

/**
 * Starts a server that does not outlive this process.
 *
 * @throws Error if there is no shell
 */
export function startProcess({ command, args, cwd, env, log }: ServerCommand): ServerProcess {
  endWithVitest();
  const output = openSync(log, 'a');
  const child = spawn('/bin/sh', ['-c', WATCHED, 'sh', command, ...args], {
    cwd,
    env,
    detached: true,
    stdio: ['ignore', output, output, 'pipe'],
  });
  closeSync(output);
  const { pid } = child;
  if (pid === undefined) throw new Error('There is no /bin/sh.');
  // Neither the server nor the pipe may keep this process alive.
  child.unref();
  (child.stdio[3] as (NodeJS.WritableStream & { unref?: () => void }) | null)?.unref?.();

  const hasEnded = () => child.exitCode !== null || child.signalCode !== null;
  const kill = async () => {
    signalGroup(pid);
    if (!hasEnded()) await endOf(child);
  };
  const stop = async () => {
    child.kill('SIGTERM');
    await poll(STOP_DEADLINE_MS, () => hasEnded() || undefined);
    await kill();
  };
  return { pid, hasEnded, stop, kill };
}

async function endOf(child: ChildProcess): Promise<void> {
  child.ref();
  await once(child, 'exit');
}

/** Kills what is left of a group: the server, its children, and the watch. */
function signalGroup(groupId: number): void {
  try {
    process.kill(-groupId, 'SIGKILL');
  } catch {
    // It is empty.
  }
}

let endsWithVitest = false;

/** A worker of Vitest would otherwise first finish its test, with its servers, when Vitest itself was killed. */
function endWithVitest(): void {
  if (endsWithVitest || !process.connected || process.env.VITEST === undefined) return;
  endsWithVitest = true;
  process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'));
}
