import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { MailroomError } from '../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { EXIT, type ExitCode } from '../../terminal/io.ts';
import { applyRequest, planRequest } from './plan-request.ts';
import { type PlannedChange, plannedChange, planOf, terminalCommand } from './planned-change.ts';
import type { Plan, PlanDocument, PlanRequest, Run } from './protocol.ts';
import { runQuietly } from './quiet-run.ts';

/** The changes that the page makes: each is planned, confirmed, and then made by the command itself. */
export interface Plans {
  /**
   * Makes a plan. It is valid for two minutes and can be applied once.
   *
   * @param request - a `PlanRequest` of the page
   * @throws `READ_ONLY`, `BAD_ARGUMENT`, and the refusals of the command, e.g. `NO_SUCH_DEAD_LETTER`
   */
  make(request: unknown): Promise<Plan>;
  /**
   * Starts to apply a plan. What has changed since the plan is left alone and reported.
   *
   * @param request - an `ApplyRequest` of the page
   * @returns the run, which goes on
   * @throws `READ_ONLY`, `NO_SUCH_PLAN`, `PLAN_EXPIRED`, `BAD_ARGUMENT` for the reason, `WRONG_CONFIRMATION`, `NOTHING_PLANNED`, `ALREADY_RUNNING`
   */
  apply(id: string, request: unknown): Run;
  /** Stops a run, as Ctrl-C does. @returns the run, which ends soon @throws `NO_SUCH_RUN` */
  stop(id: string): Run;
  /** The last 50 runs, the newest first. */
  runs(): readonly Run[];
}

/** Dependencies of {@link createPlans}. */
interface PlansDeps {
  readonly deployment: Deployment;
  /** Receives each state of a run. */
  readonly announce: (run: Run) => void;
  /** The page was started with `--allow-changes`. */
  readonly allowsChanges: boolean;
}

/** A plan is valid for this long. AWS's time measures it, as every other time of the page. */
const VALID_MS = 120_000;

/** The most plans that are kept: with 1,000 dead letters each, some megabytes. */
const PLANS_MAX = 20;

/**
 * Creates the changes of the page.
 *
 * @example
 * ```ts
 * const plan = await plans.make({ kind: 'redrive', source: 'consumer:payments', cause: 'BankError' });
 * plans.apply(plan.id, { reason: 'the bank is back', confirmation: String(plan.count) });
 * ```
 */
export function createPlans(deps: PlansDeps): Plans {
  const { deployment, allowsChanges } = deps;
  const kept = new Map<string, { readonly plan: Plan; readonly change: PlannedChange }>();
  const runs = createRuns(deps);
  // A plan receives dead letters, which hides them from another plan: one at a time.
  const limit = pLimit(1);
  const now = () => deployment.clock.now();
  return {
    make: async (request) => {
      if (!allowsChanges) throw readOnly();
      const wanted = planRequest(request);
      const document = await limit(() => planDocument(deployment, wanted));
      const change = plannedChange(deployment, wanted, document);
      const plan: Plan = {
        ...document,
        id: randomUUID(),
        command: terminalCommand(deployment, change),
        expiresAt: now() + VALID_MS,
        count: change.planned.size,
        confirmation: change.confirmation,
        effects: change.effects,
      };
      kept.set(plan.id, { plan, change });
      for (const id of [...kept.keys()].slice(0, -PLANS_MAX)) kept.delete(id);
      return plan;
    },
    apply: (id, request) => {
      if (!allowsChanges) throw readOnly();
      const shown = kept.get(id);
      if (shown === undefined)
        throw new MailroomError(
          'NO_SUCH_PLAN',
          'There is no such plan: it was applied before, or newer plans have replaced it. Plan it again.',
        );
      const { plan, change } = shown;
      const { reason, confirmation } = applyRequest(request);
      if (now() >= plan.expiresAt)
        throw new MailroomError(
          'PLAN_EXPIRED',
          'The plan is older than two minutes. Plan it again: a verdict may have changed.',
        );
      if (confirmation.trim() !== plan.confirmation)
        throw new MailroomError(
          'WRONG_CONFIRMATION',
          `The confirmation is "${confirmation}", but must be "${plan.confirmation}". Nothing was changed.`,
        );
      if (plan.count === 0)
        throw new MailroomError('NOTHING_PLANNED', 'The plan changes nothing, so there is nothing to apply.');
      const started = runs.start(change, reason);
      kept.delete(id);
      return started;
    },
    stop: runs.stop,
    runs: runs.list,
  };
}

