import { execFile } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { isAlive } from '../../../localstack/process-group.ts';
import { localFile } from '../../../localstack/workspace.ts';

/** The git-ignored folder of the brokers' programs, data and logs. */
function brokersDir(): string {
  const dir = localFile('brokers');
  mkdirSync(dir, { recursive: true });
  return dir;
}

/**
 * A folder that is filled once. Its name contains the hash of what it is filled from, and it only gets that name when it is
 * complete: an interrupted download never looks complete, and two concurrent ones do not collide.
 *
 * @param content - what it is filled from, such as the pinned versions
 * @param fill - receives the empty folder
 */
export async function filledOnce(
  name: string,
  content: string,
  fill: (dir: string) => Promise<void>,
): Promise<string> {
  const dir = join(
    brokersDir(),
    `${name}-${createHash('sha256').update(content).digest('hex').slice(0, 16)}`,
  );
  if (existsSync(dir)) return dir;
  const filling = await ownDir(`${name}.filling`);
  try {
    await fill(filling);
    await rename(filling, dir);
  } catch (error) {
    await rm(filling, { recursive: true, force: true });
    // Another process was faster.
    if (!existsSync(dir)) throw error;
  }
  return dir;
}

/** Copies a folder with the owner and the mode of each file. */
export async function copyFolder(from: string, to: string): Promise<void> {
  await promisify(execFile)('cp', ['-a', from, to]);
}

/** A new folder of this process, whose name ends with the id of the process: see {@link removeLeftovers}. */
export async function ownDir(name: string): Promise<string> {
  const dir = join(brokersDir(), `${name}.${randomBytes(3).toString('hex')}.${process.pid}`);
  await mkdir(dir, { recursive: true });
  return dir;
}

/** The path of a server's log. It is kept after the tests. */
export function logOf(name: string): string {
  return join(brokersDir(), `${name}.log`);
}

/** Removes the folders of processes that were killed before they could remove them, or that only stopped their servers. */
export function removeLeftovers(): void {
  for (const name of readdirSync(brokersDir())) {
    const [, pid] = /\.[0-9a-f]{6}\.(\d+)$/.exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(join(brokersDir(), name), { recursive: true, force: true, maxRetries: 3 }); // another run removes it, too
  }
}
