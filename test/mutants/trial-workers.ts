import { type ChildProcess, fork } from 'node:child_process';
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

function verdictOf(worker: ChildProcess, trial: Trial): Promise<Verdict> {
  return new Promise((resolve) => {
    const settle = (verdict: Verdict) => {
      clearTimeout(timer);
      worker.off('message', settle);
      worker.off('exit', exited);
      resolve(verdict);
    };
    const exited = (code: number | null) =>
      settle({ fate: 'BROKEN', why: `The trial process exited with ${code}.` });
    const timer = setTimeout(() => {
      worker.kill('SIGKILL');
      worker.disconnect();
      settle({ fate: 'timed out' });
    }, trial.maxMs ?? TRIAL_MAX_MS);
    worker.on('message', settle);
    worker.on('exit', exited);
    worker.send(trial);
  });
}
