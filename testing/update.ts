import type { AttributeValue } from '@aws-sdk/client-dynamodb';
import { type Attributes, add, elements, equal, negate, setOf, typeOf } from './attribute-values.ts';
import { assertDisjoint, type Path, removeAt, setAt, valueAt } from './document-path.ts';
import { ExpressionReader, type Placeholders } from './expression-reader.ts';
import { ValidationException } from './validation-exception.ts';

/** A parsed update expression. */
export interface ParsedUpdate {
  /** The top-level attributes that it touches. */
  readonly names: readonly string[];
  /**
   * Returns the item after the update; the argument is not changed.
   *
   * @throws ValidationException for problems that depend on the item: a missing path, a wrong type
   */
  apply(item: Attributes): Attributes;
}

type ValueOf = (item: Attributes) => AttributeValue;

/** One change: a path and an operation. `before` is the item before the update, which every change reads. */
interface UpdateChange {
  readonly path: Path;
  make(after: Attributes, before: Attributes): void;
}

const WRONG_TYPE = 'An operand in the update expression has an incorrect data type';

/**
 * Reads an UpdateExpression: SET, REMOVE, ADD and DELETE, each at most once, in any order.
 *
 * @throws ValidationException, worded much like DynamoDB's own, if DynamoDB would refuse the expression
 */
export function parseUpdate(text: string, placeholders: Placeholders): ParsedUpdate {
  const reader = new ExpressionReader('UpdateExpression', text, placeholders);
  const sections = new Map<string, UpdateChange[]>();
  while (reader.peek() !== '') {
    const section = reader.take().toUpperCase();
    const read = SECTIONS[section];
    if (!read) throw reader.syntaxError(-1);
    if (sections.has(section)) {
      throw reader.error(`The "${section}" section can only be used once in an update expression;`);
    }
    sections.set(
      section,
      reader.list(() => read(reader)),
    );
  }
  const removes = (sections.get('REMOVE') ?? []).toSorted(lastIndexFirst);
  const changes = ['SET', 'ADD', 'DELETE'].flatMap((section) => sections.get(section) ?? []).concat(removes);
  const paths = changes.map((change) => change.path);
  assertDisjoint(paths);
  const within = new Set(paths.filter(({ length }) => length > 1).map(([name]) => String(name)));
  return {
    names: paths.map((path) => String(path[0])),
    apply: (before) => {
      // What is stored is never changed in place, so the new item shares every attribute in which nothing changes.
      const after = { ...before };
      for (const name of within) if (after[name]) after[name] = structuredClone(after[name]);
      for (const change of changes) change.make(after, before);
      return after;
    },
  };
}

const SECTIONS: Readonly<Record<string, (reader: ExpressionReader) => UpdateChange>> = {
  SET: (reader) => {
    const path = reader.path();
    reader.expect('=');
    const value = sum(reader);
    return { path, make: (after, before) => setAt(after, path, value(before)) };
  },
  REMOVE: (reader) => {
    const path = reader.path();
    return { path, make: (after) => removeAt(after, path) };
  },
  ADD: (reader) => {
    const path = reader.path();
    const value = typed(reader, 'ADD', ['N', 'SS', 'NS', 'BS']);
    return { path, make: (after, before) => setAt(after, path, added(valueAt(before, path), value)) };
  },
  DELETE: (reader) => {
    const path = reader.path();
    const value = typed(reader, 'DELETE', ['SS', 'NS', 'BS']);
    return {
      path,
      make: (after, before) => {
        const set = valueAt(before, path);
        if (set === undefined) return;
        if (typeOf(set) !== typeOf(value)) throw new ValidationException(WRONG_TYPE);
        const gone = elements(value) ?? [];
        const left = (elements(set) ?? []).filter((element) => !gone.some((other) => equal(element, other)));
        const rest = setOf(set, left);
        if (rest) setAt(after, path, rest);
        else removeAt(after, path);
      },
    };
  },
};

/** Elements are removed from a list back to front, so that the indexes of the others stay valid. */
function lastIndexFirst(a: UpdateChange, b: UpdateChange): number {
  const depth = a.path.findIndex((step, index) => step !== b.path[index]);
  const [one, two] = [a.path[depth], b.path[depth]];
  return typeof one === 'number' && typeof two === 'number' ? two - one : 0;
}

function sum(reader: ExpressionReader): ValueOf {
  const left = operand(reader);
  const sign = reader.peek();
  if (sign !== '+' && sign !== '-') return left;
  reader.take();
  const right = operand(reader);
  return (item) => {
    const [a, b] = [left(item).N, right(item).N];
    if (a === undefined || b === undefined) throw new ValidationException(WRONG_TYPE);
    return { N: add(a, sign === '+' ? b : negate(b)) };
  };
}

function operand(reader: ExpressionReader): ValueOf {
  if (reader.accept('(')) {
    const inner = sum(reader);
    reader.expect(')');
    return inner;
  }
  if (reader.atFunction('if_not_exists')) return ifNotExists(reader);
  if (reader.atFunction('list_append')) return listAppend(reader);
  if (reader.atValue()) {
    const value = reader.value();
    return () => value;
  }
  const path = reader.path();
  return (item) => {
    const value = valueAt(item, path);
    if (value) return value;
    throw new ValidationException(
      'The provided expression refers to an attribute that does not exist in the item',
    );
  };
}

function ifNotExists(reader: ExpressionReader): ValueOf {
  reader.take();
  reader.expect('(');
  const path = reader.path();
  reader.expect(',');
  const otherwise = operand(reader);
  reader.expect(')');
  return (item) => valueAt(item, path) ?? otherwise(item);
}

function listAppend(reader: ExpressionReader): ValueOf {
  reader.take();
  reader.expect('(');
  const first = operand(reader);
  reader.expect(',');
  const second = operand(reader);
  reader.expect(')');
  return (item) => {
    const [a, b] = [first(item).L, second(item).L];
    if (!a || !b) throw new ValidationException(WRONG_TYPE);
    return { L: [...a, ...b] };
  };
}

function added(old: AttributeValue | undefined, value: AttributeValue): AttributeValue {
  if (old === undefined) return value;
  if (old.N !== undefined && value.N !== undefined) return { N: add(old.N, value.N) };
  const [have, more] = [elements(old), elements(value)];
  if (!have || !more || typeOf(old) !== typeOf(value)) throw new ValidationException(WRONG_TYPE);
  const fresh = more.filter((element) => !have.some((other) => equal(element, other)));
  return setOf(old, [...have, ...fresh]) ?? old;
}

function typed(reader: ExpressionReader, section: string, types: readonly string[]): AttributeValue {
  if (!reader.atValue()) throw reader.syntaxError();
  const value = reader.value();
  if (types.includes(typeOf(value))) return value;
  throw reader.error(
    'Incorrect operand type for operator or function; ' +
      `operator: ${section}, operand type: ${typeOf(value)}, typeSet: ALLOWED_FOR_${section}_OPERAND`,
  );
}
