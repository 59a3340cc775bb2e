import type { Deployment } from '../deployment/deployment.ts';
import { type ChangeOptions, type PlannedVerdicts, reasonToApply } from '../terminal/change.ts';
import type { ExitCode } from '../terminal/io.ts';
import { type Report, reportOf } from '../terminal/terminal.ts';

/** A plan, and what was made of it. */
export interface Outcome<Plan, Made> {
  readonly plan: Plan;
  /** `undefined` if it was only planned. */
  readonly made: Made | undefined;
}

/** A change of a Mailroom, which the command and the page run: it is planned, and with `--apply` made as it was planned. */
export interface OperatorChange<Options extends ChangeOptions, Plan, Made, Document> {
  /**
   * Reads what the change would do. It writes nothing.
   *
   * @param planned - the plan that was confirmed: nothing else is changed @default the options alone decide
   */
  plan(deployment: Deployment, options: Options, planned?: PlannedVerdicts): Promise<Plan>;
  /** Makes what the plan describes, and records it. */
  apply(deployment: Deployment, plan: Plan, options: Options & { readonly reason: string }): Promise<Made>;
  /** The document of `--json`, and the exit code, 0 by default. */
  result(
    deployment: Deployment,
    outcome: Outcome<Plan, Made>,
    options: Options,
  ): { readonly json: Document; readonly exitCode?: ExitCode };
  /** The outcome as text, and the command that comes next. @param outcome - with every string escaped */
  text(deployment: Deployment, outcome: Outcome<Plan, Made>, options: Options): string;
  /** Shows again what the plan has received and hidden. @default it hides nothing */
  release?(deployment: Deployment, plan: Plan): Promise<void>;
}

/**
 * Plans a change; with `apply`, makes it.
 *
 * @param planned - the plan that was confirmed @default the options alone decide
 * @throws `BAD_ARGUMENT` if it is made without a reason, and the refusals of the change
 *
 * @example
 * ```ts
 * const { json } = await run(redrive, deployment, { source: 'consumer:payments', apply: true, reason: 'the bank is back' });
 * ```
 */
export async function run<Options extends ChangeOptions, Plan, Made, Document>(
  change: OperatorChange<Options, Plan, Made, Document>,
  deployment: Deployment,
  options: Options,
  planned?: PlannedVerdicts,
): Promise<Report<Document>> {
  const reason = reasonToApply(options);
  const plan = await change.plan(deployment, options, planned);
  try {
    const made =
      reason === undefined ? undefined : await change.apply(deployment, plan, { ...options, reason });
    const outcome = { plan, made };
    const { json, exitCode } = change.result(deployment, outcome, options);
    return reportOf(json, outcome, (seen) => change.text(deployment, seen, options), exitCode);
  } finally {
    await change.release?.(deployment, plan);
  }
}