/**
 * Plans a change. The page matches causes exactly: a dead letter whose cause merely contains the text is not included.
 *
 * @throws the refusal of the command; the error of AWS under the code that the command reports
 */
async function planDocument(deployment: Deployment, request: PlanRequest): Promise<PlanDocument> {
  const { document: plan, error, exitCode } = await runQuietly(deployment, (quiet) => planOf(quiet, request));
  if (error !== null) {
    const { code, message } = error;
    throw exitCode < EXIT.aws
      ? new MailroomError(code, message)
      : Object.assign(new Error(message), { name: code });
  }
  if (plan === null || (plan.kind !== 'redrive' && plan.kind !== 'discard')) return plan as PlanDocument;
  if (request.kind === 'repair' || request.kind === 'resend' || request.cause === undefined) return plan;
  const { deadLetters } = plan.document;
  const exact = deadLetters.filter(({ fingerprint }) => fingerprint === request.cause).map(({ id }) => id);
  if (exact.length === deadLetters.length) return plan;
  if (exact.length > 0) return planDocument(deployment, { ...request, cause: undefined, ids: exact });
  // Without ids the command would take every dead letter.
  return plan.kind === 'redrive'
    ? { kind: 'redrive', document: { ...plan.document, deadLetters: [] } }
    : { kind: 'discard', document: { ...plan.document, deadLetters: [] } };
}

function readOnly(): MailroomError {
  return new MailroomError(
    'READ_ONLY',
    'This page is read-only. Start it with --allow-changes, or run the command that it shows in a terminal.',
  );
}

/** The most runs that are kept. Those that go on are not dropped. */
const RUNS_MAX = 50;

/** A run, and what ends it. */
interface KeptRun {
  run: Run;
  readonly lock: string;
  readonly stop: AbortController;
}

/** Creates the runs of the page: one at a time for each dead-letter source, so that two cannot take each other's dead letters. */
function createRuns({ deployment, announce }: Pick<PlansDeps, 'deployment' | 'announce'>) {
  const kept: KeptRun[] = [];
  const update = (one: KeptRun, change: Partial<Run>) => {
    one.run = { ...one.run, ...change };
    announce(one.run);
  };
  return {
    start: (change: PlannedChange, reason: string): Run => {
      const { kind, lock } = change;
      const other = kept.find((one) => one.run.state === 'running' && one.lock === lock);
      if (other !== undefined) throw alreadyRunning(lock, other.run);
      const run: Run = {
        ...{ id: randomUUID(), kind, command: terminalCommand(deployment, change, reason) },
        ...{ state: 'running', startedAt: deployment.clock.now(), progress: '', reached: {} },
        ...{ document: null, error: null, exitCode: null, notes: [] },
      };
      const one = { run, lock, stop: new AbortController() };
      kept.unshift(one);
      const over = kept.filter((known) => known.run.state !== 'running').slice(RUNS_MAX - 1);
      for (const old of over) kept.splice(kept.indexOf(old), 1);
      announce(run);
      void runQuietly(deployment, (quiet) => change.apply(quiet, reason), {
        signal: one.stop.signal,
        onProgress: (progress, reached) =>
          update(one, { progress, reached: { ...one.run.reached, ...reached } }),
      }).then((end) => update(one, { state: stateOf(end.exitCode), ...end }));
      return run;
    },
    stop: (id: string): Run => {
      const one = kept.find(({ run }) => run.id === id);
      if (one === undefined)
        throw new MailroomError('NO_SUCH_RUN', 'There is no such run: the page lists the last 50.');
      one.stop.abort();
      return one.run;
    },
    list: (): readonly Run[] => kept.map(({ run }) => run),
  };
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
