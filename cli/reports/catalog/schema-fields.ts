import { isDeepStrictEqual } from 'node:util';
import { isObject } from '../../../lambdas/runtime/base/json.ts';
import type { JsonObject, SchemaSource } from './schema-source.ts';

/** A value of a payload, as a schema describes it. */
export interface SchemaField {
  readonly isRequired: boolean;
  /** The kind of object or list that it is in: the path and kind of a {@link SchemaField}. */
  readonly within: readonly [path: string, kind: string];
  /** The constraints by the kind of value: a type, or an object with a fixed value in a field. */
  readonly kinds: Map<string, JsonObject>;
}

/** The values of a payload by their paths, e.g. `data.lines[].sku`. */
export type SchemaFields = ReadonlyMap<string, SchemaField>;

/** The position of a schema: the field that it describes, and the references above it with the paths of their fields. */
interface Position extends Pick<SchemaField, 'isRequired' | 'within'> {
  readonly path: string;
  /** It is one of several objects. */
  readonly isVariant: boolean;
  readonly open: ReadonlyMap<string, string>;
}

/** The kind of a value of any type. */
export const ANY = 'any value';

/** The constraints of an object that accepts no other fields, and of a list that accepts no other items. */
const CLOSED = 'other fields';
const CLOSED_LIST = 'other items';

/** True for an object or a list that accepts nothing else than its schema lists. */
export function isClosed(fields: SchemaFields, [path, kind]: SchemaField['within']): boolean {
  const constraints = fields.get(path)?.kinds.get(kind);
  return constraints?.[CLOSED] === false || constraints?.[CLOSED_LIST] === false;
}

/** The path of the other fields of an object. */
export function restOf([path, kind]: SchemaField['within']): string {
  return `${path}${variantOf(kind)}.*`;
}

/** The part of a path that tells several kinds of object apart. */
function variantOf(kind: string): string {
  return kind === 'object' || kind === 'array' ? '' : `(${kind})`;
}

/** Keywords that do not constrain a value, or that {@link schemaFields} reads itself. */
const READ = new Set(
  (
    '$comment $id $schema additionalItems additionalProperties const default definitions deprecated description enum examples items properties ' +
    'readOnly required title type writeOnly'
  ).split(' '),
);

/**
 * Reads the fields of a draft-07 schema.
 *
 * @param source - the document to which its references belong
 * @param root - the path of the value
 * @throws the error of the source if a reference is malformed, or reading takes too many steps
 */
export function schemaFields(source: SchemaSource, schema: unknown, root: string): SchemaFields {
  const fields = new Map<string, SchemaField>();
  const read = (given: unknown, position: Position): void =>
    // The references above are copied.
    source.step(() => readAt(given, position), 1 + position.open.size);
  const readAt = (given: unknown, position: Position): void => {
    source.at(position.path);
    const { path, isRequired, within, isVariant } = position;
    const field = fields.get(path) ?? { isRequired, within, kinds: new Map() };
    fields.set(path, field);
    const refs: string[] = [];
    const { anyOf, oneOf = anyOf, ...rest } = flattened(given, source, refs);
    // Beside oneOf, it applies to each of the alternatives.
    const own = oneOf === anyOf ? rest : { ...rest, ...(anyOf !== undefined && { anyOf }) };
    const above = refs.find((ref) => position.open.has(ref));
    if (above !== undefined) {
      field.kinds.set(`as ${position.open.get(above)}`, {});
      return;
    }
    const open = new Map([...position.open, ...refs.map((ref) => [ref, path] as const)]);
    if (Array.isArray(oneOf)) {
      const isObjects =
        oneOf.filter((one) => typesOf(flattened(one, source, [])).includes('object')).length > 1;
      for (const one of oneOf)
        read({ allOf: [own, one] }, { ...position, isVariant: isVariant || isObjects, open });
      return;
    }
    for (const type of typesOf(own)) {
      const kind = kindOf(type, isVariant ? own.properties : {}, field.kinds);
      field.kinds.set(kind, constraintsOf(type, own, source));
      for (const [step, inner, isNeeded] of partsOf(type, own)) {
        const at = {
          path: path + variantOf(kind) + step,
          isRequired: isNeeded,
          within: [path, kind] as const,
        };
        read(inner, { ...at, isVariant: false, open });
      }
    }
  };
  read(schema, { path: root, isRequired: true, within: ['', ''], isVariant: false, open: new Map() });
  return fields;
}

/** A schema with those that it refers to, or that must match as well, as one. @param refs - receives the references */
function flattened(schema: unknown, source: SchemaSource, refs: string[]): JsonObject {
  const { $ref, allOf, ...own } = (schema === false ? { not: {} } : Object(schema)) as JsonObject;
  const parts: unknown[] = Array.isArray(allOf) ? [...allOf] : [];
  if (typeof $ref === 'string' && !refs.includes($ref)) {
    refs.push($ref);
    parts.push(source.target($ref));
  }
  return parts.reduce<JsonObject>((whole, part) => {
    // Each part is merged into a copy, and each reference is looked up among those before it.
    const cost = 1 + Object.keys(whole).length + refs.length;
    return source.step(() => both(whole, flattened(part, source, refs)), cost);
  }, own);
}

