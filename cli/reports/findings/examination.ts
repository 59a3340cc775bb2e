import { type Checked, type PartProblem, runChecks, unexplained, unmadeChecks } from '../checks/check.ts';
import { type AllCheckDeps, allChecks, byLevel } from '../checks/checks.ts';
import type { Difference } from '../drift/compare.ts';
import { type ComparedStacks, compareStacks, type StackDeps } from '../drift/compared-stacks.ts';
import { type DetectedDrift, type DetectionDeps, detectedDrift, newDrift } from '../drift/detected-drift.ts';
import { differenceProblem } from '../drift/difference-problem.ts';

/** Dependencies of {@link examine}. */
export interface DoctorDeps extends AllCheckDeps, StackDeps {
  /** CloudFormation's drift detection of a stack. @default it is not run */
  readonly detect?: DetectionDeps['detect'] | undefined;
}

/** The result of {@link examine}. */
export interface Examination extends Checked, Pick<ComparedStacks, 'compared' | 'notCompared'> {
  /** The number of checks that were made. */
  readonly checks: number;
  /** The differences that a person may make. */
  readonly allowed: readonly PartProblem[];
  /** The extent of CloudFormation's drift detection; `null` if it was not run. */
  readonly drift: DetectedDrift['detected'] | null;
}

/**
 * Makes all checks of a deployed Mailroom, and compares its resources with its stacks.
 *
 * @param progress - called after each check with the number of checks made, and of all
 * @param drifting - called after each stack whose drift was detected, in the same way
 */
export async function examine(
  deps: DoctorDeps,
  progress: (made: number, all: number) => void = () => {},
  drifting: (made: number, all: number) => void = () => {},
): Promise<Examination> {
  const { detect } = deps;
  const checks = allChecks(deps);
  const [found, stacks, drift] = await Promise.all([
    runChecks(checks, (made) => progress(made, checks.length)),
    compareStacks(deps),
    detect && detectedDrift({ ...deps, detect }, drifting),
  ]);
  const unmade = unmadeChecks([...found.unmade, ...stacks.unmade, ...(drift?.unmade ?? [])]);
  const unsaid = stacks.differences.filter((difference) => !isSaid(difference, found.problems));
  return {
    checks: checks.length,
    problems: inOrder(
      unexplained([
        ...found.problems.filter((problem) => !isDeclared(problem, stacks.differences)),
        ...unsaid.map(differenceProblem),
        ...newDrift(drift?.problems ?? [], [...stacks.differences, ...stacks.allowed]),
      ]),
    ),
    // Its effect would sound like a problem.
    allowed: stacks.allowed.map(({ means: { effect, ...means }, ...rest }) =>
      differenceProblem({ ...rest, means }),
    ),
    compared: stacks.compared,
    notCompared: stacks.notCompared,
    drift: drift?.detected ?? null,
    notChecked: unmade.notChecked,
    skipped: [
      ...unmade.skipped,
      ...(drift?.skipped ?? []),
      ...(deps.roles === 'local' ? ['roles: a local engine checks no policies'] : []),
    ],
  };
}

/** True for a difference that a check has found, too. */
function isSaid({ resource, means }: Difference, problems: readonly PartProblem[]): boolean {
  return problems.some(
    ({ part, problem, physicalId = resource.physicalId }) =>
      means.saidBy?.includes(problem) &&
      physicalId === resource.physicalId &&
      (part === resource.part || problem === 'no-bus'),
  );
}

/** True for a variable that its stack declares otherwise: the difference names the command that restores it. */
function isDeclared(
  { part, problem, physicalId, member }: PartProblem,
  differences: readonly Difference[],
): boolean {
  return differences.some(({ resource, member: changed }) => {
    if (problem === 'producer') return resource.physicalId === physicalId && changed === member;
    return problem === 'settings' && resource.part === part && changed?.startsWith('Environment.');
  });
}

/** The problems of a part together, the most severe first. */
function inOrder(problems: readonly PartProblem[]): PartProblem[] {
  const sorted = byLevel(problems);
  const parts = new Set(sorted.map(({ part }) => part));
  return [...parts].flatMap((part) => sorted.filter((problem) => problem.part === part));
}
