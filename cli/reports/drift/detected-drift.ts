import { errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import {
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { Declarations } from '../../deployment/declared-resources.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { DRIFT_ACTIONS, type DriftedResource, type StackDrift } from '../../deployment/stack-drift.ts';
import { type PartProblem, ReadRefused, readWith, type Unmade } from '../checks/check.ts';
import type { Difference } from './compare.ts';
import { stacksOf } from './compared-stacks.ts';

/** Dependencies of {@link detectedDrift}. */
export interface DetectionDeps {
  readonly directory: Directory;
  readonly declarations: Declarations;
  /** CloudFormation's drift detection of a stack. */
  readonly detect: (stack: string) => Promise<StackDrift>;
}

/** The result of CloudFormation's drift detection of all stacks of a Mailroom. */
export interface DetectedDrift {
  readonly problems: readonly PartProblem[];
  /** The stacks that it has compared, and the resources in them. */
  readonly detected: { readonly stacks: number; readonly resources: number };
  readonly unmade: readonly Unmade[];
  /** The drifted resources of other parts of the app, as sentences. */
  readonly skipped: readonly string[];
}

/** Runs CloudFormation's drift detection on every stack of a Mailroom, at the same time. @param done - called after each stack */
export async function detectedDrift(
  deps: DetectionDeps,
  done: (made: number, all: number) => void = () => {},
): Promise<DetectedDrift> {
  const stacks = stacksOf(deps.directory);
  let made = 0;
  const found = await eachOf(stacks, async (one) => {
    const result = await detectedIn(deps, one);
    made += 1;
    done(made, stacks.length);
    return result;
  });
  return {
    problems: found.flatMap(({ problems }) => problems),
    detected: {
      stacks: found.filter(({ compared }) => compared > 0).length,
      resources: found.reduce((sum, { compared }) => sum + compared, 0),
    },
    unmade: found.flatMap(({ unmade }) => unmade),
    skipped: found.flatMap(({ skipped }) => skipped),
  };
}

async function detectedIn(
  { declarations, detect }: DetectionDeps,
  { stack, parts }: { readonly stack: EntryStack; readonly parts: readonly string[] },
) {
  const unmade = (why: Omit<Unmade, 'part'>) => parts.map((part) => ({ part, ...why }));
  const without = (why: Omit<Unmade, 'part'>) => ({
    compared: 0,
    problems: [],
    unmade: unmade(why),
    skipped: [],
  });
  try {
    const [{ compared, drifted, fault }, partOf] = await Promise.all([
      readWith(DRIFT_ACTIONS, () => detect(stack.stack)),
      partsIn(declarations, stack),
    ]);
    const own = drifted.filter(({ logicalId }) => partOf === undefined || partOf.has(logicalId));
    const others = drifted.filter((resource) => !own.includes(resource)).map(({ logicalId }) => logicalId);
    return {
      compared,
      problems: own.flatMap((resource) =>
        driftProblems(resource, partOf?.get(resource.logicalId) ?? parts[0] ?? '', stack),
      ),
      unmade: fault === undefined ? [] : unmade({ why: faultText(stack, fault) }),
      skipped:
        others.length === 0
          ? []
          : [`drift of ${others.join(', ')} in ${stack.stack}, not part of this Mailroom`],
    };
  } catch (error) {
    if (error instanceof ReadRefused) return without({ refusal: error });
    return without({ why: faultText(stack, errorMessage(error)) });
  }
}

function faultText({ stack }: EntryStack, fault: string): string {
  return `CloudFormation's drift detection of ${stack} is not complete: ${fault.replace(/\.$/, '')}`;
}

/** The parts of a stack's resources, by logical id; `undefined` if its template cannot be read: the comparison says so. */
async function partsIn(
  declarations: Declarations,
  stack: EntryStack,
): Promise<ReadonlyMap<string, string> | undefined> {
  const resources = await declarations.of(stack).catch(() => undefined);
  return resources && new Map(resources.map(({ logicalId, part }) => [logicalId, part]));
}

/** The problems of a drifted resource, one for each member. */
function driftProblems(resource: DriftedResource, part: string, stack: EntryStack): PartProblem[] {
  const { logicalId, physicalId, type, members } = resource;
  const common = {
    part,
    problem: 'drifted' as const,
    level: 'settings' as const,
    fix: deployWords(stack),
    type,
    physicalId,
  };
  const its = `the ${type} ${physicalId}`;
  if (members.length === 0)
    return [{ ...common, resource: logicalId, text: `${part}: ${its} does not exist` }];
  return members.map(({ path, declared, deployed }) => {
    const isHidden = path.startsWith('/Environment');
    const [before, now] = [declared, deployed].map((value) =>
      isHidden && value !== null ? 'hidden' : value,
    );
    return {
      ...common,
      resource: `${logicalId}${path}`,
      member: path,
      declared: before,
      deployed: now,
      text: `${part}: ${path} of ${its} ${changeText(isHidden, before, now)}`,
    };
  });
}

function changeText(
  isHidden: boolean,
  declared: string | null = null,
  deployed: string | null = null,
): string {
  if (declared === null)
    return isHidden ? 'was added' : `is ${cut(deployed)}, which its stack does not declare`;
  if (isHidden) return deployed === null ? 'was removed' : 'was changed';
  return deployed === null
    ? `is not set instead of ${cut(declared)}`
    : `is ${cut(deployed)} instead of ${cut(declared)}`;
}

/** The most characters of a value in a sentence. */
const SHOWN_MAX = 160;

function cut(value: string | null): string {
  const text = value ?? '';
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX - 1)}…` : text;
}

/** The drift without that of members which the comparison has found: it says what each causes. */
export function newDrift(drift: readonly PartProblem[], compared: readonly Difference[]): PartProblem[] {
  return drift.filter(
    ({ physicalId, member }) =>
      !compared.some(
        (other) =>
          other.resource.physicalId === physicalId &&
          (other.member === undefined || rootOf(other.member) === rootOf(member?.slice(1))),
      ),
  );
}

/** The property of a path: `RedrivePolicy` of `RedrivePolicy/maxReceiveCount` and of `RedrivePolicy.maxReceiveCount`. */
function rootOf(path = ''): string {
  return path.split(/[./[]/, 1)[0] ?? '';
}
