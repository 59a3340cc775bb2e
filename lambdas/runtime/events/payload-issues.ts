import type { StandardSchemaV1 } from '@standard-schema/spec';

type Issue = StandardSchemaV1.Issue;
type AnySchema = StandardSchemaV1;

/** The maximum number of issues reported for one payload. */
const ISSUES_MAX = 5;

/**
 * Describes what is wrong with a payload without quoting the payload: the path and kind of each of the first five issues, e.g.
 * `data.lines.2.price: invalid_type (expected number)`. The validator's own messages are left out, because they may quote values.
 *
 * A path shows a name only if the schema declares a property of that name. Every other name appears as `*`, because a key of
 * a record is data. Standard Schema does not distinguish the two, so declared names are read from the schemas of zod and
 * valibot and from the JSON Schema that a validator offers (arktype); with other validators, all names appear as `*`.
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

/** As {@link maskedIssues}, with the validator's own messages and every key: they may contain payload values. */
export function fullIssues(issues: readonly Issue[]): string {
  return textOf(issues, String, ({ message }) => message);
}

/** Returns the path of a value in a payload, as {@link maskedIssues} shows it, or with every name if the definition exposes issues. */
export function payloadPath(
  { schema, exposeIssues }: { readonly schema: AnySchema; readonly exposeIssues?: boolean | undefined },
  path: readonly PropertyKey[],
): string {
  const declared = declaredNames(schema);
  return pathText(path, exposeIssues ? String : (key) => nameOf(key, declared));
}

/** Returns the path of a value that has no schema: an index is shown, and every name appears as `*`. */
export function maskedPath(root: string, path: readonly PropertyKey[]): string {
  return pathText(path, (key) => nameOf(key, NO_NAMES), root);
}

const NO_NAMES: ReadonlySet<string> = new Set();

function textOf(
  issues: readonly Issue[],
  name: (key: PropertyKey) => string,
  what: (issue: Issue) => string,
): string {
  return issues
    .slice(0, ISSUES_MAX)
    .map((issue) => `${pathText((issue.path ?? []).map(keyOf), name)}: ${what(issue)}`)
    .join('; ');
}

function pathText(path: readonly PropertyKey[], name: (key: PropertyKey) => string, root = 'data'): string {
  return [root, ...path.map(name)].join('.');
}

function keyOf(segment: PropertyKey | StandardSchemaV1.PathSegment): PropertyKey {
  return typeof segment === 'object' ? segment.key : segment;
}

/** The largest index that is shown: a larger number is more likely a key, such as a customer's. */
const INDEX_MAX = 9_999;

function nameOf(key: PropertyKey, declared: ReadonlySet<string>): string {
  if (typeof key === 'number' && Number.isInteger(key) && key >= 0 && key <= INDEX_MAX) return String(key);
  return typeof key === 'string' && declared.has(key) ? key : '*';
}

/** The property in which each validator stores the kind of an issue. With other validators, such a property may hold anything. */
const KIND_MEMBERS: Readonly<Record<string, string>> = { zod: 'code', valibot: 'type', arktype: 'code' };

/** The codes of zod's issues, of its versions 3 and 4. A refinement can make an issue of any other code, even from data. */
const ZOD_CODES: ReadonlySet<unknown> = new Set(
  (
    'custom invalid_arguments invalid_date invalid_element invalid_enum_value invalid_format invalid_intersection_types invalid_key ' +
    'invalid_literal invalid_return_type invalid_string invalid_type invalid_union invalid_union_discriminator invalid_value not_finite ' +
    'not_multiple_of too_big too_small unrecognized_keys'
  ).split(' '),
);

/** The types that zod's `invalid_type` expects. */
const ZOD_TYPES: ReadonlySet<unknown> = new Set(
  (
    'array bigint boolean date file float function int integer map nan never nonoptional null number object promise record set string ' +
    'symbol tuple undefined void'
  ).split(' '),
);

function kindOf(issue: Issue, vendor: string): string {
  const members = issue as unknown as Readonly<Record<string, unknown>>;
  const kind = word(members[KIND_MEMBERS[vendor] ?? '']);
  if (kind === undefined || (vendor === 'zod' && !ZOD_CODES.has(kind))) return 'not valid';
  const { expected } = members;
  return kind === 'invalid_type' && ZOD_TYPES.has(expected) ? `${kind} (expected ${expected})` : kind;
}

/** Accepts a name that comes from a validator, not from data: letters and underscores only. */
function word(value: unknown): string | undefined {
  return typeof value === 'string' && /^[a-z][a-z_]{0,39}$/i.test(value) ? value : undefined;
}

const known = new WeakMap<AnySchema, ReadonlySet<string>>();

/** Returns the names of all properties that a schema declares, at any depth. */
function declaredNames(schema: AnySchema): ReadonlySet<string> {
  let names = known.get(schema);
  if (names === undefined) {
    const isKnown = WALKED.includes(schema['~standard'].vendor);
    names = new Set([...namesIn(isKnown ? schema : undefined), ...namesIn(jsonSchemaOf(schema))]);
    known.set(schema, names);
  }
  return names;
}

/** The validators whose schemas are plain objects at every level. Other schemas offer a JSON Schema, or their names are masked. */
const WALKED = ['zod', 'valibot'];

/** The properties that declare fields, in zod objects, valibot objects and JSON Schema. */
const DECLARING = ['shape', 'entries', 'properties'];

/** The maximum number of objects visited in one schema; names in larger schemas may be masked. */
const OBJECTS_MAX = 5_000;

/** Visits the objects of a schema breadth first; a schema may contain itself. */
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

/** Returns an object's properties, and zod's definition, which is not enumerable. */
function membersOf(object: object): [string, unknown][] {
  try {
    const { _zod } = object as { _zod?: { def?: unknown } };
    return [...Object.entries(object), ['_zod', _zod?.def]];
  } catch {
    return []; // a getter threw, as in a lazy schema
  }
}

/** Returns the schema as JSON Schema if its validator offers that (Standard JSON Schema). */
function jsonSchemaOf(schema: AnySchema): unknown {
  const { jsonSchema } = schema['~standard'] as {
    jsonSchema?: { input?: (options: { target: string }) => unknown };
  };
  try {
    return jsonSchema?.input?.({ target: 'draft-2020-12' });
  } catch {
    return undefined; // the schema cannot be expressed as JSON Schema
  }
}
