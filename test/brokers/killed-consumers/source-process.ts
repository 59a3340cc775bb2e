import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { NatsAddress } from '../servers/nats-broker.ts';

const child = fileURLToPath(new URL('source-process.child.ts', import.meta.url));

/** The source of a consumer process. */
export type SourcePlace =
  | { readonly kind: 'jet-stream'; readonly address: NatsAddress; readonly stream: string }
  | { readonly kind: 'kafka'; readonly address: string; readonly topic: string }
  | { readonly kind: 'rabbit'; readonly url: string; readonly queue: string };

/** One consumer process. */
export interface SourceProcess {
  readonly place: SourcePlace;
  readonly endpoint: string;
  readonly tableName: string;
  /** Kills the process, as `kill -9` does, between this many answers of the inbox and the acknowledgement of the last. @default never */
  readonly killedAfter?: number;
}

/** A consumer process that runs. */
export interface RunningProcess {
  /** Resolves with the signal or the code that ended it. */
  readonly ended: Promise<string | number>;
  /** Requests its end, and resolves with the signal or the code. */
  readonly stop: () => Promise<string | number>;
  readonly kill: () => void;
}

/** Starts a consumer in its own process. */
export function startSource(source: SourceProcess): RunningProcess {
  const started: ChildProcess = spawn(process.execPath, ['--import', 'tsx', child, JSON.stringify(source)], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  const ended = once(started, 'exit').then(([code, signal]) => signal ?? code);
  return {
    ended,
    stop: async () => {
      started.kill('SIGTERM');
      return await ended;
    },
    kill: () => void started.kill('SIGKILL'),
  };
}
