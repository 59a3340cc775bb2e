import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/** The maximum nesting depth of lists and maps in an attribute (DynamoDB developer guide, "Supported data types"). */
const LEVELS_MAX = 32;

/** Longer paths are cut in an error message. */
const PATH_CHARS_MAX = 200;

/** A problem with some attributes. It never contains a value: values are the caller's data, and errors are logged. */
export interface ValueProblem {
  /** The path of the problem, e.g. `order.lines[0].price`; empty for the attributes as a whole. */
  readonly path: string;
  /** The kind of value found there, e.g. `a Date`. */
  readonly kind: string;
  /** The remedy, as a sentence. */
  readonly remedy: string;
}

/** A problem as the walk returns it, with its path from the outermost step to the innermost. */
interface Fault extends Omit<ValueProblem, 'path'> {
  readonly path: readonly (string | number)[];
}

/**
 * Finds the first value that DynamoDB would not receive unchanged, because the SDK throws an error, omits it, or sends something
 * else instead. It visits all values once, by the marshaller's own rules, and at most 32 levels deep, so that an item that
 * contains itself is reported like any other mistake.
 *
 * @param attributes - an item, a key, or the values of an expression
 * @returns `undefined` if all of them can be stored
 */
export function valueProblem(attributes: unknown): ValueProblem | undefined {
  try {
    if (attributes === undefined) return undefined;
    const object = typeof attributes === 'object' && attributes !== null ? attributes : undefined;
    const fault =
      object && isPlain(object) ? entriesFault(object, 0) : (faultOf(attributes, 0) ?? NO_ATTRIBUTES);
    return fault && { ...fault, path: pathText(fault.path) };
  } catch {
    return {
      path: '',
      kind: 'an object that throws when it is read',
      remedy: 'Copy it into a plain object.',
    };
  }
}

const NO_ATTRIBUTES = faulty('a list or a single value', 'Pass an object with the attributes.');

function faultOf(value: unknown, level: number): Fault | undefined {
  switch (typeof value) {
    case 'number':
      return numberFault(value);
    case 'object':
      return value === null ? undefined : objectFault(value, level + 1);
    case 'function':
      return faulty('a function', 'Call it, or omit it.');
    case 'symbol':
      return faulty('a symbol', 'Store a string instead.');
    default:
      return undefined;
  }
}

/** Identifies classes by name, as the marshaller does: a value may come from another realm. */
function objectFault(value: object, level: number): Fault | undefined {
  const name = Array.isArray(value) ? 'Array' : isPlain(value) ? 'Object' : value.constructor.name;
  switch (name) {
    case 'Array':
      return depthFault(level) ?? listFault(value as readonly unknown[], level);
    case 'Object':
      return depthFault(level) ?? entriesFault(value, level);
    case 'Map':
      return depthFault(level) ?? mapFault(value as ReadonlyMap<unknown, unknown>, level);
    case 'Set':
      return setFault(value as ReadonlySet<unknown>);
    case 'Number':
      return numberFault(Number(value));
    // The only binary types that are stored correctly: the SDK sends the others empty, or throws.
    case 'Uint8Array':
    case 'Buffer':
    case 'Boolean':
    case 'String':
      return undefined;
    default:
      return value instanceof NumberValue ? undefined : instanceFault(value, name);
  }
}

function isPlain(value: object): boolean {
  return !value.constructor || value.constructor.name === 'Object';
}

function depthFault(level: number): Fault | undefined {
  if (level <= LEVELS_MAX) return undefined;
  const kind = `nested more than ${LEVELS_MAX} levels deep, or part of itself`;
  return faulty(kind, 'Store a flatter item, or the deep part as JSON.');
}

function entriesFault(value: object, level: number): Fault | undefined {
  // Including inherited properties, as the marshaller does.
  for (const name in value) {
    const fault = entryFault(name, (value as Readonly<Record<string, unknown>>)[name], level);
    if (fault) return fault;
  }
  return undefined;
}

function mapFault(value: ReadonlyMap<unknown, unknown>, level: number): Fault | undefined {
  for (const [name, element] of value) {
    if (typeof name !== 'string')
      return faulty(`a Map with a key of type ${typeof name}`, 'Use strings as its keys.');
    const fault = entryFault(name, element, level);
    if (fault) return fault;
  }
  return undefined;
}

