import { randomUUID } from 'node:crypto';
import { MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../../deployment/deployment.ts';
import { EXIT, type ExitCode } from '../../../terminal/io.ts';
import type { Run } from '../protocol.ts';
import { runQuietly } from '../quiet-run.ts';
import { type PlannedChange, terminalCommand } from './planned-change.ts';

/** Dependencies of {@link createRuns}. */
export interface RunsDeps {
  readonly deployment: Deployment;
  /** Receives each state of a run. */
  readonly announce: (run: Run) => void;
}

/** The runs of the page. */
interface Runs {
  /** Starts the change of a plan. @throws `ALREADY_RUNNING` if a change of the same source is being made */
  start(change: PlannedChange, reason: string): Run;
  /** @throws `NO_SUCH_RUN` */
  stop(id: string): Run;
  /** The newest first. */
  list(): readonly Run[];
}

/** The most runs that are kept. Those that go on are not dropped. */
const KEPT_MAX = 50;

/** A run, and what ends it. */
interface KeptRun {
  run: Run;
  readonly lock: string;
  readonly stop: AbortController;
}

/** Creates the runs of the page: one at a time for each dead-letter source, so that two cannot take each other's dead letters. */
export function createRuns(deps: RunsDeps): Runs {
  const { deployment, announce } = deps;
  const kept: KeptRun[] = [];
  const update = (one: KeptRun, change: Partial<Run>) => {
    one.run = { ...one.run, ...change };
    announce(one.run);
  };
  return {
    start: (change, reason) => {
      const other = kept.find(({ run, lock }) => run.state === 'running' && lock === change.lock);
      if (other !== undefined) throw alreadyRunning(change.lock, other.run);
      const command = terminalCommand(deployment, change, reason);
      const run: Run = {
        id: randomUUID(),
        kind: change.kind,
        command,
        state: 'running',
        startedAt: deployment.clock.now(),
        progress: '',
        document: null,
        error: null,
        exitCode: null,
        notes: [],
      };
      const one = { run, lock: change.lock, stop: new AbortController() };
      kept.unshift(one);
      const over = kept.filter((known) => known.run.state !== 'running').slice(KEPT_MAX - 1);
      for (const old of over) kept.splice(kept.indexOf(old), 1);
      announce(run);
      void perform(deployment, change, reason, one.stop.signal, (progress) => update(one, { progress })).then(
        (end) => update(one, end),
      );
      return run;
    },
    stop: (id) => {
      const one = kept.find(({ run }) => run.id === id);
      if (one === undefined)
        throw new MailroomError('NO_SUCH_RUN', 'There is no such run: the page lists the last 50.');
      one.stop.abort();
      return one.run;
    },
    list: () => kept.map(({ run }) => run),
  };
}

/** Makes the change of a plan. @returns the end of the run; it never throws */
async function perform(
  deployment: Deployment,
  { apply }: PlannedChange,
  reason: string,
  signal: AbortSignal,
  onProgress: (line: string) => void,
): Promise<Partial<Run>> {
  const result = await runQuietly(deployment, (quiet) => apply(quiet, reason), { signal, onProgress });
  return { state: stateOf(result.exitCode), ...result };
}

function stateOf(exitCode: ExitCode): Run['state'] {
  if (exitCode === EXIT.stopped) return 'stopped';
  return exitCode === EXIT.ok || exitCode === EXIT.attention ? 'done' : 'failed';
}

function alreadyRunning(lock: string, { id, progress }: Run): MailroomError {
  return new MailroomError(
    'ALREADY_RUNNING',
    `A change of ${lock} is being made already (run ${id}${progress === '' ? '' : `, ${progress}`}). Wait for it, or stop it.`,
  );
}
