import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pLimit from 'p-limit';
import type { Trial, Verdict } from './trial.ts';

/** How a trial ended. */
export type TrialOutcome = Verdict | { readonly kind: 'timed out' };

/** Processes that try mutants, each one after the other. */
export interface TrialWorkers {
  tryOut(trial: Trial): Promise<TrialOutcome>;
  /** Ends the processes. */
  end(): void;
}

/** A trial takes seconds. One that takes longer than this never ends, however busy the machine is, milliseconds. */
const TRIAL_MAX_MS = 120_000;

/** Makes processes as they are needed. @param most - how many of them try something at once */
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
        const outcome = await outcomeOf(worker, trial);
        if (worker.connected) idle.push(worker);
        return outcome;
      }),
    end: () => {
      for (const worker of started) worker.kill();
    },
  };
}

function outcomeOf(worker: ChildProcess, trial: Trial): Promise<TrialOutcome> {
  return new Promise((resolve) => {
    const settle = (outcome: TrialOutcome) => {
      clearTimeout(timer);
      worker.off('message', settle);
      worker.off('exit', exited);
      resolve(outcome);
    };
    const exited = (code: number | null) =>
      settle({ kind: 'broken', why: `The process that tried it ended with ${code}.` });
    const timer = setTimeout(() => {
      worker.kill('SIGKILL');
      worker.disconnect();
      settle({ kind: 'timed out' });
    }, TRIAL_MAX_MS);
    worker.on('message', settle);
    worker.on('exit', exited);
    worker.send(trial);
  });
}
