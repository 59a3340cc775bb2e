import { NumberValueImpl as NumberValue } from '@aws-sdk/util-dynamodb';

/** The deepest that lists and maps may nest in an attribute (DynamoDB developer guide, "Supported data types"). */
const LEVELS_MAX = 32;

/** Paths longer than this are cut in an error's text. */
const PATH_CHARS_MAX = 200;

/** What is wrong with some attributes. It never holds a value: these are the caller's data, and errors are logged. */
export interface ValueProblem {
  /** Where it is, e.g. `order.lines[0].price`; empty for the attributes as a whole. */
  readonly path: string;
  /** The kind of value that is there, e.g. `a Date`. */
  readonly kind: string;
  /** What to do, as a sentence. */
  readonly remedy: string;
}

/** A problem on its way out of the walk: its path from the outside to the inside. */
interface Fault extends Omit<ValueProblem, 'path'> {
  readonly path: readonly (string | number)[];
}

/**
 * Finds the first value that DynamoDB would not get as it is, because the SDK throws at it, leaves it out, or sends something
 * else in its place. It walks once through all values, by the marshaller's own rules, and at most 32 levels deep, so that an
 * item that contains itself ends the walk as any other mistake does.
 *
 * @param attributes - an item, a key, or the values of an expression
 * @returns `undefined` when all of them can be stored
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

const NO_ATTRIBUTES = faulty('a list or a single value', 'Give an object with the attributes.');

function faultOf(value: unknown, level: number): Fault | undefined {
  switch (typeof value) {
    case 'number':
      return numberFault(value);
    case 'object':
      return value === null ? undefined : objectFault(value, level + 1);
    case 'function':
      return faulty('a function', 'Call it, or leave it out.');
    case 'symbol':
      return faulty('a symbol', 'Store a text instead.');
    default:
      return undefined;
  }
}

/** Tells classes apart by name, as the marshaller does: a value may come from another realm. */
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
    // Of all binary types only these arrive: the SDK sends the others empty, or throws.
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
  // With what it inherits, as the marshaller reads it.
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

/** An attribute that is undefined is one that is not there. */
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
        ? faulty('undefined', 'Leave the element out, or store null.')
        : faultOf(element, level);
    if (fault) return within(index, fault);
  }
  return undefined;
}

function setFault(set: ReadonlySet<unknown>): Fault | undefined {
  if (set.size === 0) return faulty('an empty Set', 'Leave the attribute out: DynamoDB has no empty sets.');
  const types = new Set<string>();
  for (const element of set) {
    const type = elementType(element);
    const number = typeof element === 'number' ? numberFault(element)?.kind : undefined;
    if (type === undefined || number !== undefined) {
      const kind = number ?? `an element of type ${element === null ? 'null' : typeof element}`;
      return faulty(`a Set with ${kind}`, 'Put only texts, numbers or Uint8Arrays into it, or use a list.');
    }
    types.add(type);
  }
  // The marshaller reads all elements as what the first one is.
  if (types.size === 1) return undefined;
  return faulty(
    `a Set of several types (${[...types].join(', ')})`,
    'Put only one of them into it, or use a list.',
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
    return faulty(kind, 'DynamoDB has none: leave it out, or store null.');
  }
  return faulty(
    `a number beyond ±${Number.MAX_SAFE_INTEGER}`,
    'Use a bigint, or NumberValue of @aws-sdk/lib-dynamodb.',
  );
}

function instanceFault(value: object, name: string): Fault {
  if (name === 'Date') return faulty('a Date', 'Store its toISOString() or its getTime().');
  if (typeof (value as { then?: unknown }).then === 'function') return faulty('a Promise', 'Await it first.');
  if (Object.hasOwn(value, 'constructor')) {
    const remedy = 'Rename the attribute: the SDK takes the object for an instance of a class.';
    return faulty('an object with an attribute named constructor', remedy);
  }
  const isBinary = ArrayBuffer.isView(value) || ['ArrayBuffer', 'Blob', 'File'].includes(name);
  return faulty(
    `an instance of ${name || 'a class without a name'}`,
    isBinary ? 'Store a Uint8Array of its bytes.' : 'Copy what is to be stored into a plain object.',
  );
}

function faulty(kind: string, remedy: string): Fault {
  return { path: [], kind, remedy };
}

function within(step: string | number, fault: Fault): Fault {
  return { ...fault, path: [step, ...fault.path] };
}

/** Names are the caller's too: what is no word is quoted, and nothing in it moves a terminal's cursor. */
function pathText(path: Fault['path']): string {
  const steps = path.map((step, index) => {
    if (typeof step === 'number') return `[${step}]`;
    if (!/^[\w:#$@-]+$/.test(step)) return `[${JSON.stringify(step)}]`;
    return index === 0 ? step : `.${step}`;
  });
  const text = steps.join('').replace(/\p{C}/gu, '?');
  return text.length > PATH_CHARS_MAX ? `${text.slice(0, PATH_CHARS_MAX)}…` : text;
}