function both(one: JsonObject, other: JsonObject): JsonObject {
  const merged = Object.entries(other).map(([keyword, value]) => {
    const known = one[keyword];
    if (known === undefined || isDeepStrictEqual(known, value)) return [keyword, value];
    if (keyword === 'required') return [keyword, [known, value].flat()];
    if (keyword === 'enum') return [keyword, common([known].flat(), [value].flat())];
    if (keyword === 'type') return [keyword, common(withIntegers(known), withIntegers(value))];
    if (keyword !== 'properties') return [keyword, [known, value]];
    const names = [...new Set([...Object.keys(Object(known)), ...Object.keys(Object(value))])];
    const schemas = (name: string) => [known, value].flatMap((fields) => Object(fields)[name] ?? []);
    return [keyword, Object.fromEntries(names.map((name) => [name, { allOf: schemas(name) }]))];
  });
  return { ...one, ...Object.fromEntries(merged) };
}

function common(some: readonly unknown[], others: readonly unknown[]): unknown[] {
  const known = new Set(others.map(textOfJson));
  return some.filter((one) => known.has(textOfJson(one)));
}

/** The values of a list that another does not have. */
export function without(values: readonly unknown[], others: readonly unknown[]): unknown[] {
  const known = new Set(others.map(textOfJson));
  return values.filter((value) => !known.has(textOfJson(value)));
}

/** Equal for equal values, whatever the order of their fields. */
function textOfJson(value: unknown): string {
  return JSON.stringify(value, (_name, inner: unknown) =>
    isObject(inner) && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** The types, with `integer` beside `number`, which includes it. */
function withIntegers(type: unknown): readonly unknown[] {
  return [type].flat().flatMap((one) => (one === 'number' ? ['number', 'integer'] : [one]));
}

/** A value with the targets of its references, so that a changed one differs. */
function inlined(value: unknown, source: SchemaSource, above: readonly string[] = []): unknown {
  const inner = (one: unknown, refs = above) => source.step(() => inlined(one, source, refs));
  if (Array.isArray(value)) return value.map((one) => inner(one));
  if (!isObject(value)) return value;
  const { $ref } = value;
  const target =
    typeof $ref === 'string' && !above.includes($ref)
      ? { target: inner(source.target($ref), [...above, $ref]) }
      : {};
  const own = Object.entries(value).map(([name, one]) => [name, inner(one)]);
  return { ...Object.fromEntries(own), ...target };
}

const TYPES = ['string', 'number', 'boolean', 'null', 'array', 'object'];

function typesOf(schema: JsonObject): string[] {
  const values = valuesOf(schema);
  if (schema.type === undefined)
    return values === undefined ? [ANY] : TYPES.filter((type) => values.some((one) => isOf(type, one)));
  const types = [schema.type].flat().map((type) => (type === 'integer' ? 'number' : String(type)));
  return [...new Set(types)];
}

function isOf(type: string, value: unknown): boolean {
  if (value === null || Array.isArray(value)) return type === (value === null ? 'null' : 'array');
  return typeof value === type;
}

function valuesOf(schema: JsonObject): readonly unknown[] | undefined {
  if ('const' in schema) return [schema.const];
  return Array.isArray(schema.enum) ? schema.enum : undefined;
}

/** The kind of a value: several objects differ by their fields with one fixed value. */
function kindOf(type: string, properties: unknown, known: ReadonlyMap<string, unknown>): string {
  const tags = Object.entries(Object(type === 'object' ? properties : {})).flatMap(([name, field]) => {
    const values = isObject(field) ? valuesOf(field) : undefined;
    return values?.length === 1 ? [`${name} ${JSON.stringify(values[0])}`] : [];
  });
  const kind = [type, ...tags].join(' ');
  return known.has(kind) ? `${kind} #${known.size + 1}` : kind;
}

function constraintsOf(type: string, schema: JsonObject, source: SchemaSource): JsonObject {
  const values = valuesOf(schema);
  const others = Object.entries(schema).filter(([keyword]) => !READ.has(keyword));
  const types = [schema.type].flat();
  const isInteger = types.includes('integer') && !types.includes('number');
  return {
    ...Object.fromEntries(others.map(([keyword, value]) => [keyword, inlined(value, source)])),
    ...(values !== undefined && { values: values.filter((one) => type === ANY || isOf(type, one)) }),
    ...(type === 'number' && schema.type !== undefined && { integer: isInteger || undefined }),
    ...(type === 'object' && schema.additionalProperties === false && { [CLOSED]: false }),
    ...(Array.isArray(schema.items) && {
      items: schema.items.length,
      ...(schema.additionalItems === false && { [CLOSED_LIST]: false }),
    }),
  };
}

/** The fields of an object, or the items of a list: the step of the path, the schema, and whether it is required. */
function partsOf(type: string, schema: JsonObject): [step: string, schema: unknown, isRequired: boolean][] {
  const rest = (step: string, inner: unknown): [string, unknown, boolean][] =>
    isObject(inner) && Object.keys(inner).length > 0 ? [[step, inner, false]] : [];
  if (type === 'object') {
    const required = new Set<unknown>(Array.isArray(schema.required) ? schema.required : []);
    const fields = Object.entries(Object(schema.properties)).map(
      ([name, inner]) => [`.${name}`, inner, required.has(name)] as [string, unknown, boolean],
    );
    return [...fields, ...rest('.*', schema.additionalProperties)];
  }
  if (type !== 'array') return [];
  const { items, additionalItems } = schema;
  if (!Array.isArray(items)) return rest('[]', items);
  const listed = items.map((inner, index) => [`[${index}]`, inner, true] as [string, unknown, boolean]);
  return [...listed, ...rest('[]', additionalItems)];
}
