import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import type { Trial, Verdict } from './trial.ts';

/** A pool of processes that run trials. */
export interface TrialWorkers {
  tryOut(trial: Trial): Promise<Verdict>;
  /** Kills the processes. */
  end(): void;
}

/** See {@link Trial.maxMs}. */
const TRIAL_MAX_MS = 120_000;

/** Starts processes on demand. @param most - the number of trials at a time */
export function createTrialWorkers(most: number): TrialWorkers {
  const limited = pLimit(most);
  const started = new Set<ChildProcess>();
  const idle: ChildProcess[] = [];

  function start(): ChildProcess {
    const worker = fork(fileURLToPath(new URL('./trial.ts', import.meta.url)));
    started.add(worker);
    worker.once('exit', () => started.delete(worker));
    return worker;
  }

  return {
    tryOut: (trial) =>
      limited(async () => {
        const worker = idle.pop() ?? start();
        const verdict = await verdictOf(worker, trial);
        if (worker.connected) idle.push(worker);
        return verdict;
      }),
    end: () => {
      for (const worker of started) worker.kill();
    },
  };
}

async function verdictOf(worker: ChildProcess, trial: Trial): Promise<Verdict> {
  const over = new AbortController();
  const { signal } = over;
  const verdict = once(worker, 'message', { signal }).then(([message]): Verdict => message);
  const exit = once(worker, 'exit', { signal }).then(([code]): Verdict => {
    return { fate: 'BROKEN', why: `The trial process exited with ${code}.` };
  });
  const late = setTimeout(trial.maxMs ?? TRIAL_MAX_MS, undefined, { signal }).then((): Verdict => {
    worker.kill('SIGKILL');
    worker.disconnect();
    return { fate: 'timed out' };
  });
  worker.send(trial);
  return await Promise.race([verdict, exit, late]).finally(() => over.abort());
}
