import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { MailroomError } from '../../../../lambdas/runtime/base/errors.ts';
import type { Deployment } from '../../../deployment/deployment.ts';
import type { Plan, PlanRequest, Run } from '../protocol.ts';
import { type CommandResult, type RunMailroom, runCommand } from '../run-command.ts';
import { applyRequest, planRequest } from './plan-request.ts';
import { type PlannedChange, planArguments, plannedChange, terminalCommand } from './planned-change.ts';
import { createRuns, type RunsDeps } from './runs.ts';

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
   * @throws `READ_ONLY`, `NO_SUCH_PLAN`, `PLAN_EXPIRED`, `BAD_ARGUMENT` for the reason, `WRONG_CONFIRMATION`, `NOTHING_PLANNED`,
   * `ALREADY_RUNNING`
   */
  apply(id: string, request: unknown): Run;
  /** Stops a run, as Ctrl-C does. @returns the run, which ends soon @throws `NO_SUCH_RUN` */
  stop(id: string): Run;
  /** The last 50 runs, the newest first. */
  runs(): readonly Run[];
}

/** Dependencies of {@link createPlans}. */
export interface PlansDeps extends RunsDeps {
  /** The page was started with `--allow-changes`. */
  readonly allowsChanges: boolean;
}

/** A plan is valid for this long. AWS's time measures it, as every other time of the page. */
const VALID_MS = 120_000;

/** The most plans that are kept: with 1,000 dead letters each, some megabytes. */
const KEPT_MAX = 20;

/** A plan that was shown. */
interface KeptPlan {
  readonly plan: Plan;
  readonly change: PlannedChange;
}

/**
 * Creates the changes of the page.
 *
 * @example
 * ```ts
 * const plans = createPlans({ deployment, run: runMailroom, allowsChanges, announce: (run) => live.announce({ kind: 'run', run }) });
 * const plan = await plans.make({ kind: 'redrive', source: 'consumer:payments', cause: 'BankError' });
 * plans.apply(plan.id, { reason: 'the bank is back', confirmation: String(plan.count) });
 * ```
 */
export function createPlans(deps: PlansDeps): Plans {
  const { deployment, run, allowsChanges } = deps;
  const kept = new Map<string, KeptPlan>();
  const runs = createRuns(deps);
  // A plan receives dead letters, which hides them from another plan: one at a time.
  const limit = pLimit(1);
  const now = () => deployment.clock.now();
  return {
    make: async (request) => {
      if (!allowsChanges) throw readOnly();
      const wanted = planRequest(request);
      const document = await limit(() => planDocument(deployment, run, wanted));
      const change = plannedChange(deployment, wanted, document);
      const plan: Plan = {
        id: randomUUID(),
        kind: change.kind,
        command: terminalCommand(deployment, change),
        expiresAt: now() + VALID_MS,
        document,
        count: change.planned.size,
        confirmation: change.confirmation,
      };
      kept.set(plan.id, { plan, change });
      for (const id of [...kept.keys()].slice(0, -KEPT_MAX)) kept.delete(id);
      return plan;
    },
    apply: (id, request) => {
      if (!allowsChanges) throw readOnly();
      const { plan, change } = found(kept, id);
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

function found(kept: ReadonlyMap<string, KeptPlan>, id: string): KeptPlan {
  const plan = kept.get(id);
  if (plan !== undefined) return plan;
  throw new MailroomError(
    'NO_SUCH_PLAN',
    'There is no such plan: it was applied before, or newer plans have replaced it. Plan it again.',
  );
}

/** Runs the command without `--apply`. A cause of the page is exact: no dead letter whose cause only contains it is planned. */
async function planDocument(
  deployment: Deployment,
  run: RunMailroom,
  request: PlanRequest,
): Promise<unknown> {
  const { argv, input } = planArguments(deployment, request);
  const document = documentOf(await runCommand(run, deployment, argv, { input }));
  if (request.kind === 'repair' || request.kind === 'resend' || request.cause === undefined) return document;
  const { deadLetters, ...rest } = document as {
    readonly deadLetters: readonly { readonly id: string; readonly fingerprint: string | null }[];
  };
  const exact = deadLetters.filter(({ fingerprint }) => fingerprint === request.cause);
  if (exact.length === deadLetters.length) return document;
  // Without ids the command would take every dead letter.
  if (exact.length === 0) return { ...rest, deadLetters: [] };
  return planDocument(deployment, run, { ...request, cause: undefined, ids: exact.map(({ id }) => id) });
}

/** The document of a finished command. @throws its refusal; the error of AWS under the code that the command reports */
function documentOf({ document, exitCode }: CommandResult): unknown {
  const { error } = Object(document) as {
    readonly error?: { readonly code: string; readonly message: string };
  };
  if (error === undefined && document !== null) return document;
  const { code = 'DEFECT', message = `The command ended with ${exitCode} and printed nothing.` } =
    error ?? {};
  if (exitCode < AWS_EXIT) throw new MailroomError(code, message);
  throw Object.assign(new Error(message), { name: code });
}

/** From this exit code on, a command was not refused: AWS failed, or the command itself. */
const AWS_EXIT = 4;

function readOnly(): MailroomError {
  return new MailroomError(
    'READ_ONLY',
    'This page is read-only. Start it with --allow-changes, or run the command that it shows in a terminal.',
  );
}
