import type { EventRef } from '../event.ts';

/** A value that a field of a payload may have: EventBridge compares only these, and looks into lists and objects for them. */
export type Scalar = string | number | boolean | null;

/** The operators of a filter. Each test has exactly one. */
export type FilterOperator =
  | { readonly prefix: string }
  | { readonly suffix: string }
  | { readonly 'equals-ignore-case': string }
  | { readonly wildcard: string }
  | { readonly numeric: readonly (string | number)[] }
  | { readonly exists: boolean }
  | { readonly 'anything-but': string | number | readonly string[] | readonly number[] }
  | { readonly 'anything-but': { readonly [O in TextOperator]?: string | readonly string[] } };

/** The operators whose operand is a text. */
export type TextOperator = 'prefix' | 'suffix' | 'equals-ignore-case' | 'wildcard';

/**
 * A condition on the payload of an event: an EventBridge pattern on `detail.data`, without `$or`. Every field of the filter must
 * match, and a field matches if one of its tests does.
 */
export interface DataFilter {
  readonly [field: string]: readonly (Scalar | FilterOperator)[] | DataFilter;
}

/** A subscription of a consumer: an event, of which it receives all, or only those that a filter matches. */
export interface Subscription extends EventRef {
  readonly filter?: DataFilter | undefined;
}

/**
 * The largest number that EventBridge compares by `numeric`; the smallest is its negative (EventBridge user guide, "Comparison
 * operators for use in event patterns", numeric matching).
 */
export const NUMERIC_MAX = 5e9;

/**
 * Returns true if EventBridge delivers a payload to a rule with this filter, by the EventBridge user guide ("Comparison operators
 * for use in event patterns") and aws/event-ruler, which EventBridge runs:
 *
 * - A list matches if one of its elements does. The fields of one object in the filter must match within one object of a list.
 * - `exists: false` means that no value is at that path, in any element of a list. A `null` is a value; an object, an empty list
 *   and a missing field are not.
 * - `anything-but` matches a value that differs in type, but no missing field.
 *
 * An operator that a newer version wrote matches nothing, so that an audit expects no event because of it.
 *
 * @param data - as parsed JSON
 *
 * @example
 * ```ts
 * matchesFilter({ country: ['CH', 'AT'], totalCents: [{ numeric: ['>=', 10_000] }] }, { country: 'AT', totalCents: 12_000 }); // true
 * ```
 */
export function matchesFilter(filter: DataFilter, data: unknown): boolean {
  const objects = objectsIn([data]);
  return holds(filter, objects, objects);
}

/** @param candidates - of which one must match; @param all - the objects at the same path, in which `exists` looks */
function holds(filter: DataFilter, candidates: readonly JsonFields[], all: readonly JsonFields[]): boolean {
  // Without an object, fields are tested against nothing: `exists: false` holds.
  return (candidates.length > 0 ? candidates : [{}]).some((candidate) =>
    Object.entries(filter).every(([name, condition]) => {
      const values = [fieldOf(candidate, name)];
      const everywhere = all.map((fields) => fieldOf(fields, name));
      if (!isTests(condition)) return holds(condition, objectsIn(values), objectsIn(everywhere));
      if (scalarsIn(everywhere).length === 0) return condition.some(isAbsence);
      const scalars = scalarsIn(values);
      return condition.some((test) => scalars.some((value) => passes(test, value)));
    }),
  );
}

type JsonFields = Readonly<Record<string, unknown>>;

function fieldOf(fields: JsonFields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function objectsIn(values: readonly unknown[]): JsonFields[] {
  return flat(values).filter((value) => typeof value === 'object' && value !== null) as JsonFields[];
}

function scalarsIn(values: readonly unknown[]): Scalar[] {
  return flat(values).filter((value) => value === null || SCALARS.has(typeof value)) as Scalar[];
}

const SCALARS: ReadonlySet<string> = new Set(['string', 'number', 'boolean']);

function flat(values: readonly unknown[]): unknown[] {
  return values.flat(Number.POSITIVE_INFINITY);
}

function isTests(condition: DataFilter[string]): condition is readonly (Scalar | FilterOperator)[] {
  return Array.isArray(condition);
}

function isAbsence(test: unknown): boolean {
  return typeof test === 'object' && test !== null && 'exists' in test && test.exists === false;
}

function passes(test: unknown, value: Scalar): boolean {
  if (typeof test !== 'object' || test === null) return test === value;
  const [[name, operand] = ['', undefined]] = Object.entries(test);
  return OPERATORS.get(name)?.(operand, value) ?? false;
}

const OPERATORS: ReadonlyMap<string, (operand: unknown, value: Scalar) => boolean> = new Map([
  ['prefix', ofTexts((operand, text) => text.startsWith(operand))],
  ['suffix', ofTexts((operand, text) => text.endsWith(operand))],
  ['equals-ignore-case', ofTexts((operand, text) => ignoringCase(operand).test(text))],
  ['wildcard', ofTexts(isLike)],
  ['numeric', isInRange],
  ['exists', (operand) => operand === true],
  ['anything-but', isOther],
]);

function ofTexts(test: (operand: string, text: string) => boolean): typeof passes {
  return (operand, value) => typeof operand === 'string' && typeof value === 'string' && test(operand, value);
}

/** EventBridge accepts the lower or the upper case of each character of the operand, and not of the value: `ß` matches `SS`. */
function ignoringCase(operand: string): RegExp {
  const either = [...operand].map(
    (char) => `(?:${quoted(char.toLowerCase())}|${quoted(char.toUpperCase())})`,
  );
  return new RegExp(`^${either.join('')}$`, 'u');
}

function quoted(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
}

/** Looks for the texts between the asterisks one after the other, so that its time grows only linearly with the text. */
function isLike(operand: string, text: string): boolean {
  const [first = '', ...between] = literalsOf(operand);
  const last = between.pop();
  if (last === undefined) return text === first;
  const end = text.length - last.length;
  if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  let at = first.length;
  for (const literal of between) {
    const found = text.indexOf(literal, at);
    if (found === -1) return false;
    at = found + literal.length;
  }
  return at <= end;
}

/** The texts between the asterisks. A backslash takes an asterisk or a backslash literally. */
function literalsOf(wildcard: string): string[] {
  const literals = [''];
  for (const token of wildcard.match(/\\.|\*|[^\\*]+/gsu) ?? []) {
    if (token === '*') literals.push('');
    else literals.push(`${literals.pop()}${token.startsWith('\\') ? token.slice(1) : token}`);
  }
  return literals;
}

function isInRange(comparisons: unknown, value: Scalar): boolean {
  if (!Array.isArray(comparisons) || typeof value !== 'number' || Math.abs(value) > NUMERIC_MAX) return false;
  return comparisons.every((bound, i) => i % 2 === 0 || compares(comparisons[i - 1], value, bound));
}

function compares(operator: unknown, value: number, bound: unknown): boolean {
  if (typeof bound !== 'number') return false;
  if (operator === '=') return value === bound;
  if (operator === '<') return value < bound;
  if (operator === '<=') return value <= bound;
  if (operator === '>') return value > bound;
  return operator === '>=' && value >= bound;
}

function isOther(excluded: unknown, value: Scalar): boolean {
  if (typeof excluded !== 'object' || excluded === null || Array.isArray(excluded))
    return ![excluded].flat().includes(value);
  return Object.entries(excluded).every(([name, operands]) =>
    [operands].flat().every((operand) => !passes({ [name]: operand }, value)),
  );
}
