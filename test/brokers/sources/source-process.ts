import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Counted } from '../receipts.ts';
import type { TargetPlace } from '../targets/target-of.ts';

const child = fileURLToPath(new URL('source-process.child.ts', import.meta.url));

/** A process that consumes, with an inbox on a table that outlives it. */
export interface SourceProcessOptions {
  /** The endpoint of the local AWS with the table. */
  readonly endpoint: string;
  readonly tableName: string;
  /** The topic, stream or queue, made by `createSource`. */
  readonly name: string;
  readonly place: TargetPlace;
  /** Kills the process, as `kill -9` does, in its third handler, or when it is about to acknowledge its third message. */
  readonly killed?: 'in-handler' | 'before-ack';
  /** The number of the event whose handler throws the first time. */
  readonly failsOnce?: number;
}

/** A running process. */
export interface SourceProcess {
  /** The events whose handlers have started, in that order. */
  readonly handled: () => Counted[];
  readonly hasEnded: () => boolean;
  /** Resolves with the exit code or the signal when it has ended. */
  readonly ended: () => Promise<number | string>;
  /** Requests its end. @returns as {@link SourceProcess.ended} */
  readonly stop: () => Promise<number | string>;
}

/**
 * Starts a process, and waits until it consumes and can be stopped, or has ended.
 *
 * @param dir - a folder for the input of the process
 */
export async function startSource(dir: string, options: SourceProcessOptions): Promise<SourceProcess> {
  const input = join(dir, `${randomUUID()}.json`);
  await writeFile(input, JSON.stringify(options));
  const started = spawn(process.execPath, ['--import', 'tsx', child, input], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  const ready = new Promise<void>((resolve) => {
    started.stdout.on('data', (data) => {
      text += data;
      if (/^ready$/m.test(text)) resolve();
    });
  });
  const ended = endOf(started);
  await Promise.race([ready, ended]);
  return {
    handled: () => [...text.matchAll(/^handles (\S+) (\S+)$/gm)].map(([, id = '', key]) => ({ id, key })),
    hasEnded: () => started.exitCode !== null || started.signalCode !== null,
    ended: () => ended,
    stop: async () => {
      started.kill('SIGTERM');
      return await ended;
    },
  };
}

async function endOf(process: ChildProcess): Promise<number | string> {
  const [code, signal] = await once(process, 'close');
  return signal ?? code;
}
