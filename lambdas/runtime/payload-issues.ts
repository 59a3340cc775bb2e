import type { StandardSchemaV1 } from '@standard-schema/spec';

type Issue = StandardSchemaV1.Issue;
type AnySchema = StandardSchemaV1;

/** The most issues of one payload that are named. */
const ISSUES_MAX = 5;

/**
 * What is wrong with a payload, without anything of the payload: of each of the first five issues the path and the kind, e.g.
 * `data.lines.2.price: invalid_type (expected number)`. The validator's own messages are left out, because they may quote values.
 *
 * A name in a path is shown only where the schema itself declares a property of that name. Every other is `*`, because a key of a
 * record is data. Standard Schema does not say which is which, so declared names are looked up in the schemas of zod and
 * valibot and in the JSON Schema that a validator offers (arktype); another validator's names are all `*`.
 */
export function maskedIssues(schema: AnySchema, issues: readonly Issue[]): string {
  const declared = declaredNames(schema);
  const { vendor } = schema['~standard'];
  return textOf(
    issues,
    (key) => nameOf(key, declared),
    (issue) => kindOf(issue, vendor),
  );
}

/** The same with the validator's own messages and every key: they may hold values of the payload. */
export function fullIssues(issues: readonly Issue[]): string {
  return textOf(issues, String, ({ message }) => message);
}

function textOf(
  issues: readonly Issue[],
  name: (key: PropertyKey) => string,
  what: (issue: Issue) => string,
): string {
  return issues
    .slice(0, ISSUES_MAX)
    .map((issue) => `${['data', ...(issue.path ?? []).map(keyOf).map(name)].join('.')}: ${what(issue)}`)
    .join('; ');
}

function keyOf(segment: PropertyKey | StandardSchemaV1.PathSegment): PropertyKey {
  return typeof segment === 'object' ? segment.key : segment;
}

/** The largest index that is shown: a number above is more likely a key, like that of a customer. */
const INDEX_MAX = 9_999;

function nameOf(key: PropertyKey, declared: ReadonlySet<string>): string {
  if (typeof key === 'number' && Number.isInteger(key) && key >= 0 && key <= INDEX_MAX) return String(key);
  return typeof key === 'string' && declared.has(key) ? key : '*';
}

/** The member in which a validator says of which kind an issue is. Of others a member of such a name may hold anything. */
const KIND_MEMBERS: Readonly<Record<string, string>> = { zod: 'code', valibot: 'type', arktype: 'code' };

function kindOf(issue: Issue, vendor: string): string {
  const members = issue as unknown as Readonly<Record<string, unknown>>;
  const kind = word(members[KIND_MEMBERS[vendor] ?? '']);
  if (kind === undefined) return 'not valid';
  // zod's is the name of a type there, and text of the schema elsewhere.
  const expected = vendor === 'zod' && kind === 'invalid_type' ? word(members.expected) : undefined;
  return expected === undefined ? kind : `${kind} (expected ${expected})`;
}

/** A name that a validator gave, not data: letters and underscores only. */
function word(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z][a-z_]{0,39}$/i.test(value) ? value : undefined;
}

const known = new WeakMap<AnySchema, ReadonlySet<string>>();

/** The names of all properties that a schema declares, at any depth. */
function declaredNames(schema: AnySchema): ReadonlySet<string> {
  let names = known.get(schema);
  if (names === undefined) {
    const isKnown = WALKED.includes(schema['~standard'].vendor);
    names = new Set([...namesIn(isKnown ? schema : undefined), ...namesIn(jsonSchemaOf(schema))]);
    known.set(schema, names);
  }
  return names;
}

/** The validators whose schemas are plain objects all the way down. Others offer a JSON Schema, or their names are masked. */
const WALKED = ['zod', 'valibot'];

/** The members that declare properties: of zod's objects, of valibot's, of JSON Schema's. */
const DECLARING = ['shape', 'entries', 'properties'];

/** The most objects of one schema that are looked at: names of a larger one may be masked. */
const OBJECTS_MAX = 5_000;

/** Looks through the objects that a schema is made of, breadth first: it may contain itself. */
function namesIn(root: unknown): string[] {
  const names: string[] = [];
  const seen = new Set<unknown>();
  const open: unknown[] = [root];
  for (const next of open) {
    if (typeof next !== 'object' || next === null || seen.has(next) || seen.size === OBJECTS_MAX) continue;
    seen.add(next);
    const members = membersOf(next);
    for (const [name, value] of members) {
      if (DECLARING.includes(name) && typeof value === 'object' && value !== null)
        names.push(...Object.keys(value));
    }
    open.push(...members.map(([, value]) => value));
  }
  return names;
}

/** Its members, and zod's definition, which does not show itself. */
function membersOf(object: object): [string, unknown][] {
  try {
    const { _zod } = object as { _zod?: { def?: unknown } };
    return [...Object.entries(object), ['_zod', _zod?.def]];
  } catch {
    return []; // a getter that throws, as of a lazy schema
  }
}

/** The schema as JSON Schema, where its validator offers that (Standard JSON Schema). */
function jsonSchemaOf(schema: AnySchema): unknown {
  const { jsonSchema } = schema['~standard'] as {
    jsonSchema?: { input?: (options: { target: string }) => unknown };
  };
  try {
    return jsonSchema?.input?.({ target: 'draft-2020-12' });
  } catch {
    return undefined; // it holds what JSON Schema has no word for
  }
}
