import { isObject } from '../../../lambdas/runtime/base/json.ts';
import { type DeclaredResource, UNKNOWN } from '../../deployment/declared-resources.ts';
import type { Member, MemberEffect, ResourceKind } from './resource-kind.ts';
import { hasUnknown, isNone, isSame, isUndecidable } from './same-value.ts';

/** A resource that is not as its stack declares it. */
export interface Difference {
  readonly resource: DeclaredResource;
  /** The path of the member; `undefined`: the whole resource is gone. */
  readonly member: string | undefined;
  /** The value of the template, or else AWS's default. */
  readonly declared: unknown;
  readonly deployed: unknown;
  readonly means: MemberEffect & Pick<Member, 'set'>;
}

/** A member that was not compared. */
export interface NotCompared {
  readonly type: string;
  /** Its path; absent: no member of the type was compared. */
  readonly member?: string;
  readonly why: 'not read' | 'unknown type' | 'known to AWS only';
}

/** The result of a comparison of one resource or of several. */
export interface Comparison {
  readonly differences: readonly Difference[];
  /** The differences that a person may make. */
  readonly allowed: readonly Difference[];
  readonly notCompared: readonly NotCompared[];
  /** The number of compared members. */
  readonly members: number;
}

/** Members of a resource, and the members that its reader reads. */
export interface ReadProperties {
  /** `undefined`: the resource does not exist. */
  readonly properties: Readonly<Record<string, unknown>> | undefined;
  readonly members: readonly string[];
}

/** Compares a resource as its stack declares it with the deployed one. */
export function compareResource(
  resource: DeclaredResource,
  { properties: deployed, members: read }: ReadProperties,
  kind: ResourceKind,
): Comparison {
  if (deployed === undefined) {
    const gone = { resource, member: undefined, declared: undefined, deployed: undefined, means: kind.gone };
    return { differences: [gone], allowed: [], notCompared: [], members: 1 };
  }
  const differences: Difference[] = [];
  const allowed: Difference[] = [];
  const { type, properties } = resource;
  const notCompared: NotCompared[] = Object.keys(properties)
    .filter((member) => !read.includes(member) && !kind.identity.includes(member))
    .map((member) => ({ type, member, why: 'not read' }));
  const pairs = pairsOf(kind, properties, deployed, read);
  for (const { path, member, ...pair } of pairs) {
    const defaultValue = typeof member.default === 'function' ? member.default(resource) : member.default;
    const { without = (_declared: unknown, value: unknown) => value } = member;
    const [declared, found] = [pair.declared, without(pair.declared, pair.deployed)].map((value) =>
      isNone(value) ? defaultValue : value,
    );
    const isUnknown =
      hasUnknown(declared) || hasUnknown(found) || isUndecidable(declared, found, member.form);
    if (isUnknown) notCompared.push({ type, member: path, why: 'known to AWS only' });
    if (isUndecidable(declared, found, member.form) || isSame(declared, found, member.form)) continue;
    const isAllowed = member.allowed?.(declared, found) === true;
    const difference = { resource, member: path, declared, deployed: found, means: member };
    (isAllowed ? allowed : differences).push(difference);
  }
  return { differences, allowed, notCompared, members: pairs.length };
}

/** Adds results. */
export function together(parts: readonly Comparison[]): Comparison {
  return {
    differences: parts.flatMap(({ differences }) => differences),
    allowed: parts.flatMap(({ allowed }) => allowed),
    notCompared: parts.flatMap(({ notCompared }) => notCompared),
    members: parts.reduce((sum, { members }) => sum + members, 0),
  };
}

/** A member of both sides. */
interface Pair {
  readonly path: string;
  readonly declared: unknown;
  readonly deployed: unknown;
  readonly member: Member;
}

type Members = Readonly<Record<string, unknown>>;

/** The members to compare: those of the kind, and all others that the template sets and the reader reads. */
function pairsOf(kind: ResourceKind, declared: Members, deployed: Members, read: readonly string[]): Pair[] {
  const listed = Object.keys(kind.members);
  const roots = new Set(listed.map((path) => path.split('.')[0]));
  const others = Object.keys(declared).filter((name) => read.includes(name) && !roots.has(name));
  return [...listed, ...others].flatMap((pattern) => {
    const [root = ''] = pattern.split('.');
    if (!read.includes(root)) return [];
    return expand(kind.members, pattern.split('.'), [], declared, deployed);
  });
}

/** The members that a pattern stands for. A nested member of an item that only one side has is not compared: the item is. */
function expand(
  members: ResourceKind['members'],
  [name, ...rest]: readonly string[],
  path: readonly string[],
  declared: unknown,
  deployed: unknown,
  pattern: readonly string[] = [],
): Pair[] {
  if (name === undefined) {
    const own = pattern.join('.');
    const isOfItem = own.endsWith('.*') && Object.keys(members).some((other) => other.startsWith(`${own}.`));
    if (isOfItem && isNone(declared) === isNone(deployed)) return [];
    return [{ path: path.join('.'), declared, deployed, member: members[own] ?? {} }];
  }
  const [left, right] = [itemsOf(declared), itemsOf(deployed)];
  const names = name === '*' ? new Set([...Object.keys(left), ...Object.keys(right)]) : [name];
  return [...names].flatMap((one) => {
    const own = [...path, one];
    // A pattern that names the member comes first.
    if (name === '*' && rest.length === 0 && [...pattern, one].join('.') in members) return [];
    const [a, b] = [declared, deployed].map((side, index) =>
      side === UNKNOWN ? UNKNOWN : (index === 0 ? left : right)[one],
    );
    if (name === '*' && rest.length > 0 && isNone(a) !== isNone(b)) return [];
    return expand(members, rest, own, a, b, [...pattern, name]);
  });
}

/** The members of an object, and the items of a list by their `Id` or `Region`. */
function itemsOf(value: unknown): Members {
  if (!Array.isArray(value)) return isObject(value) ? value : {};
  return Object.fromEntries(
    value.map((item, index) => {
      const { Id, Region } = { ...(isObject(item) ? item : {}) } as {
        readonly Id?: unknown;
        readonly Region?: unknown;
      };
      const { Id: _, ...others } = { ...(item as object) } as Members;
      return [String(Id ?? Region ?? index), Id === undefined ? item : others];
    }),
  );
}
