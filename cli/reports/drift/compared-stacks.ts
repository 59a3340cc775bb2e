import { errorCode, errorMessage } from '../../../lambdas/runtime/base/errors.ts';
import type { ConsumerEntry, Directory, EntryStack } from '../../../lambdas/runtime/operations/directory.ts';
import type { Declarations, DeclaredResource } from '../../deployment/declared-resources.ts';
import { type DeployedProperties, READERS } from '../../deployment/deployed-properties.ts';
import { eachOf } from '../../deployment/rows-reader.ts';
import { ReadRefused, readWith, type Unmade } from '../checks/check.ts';
import { type Comparison, compareResource, type Difference, type NotCompared, together } from './compare.ts';
import { KINDS } from './resource-kinds.ts';

/** Dependencies of {@link compareStacks}. */
export interface StackDeps {
  readonly directory: Directory;
  readonly declarations: Declarations;
  readonly properties: DeployedProperties;
}

/** The comparison of all resources of a Mailroom with its stacks. */
export interface ComparedStacks {
  readonly differences: readonly Difference[];
  /** The differences that a person may make. */
  readonly allowed: readonly Difference[];
  readonly compared: { readonly resources: number; readonly members: number };
  /** The types and members that were not compared, counted. */
  readonly notCompared: readonly (NotCompared & { readonly count: number })[];
  /** The stacks and resources that could not be read. */
  readonly unmade: readonly Unmade[];
}

/** The IAM actions that reading a stack's template needs. */
const STACK_ACTIONS = ['DescribeStacks', 'GetTemplate', 'ListStackResources', 'ListExports'].map(
  (action) => `cloudformation:${action}`,
);

/**
 * Compares every resource that the stacks of a Mailroom declare with the deployed one. Each is read once.
 *
 * @param only - the consumer whose resources are compared; absent: all parts
 */
export async function compareStacks(deps: StackDeps, only?: ConsumerEntry): Promise<ComparedStacks> {
  const stacks = only === undefined ? stacksOf(deps.directory) : [{ stack: only, parts: [only.name] }];
  const declared = await eachOf(stacks, async ({ stack, parts }) =>
    resourcesOf(deps.declarations, stack, parts),
  );
  const made = await eachOf(
    declared
      .flatMap(({ resources }) => resources)
      .filter(({ part }) => only === undefined || part === only.name),
    (resource) => compareOne(deps.properties, resource),
  );
  const { differences, allowed, notCompared, members } = together(made.map(({ comparison }) => comparison));
  return {
    differences,
    allowed,
    compared: { resources: made.filter(({ isCompared }) => isCompared).length, members },
    notCompared: counted(notCompared),
    unmade: [...declared, ...made].flatMap(({ unmade }) => unmade ?? []),
  };
}

/** The stacks of a Mailroom, and the parts whose entries name them. */
export function stacksOf({
  mailroom,
  consumers,
}: Directory): readonly { readonly stack: EntryStack; readonly parts: readonly string[] }[] {
  const stacks = new Map<string, { readonly stack: EntryStack; readonly parts: string[] }>();
  for (const { name, stack } of [
    { name: 'stream relay', stack: mailroom },
    ...consumers.map((stack) => ({ name: stack.name, stack })),
  ]) {
    const known = stacks.get(stack.stack) ?? { stack, parts: [] };
    stacks.set(stack.stack, { ...known, parts: [...known.parts, name] });
  }
  return [...stacks.values()];
}

/** The resources of a stack; without them, why its parts are not compared. */
async function resourcesOf(
  declarations: Declarations,
  stack: EntryStack,
  parts: readonly string[],
): Promise<{ readonly resources: readonly DeclaredResource[]; readonly unmade?: readonly Unmade[] }> {
  const without = (why: Omit<Unmade, 'part'>) => ({
    resources: [],
    unmade: parts.map((part) => ({ part, ...why })),
  });
  try {
    const resources = await readWith(STACK_ACTIONS, () => declarations.of(stack));
    if (resources !== undefined) return { resources };
    return without({ why: `CloudFormation has no stack ${stack.stack}` });
  } catch (error) {
    if (error instanceof ReadRefused) return without({ refusal: error });
    if (errorCode(error) === 'NOT_COMPARED') return without({ why: errorMessage(error) });
    throw error;
  }
}

const NOTHING: Comparison = { differences: [], allowed: [], notCompared: [], members: 0 };

async function compareOne(
  deployed: DeployedProperties,
  resource: DeclaredResource,
): Promise<{
  readonly comparison: Comparison;
  readonly isCompared: boolean;
  readonly unmade?: readonly Unmade[];
}> {
  const { type, part } = resource;
  const kind = KINDS[type];
  const reader = READERS[type];
  if (kind === undefined || reader === undefined)
    return { isCompared: false, comparison: { ...NOTHING, notCompared: [{ type, why: 'unknown type' }] } };
  try {
    const properties = await readWith(reader.actions, () => deployed.of(resource));
    const comparison = compareResource(resource, { properties, members: reader.members }, kind);
    return { isCompared: true, comparison };
  } catch (error) {
    if (!(error instanceof ReadRefused)) throw error;
    return { isCompared: false, comparison: NOTHING, unmade: [{ part, refusal: error }] };
  }
}

function counted(notCompared: readonly NotCompared[]): ComparedStacks['notCompared'] {
  const counts = new Map<string, NotCompared & { count: number }>();
  for (const one of notCompared) {
    const key = `${one.type} ${one.member} ${one.why}`;
    counts.set(key, { ...one, count: (counts.get(key)?.count ?? 0) + 1 });
  }
  return [...counts.values()].sort((a, b) => (`${a.type} ${a.member}` < `${b.type} ${b.member}` ? -1 : 1));
}
