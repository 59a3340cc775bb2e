import type { EventRef } from './event.ts';

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
 * The most steps that one filter takes on one payload. An event of 1 MB has at most 500,000 values, and each takes one step to
 * find and one for each test of its field.
 */
export const FILTER_WORK_MAX = 4_000_000;

/**
 * Returns true if EventBridge delivers a payload to a rule with this filter, by the EventBridge user guide ("Comparison operators
 * for use in event patterns") and aws/event-ruler, which EventBridge runs:
 *
 * - A list matches if one of its elements does. The fields of one object in the filter must match within one object of a list.
 * - `exists: false` means that no value is at that path, in any element of a list. A `null` is a value; an object, an empty list
 *   and a missing field are not.
 * - `anything-but` matches a value that differs in type, but no missing field.
 *
 * An operator that a newer version wrote matches nothing, so that an audit expects no event because of it. For the same reason, a
 * payload that needs more than {@link FILTER_WORK_MAX} steps does not match.
 *
 * @param data - as parsed JSON
 *
 * @example
 * ```ts
 * matchesFilter({ country: ['CH', 'AT'], totalCents: [{ numeric: ['>=', 10_000] }] }, { country: 'AT', totalCents: 12_000 }); // true
 * ```
 */
export function matchesFilter(filter: DataFilter, data: unknown): boolean {
  const work = { left: FILTER_WORK_MAX };
  const objects = objectsIn(flat([data]));
  const fields = fieldsAt(filter, objects, work);
  return holds(fields, objects, work) && work.left >= 0;
}

/** The steps that remain: one per object looked into, value found and value tested. */
interface Work {
  left: number;
}

/** A field of a filter: with tests, or with its own fields. */
type FilterField = { readonly name: string } & (
  | { readonly tests: readonly ValueTest[]; readonly isAbsent: boolean; readonly takesAbsence: boolean }
  | { readonly fields: readonly FilterField[] }
);

/**
 * Finds which fields have a value anywhere in the payload, because `exists: false` looks into every element of a list. It reads
 * each value once: doing so for each element would take quadratic time.
 *
 * @param all - the objects at the path of this filter
 */
function fieldsAt(filter: DataFilter, all: readonly JsonFields[], work: Work): FilterField[] {
  if (work.left < 0) return [];
  return Object.entries(filter).map(([name, condition]) => {
    work.left -= all.length;
    const values = work.left < 0 ? [] : flat(all.map((fields) => fieldOf(fields, name)));
    work.left -= values.length;
    if (!isTests(condition)) return { name, fields: fieldsAt(condition, objectsIn(values), work) };
    const isAbsent = scalarsIn(values).length === 0;
    return { name, tests: condition.map(testOf), isAbsent, takesAbsence: condition.some(isAbsence) };
  });
}

/** @param candidates - of which one must match */
function holds(fields: readonly FilterField[], candidates: readonly JsonFields[], work: Work): boolean {
  // Without an object, fields are tested against nothing: `exists: false` holds.
  return (candidates.length > 0 ? candidates : [{}]).some((candidate) =>
    fields.every((field) => {
      work.left -= 1;
      if (work.left < 0) return false;
      const values = flat([fieldOf(candidate, field.name)]);
      if ('fields' in field) return holds(field.fields, objectsIn(values), work);
      if (field.isAbsent) return field.takesAbsence;
      const scalars = scalarsIn(values);
      work.left -= field.tests.length * scalars.length;
      return work.left >= 0 && field.tests.some((test) => scalars.some((value) => test(value)));
    }),
  );
}

type JsonFields = Readonly<Record<string, unknown>>;

function fieldOf(fields: JsonFields, name: string): unknown {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

function objectsIn(values: readonly unknown[]): JsonFields[] {
  return values.filter((value) => typeof value === 'object' && value !== null) as JsonFields[];
}

function scalarsIn(values: readonly unknown[]): Scalar[] {
  return values.filter((value) => value === null || SCALARS.has(typeof value)) as Scalar[];
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

type ValueTest = (value: Scalar) => boolean;

function testOf(test: unknown): ValueTest {
  if (typeof test !== 'object' || test === null) return (value) => test === value;
  const [[name, operand] = ['', undefined]] = Object.entries(test);
  return OPERATORS.get(name)?.(operand) ?? (() => false);
}

/** Each operator reads its operand once, however many values it tests. */
const OPERATORS: ReadonlyMap<string, (operand: unknown) => ValueTest> = new Map([
  ['prefix', ofTexts((operand) => (text) => text.startsWith(operand))],
  ['suffix', ofTexts((operand) => (text) => text.endsWith(operand))],
  ['equals-ignore-case', ofTexts((operand) => (text) => isSameIgnoringCase(operand, text))],
  ['wildcard', ofTexts(isLike)],
  ['numeric', isInRange],
  ['exists', (operand) => () => operand === true],
  ['anything-but', isOther],
]);

function ofTexts(testFor: (operand: string) => (text: string) => boolean): (operand: unknown) => ValueTest {
  return (operand) => {
    if (typeof operand !== 'string') return () => false;
    const test = testFor(operand);
    return (value) => typeof value === 'string' && test(value);
  };
}

/**
 * EventBridge accepts the lower or the upper case of each character of the operand, and not of the value: `ß` matches `SS`. Neither
 * case of a character begins with the other, so the first that fits is the one.
 */
function isSameIgnoringCase(operand: string, text: string): boolean {
  let at = 0;
  for (const char of operand) {
    const found = [char.toLowerCase(), char.toUpperCase()].find((either) => text.startsWith(either, at));
    if (found === undefined) return false;
    at += found.length;
  }
  return at === text.length;
}

/** Looks for the texts between the asterisks one after the other, so that its time grows only linearly with the text. */
function isLike(operand: string): (text: string) => boolean {
  const [first = '', ...between] = literalsOf(operand);
  const last = between.pop();
  if (last === undefined) return (text) => text === first;
  return (text) => {
    const end = text.length - last.length;
    if (end < first.length || !text.startsWith(first) || !text.endsWith(last)) return false;
    let at = first.length;
    for (const literal of between) {
      const found = text.indexOf(literal, at);
      if (found === -1) return false;
      at = found + literal.length;
    }
    return at <= end;
  };
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

function isInRange(comparisons: unknown): ValueTest {
  if (!Array.isArray(comparisons)) return () => false;
  return (value) =>
    typeof value === 'number' &&
    Math.abs(value) <= NUMERIC_MAX &&
    comparisons.every((bound, i) => i % 2 === 0 || compares(comparisons[i - 1], value, bound));
}

function compares(operator: unknown, value: number, bound: unknown): boolean {
  if (typeof bound !== 'number') return false;
  if (operator === '=') return value === bound;
  if (operator === '<') return value < bound;
  if (operator === '<=') return value <= bound;
  if (operator === '>') return value > bound;
  return operator === '>=' && value >= bound;
}

function isOther(excluded: unknown): ValueTest {
  const operands =
    typeof excluded !== 'object' || excluded === null || Array.isArray(excluded)
      ? [excluded].flat()
      : Object.entries(excluded).flatMap(([name, each]) =>
          [each].flat().map((operand) => ({ [name]: operand })),
        );
  const tests = operands.map(testOf);
  return (value) => !tests.some((test) => test(value));
}