/** An attribute that is undefined counts as absent. */
function entryFault(name: string, value: unknown, level: number): Fault | undefined {
  if (name === '__proto__')
    return faulty('an object with an attribute named __proto__', 'Rename the attribute.');
  const fault = faultOf(value, level);
  return fault && within(name, fault);
}

function listFault(list: readonly unknown[], level: number): Fault | undefined {
  for (let index = 0; index < list.length; index += 1) {
    const element = list[index];
    const fault =
      element === undefined
        ? faulty('undefined', 'Omit the element, or store null.')
        : faultOf(element, level);
    if (fault) return within(index, fault);
  }
  return undefined;
}

function setFault(set: ReadonlySet<unknown>): Fault | undefined {
  if (set.size === 0) return faulty('an empty Set', 'Omit the attribute: DynamoDB has no empty sets.');
  const types = new Set<string>();
  for (const element of set) {
    const type = elementType(element);
    const number = typeof element === 'number' ? numberFault(element)?.kind : undefined;
    if (type === undefined || number !== undefined) {
      const kind = number ?? `an element of type ${element === null ? 'null' : typeof element}`;
      return faulty(`a Set with ${kind}`, 'Use only strings, numbers or Uint8Arrays in it, or use a list.');
    }
    types.add(type);
  }
  // The marshaller treats all elements as the type of the first one.
  if (types.size === 1) return undefined;
  return faulty(
    `a Set of several types (${[...types].join(', ')})`,
    'Use only one of them in it, or use a list.',
  );
}

function elementType(element: unknown): string | undefined {
  if (['string', 'number', 'bigint'].includes(typeof element)) return typeof element;
  if (element instanceof NumberValue) return 'NumberValue';
  const name = (element as object | undefined | null)?.constructor?.name;
  return name === 'Uint8Array' || name === 'Buffer' ? 'binary' : undefined;
}

function numberFault(number: number): Fault | undefined {
  if (Math.abs(number) <= Number.MAX_SAFE_INTEGER) return undefined;
  if (!Number.isFinite(number)) {
    const kind = Number.isNaN(number) ? 'NaN' : 'an infinite number';
    return faulty(kind, 'DynamoDB cannot store it: omit it, or store null.');
  }
  return faulty(
    `a number beyond ±${Number.MAX_SAFE_INTEGER}`,
    'Use a bigint, or NumberValue from @aws-sdk/lib-dynamodb.',
  );
}

function instanceFault(value: object, name: string): Fault {
  if (name === 'Date') return faulty('a Date', 'Store its toISOString() or its getTime().');
  if (typeof (value as { then?: unknown }).then === 'function') return faulty('a Promise', 'Await it first.');
  if (Object.hasOwn(value, 'constructor')) {
    const remedy = 'Rename the attribute: the SDK mistakes the object for a class instance.';
    return faulty('an object with an attribute named constructor', remedy);
  }
  const isBinary = ArrayBuffer.isView(value) || ['ArrayBuffer', 'Blob', 'File'].includes(name);
  return faulty(
    `an instance of ${name || 'an unnamed class'}`,
    isBinary ? 'Store its bytes as a Uint8Array.' : 'Copy the values to store into a plain object.',
  );
}

function faulty(kind: string, remedy: string): Fault {
  return { path: [], kind, remedy };
}

function within(step: string | number, fault: Fault): Fault {
  return { ...fault, path: [step, ...fault.path] };
}

/** Names also come from the caller: a name that is not a word is quoted, and control characters are replaced. */
function pathText(path: Fault['path']): string {
  const steps = path.map((step, index) => {
    if (typeof step === 'number') return `[${step}]`;
    if (!/^[\w:#$@-]+$/.test(step)) return `[${JSON.stringify(step)}]`;
    return index === 0 ? step : `.${step}`;
  });
  const text = steps.join('').replace(/\p{C}/gu, '?');
  return text.length > PATH_CHARS_MAX ? `${text.slice(0, PATH_CHARS_MAX)}…` : text;
}
