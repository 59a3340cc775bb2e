import { UNKNOWN } from './declared-resources.ts';

/** A template as CloudFormation returns it, as far as it is read. */
export interface Template {
  readonly Conditions?: Readonly<Record<string, unknown>>;
}

/** The sources of the values that a template refers to. Each returns {@link UNKNOWN} for a name that it does not have. */
export interface TemplateSources {
  /** The value of `Ref`: of a parameter, a pseudo parameter or a resource. */
  readonly reference: (name: string) => unknown;
  readonly attribute: (logicalId: string, name: string) => unknown;
  /** The value of an export of another stack. */
  readonly imported: (name: string) => unknown;
}

/** The value of `AWS::NoValue`, which removes its member. */
const NO_VALUE = Symbol('AWS::NoValue');

/** Resolved by CloudFormation at deployment; the template only has the reference. */
const DYNAMIC_REFERENCE = '{{resolve:';

/** A variable of `Fn::Sub`; `${!Name}` is the text `${Name}`. */
const VARIABLE = /\$\{(!?)([^${}]*)\}/g;

/** Creates the function that returns a value of a template with all its intrinsic functions resolved, deeply. It throws for no value. */
export function valueResolver(template: Template, sources: TemplateSources): (value: unknown) => unknown {
  const functions: Readonly<Record<string, (argument: unknown) => unknown>> = {
    Ref: (name) => (name === 'AWS::NoValue' ? NO_VALUE : ofName(name, sources.reference)),
    'Fn::GetAtt': (argument) => {
      const [logicalId, ...names] = typeof argument === 'string' ? argument.split('.') : listOf(argument);
      const attribute = names.map(resolve).join('.');
      return ofName(logicalId, (id) => sources.attribute(id, attribute));
    },
    'Fn::ImportValue': (name) => ofName(resolve(name), sources.imported),
    'Fn::Join': (argument) => {
      const [delimiter, parts] = listOf(argument).map(resolve);
      return joined(parts, delimiter);
    },
    'Fn::Split': (argument) => {
      const [delimiter, text] = listOf(argument).map(resolve);
      return typeof delimiter === 'string' && typeof text === 'string' ? text.split(delimiter) : UNKNOWN;
    },
    'Fn::Select': (argument) => {
      const [index, list] = listOf(argument).map(resolve);
      return listOf(list)[Number(index)] ?? UNKNOWN;
    },
    'Fn::Sub': (argument) => {
      const [text, variables] = typeof argument === 'string' ? [argument] : listOf(argument);
      return typeof text === 'string' ? substituted(text, Object(variables)) : UNKNOWN;
    },
    'Fn::If': (argument) => {
      const [condition, then, otherwise] = listOf(argument);
      const holds = isMet({ Condition: condition });
      return holds === UNKNOWN ? UNKNOWN : resolveInner(holds ? then : otherwise);
    },
  };

  const resolve = (value: unknown): unknown => {
    const found = resolveInner(value);
    return found === NO_VALUE ? undefined : found;
  };

  function resolveInner(value: unknown): unknown {
    if (typeof value === 'string') return value.includes(DYNAMIC_REFERENCE) ? UNKNOWN : value;
    if (Array.isArray(value)) return value.map(resolveInner).filter((element) => element !== NO_VALUE);
    if (typeof value !== 'object' || value === null) return value ?? UNKNOWN;
    const members = Object.entries(value);
    const [name = '', argument] = members[0] ?? [];
    if (members.length === 1 && (name === 'Ref' || name.startsWith('Fn::')))
      return Object.hasOwn(functions, name) ? functions[name]?.(argument) : UNKNOWN;
    return Object.fromEntries(
      members.flatMap(([member, inner]) => {
        const found = resolveInner(inner);
        return found === NO_VALUE ? [] : [[member, found]];
      }),
    );
  }

  function substituted(text: string, variables: Readonly<Record<string, unknown>>): unknown {
    const parts: unknown[] = [];
    let end = 0;
    for (const { 0: whole, 1: literal, 2: name = '', index } of text.matchAll(VARIABLE)) {
      parts.push(text.slice(end, index), literal ? `\${${name}}` : variable(name.trim(), variables));
      end = index + whole.length;
    }
    return joined(resolve([...parts, text.slice(end)]), '');
  }

  function variable(name: string, variables: Readonly<Record<string, unknown>>): unknown {
    if (Object.hasOwn(variables, name)) return variables[name];
    return name.includes('.') ? { 'Fn::GetAtt': name } : { Ref: name };
  }

  const isMet = conditions(template, resolve);
  return resolve;
}

/** Evaluates conditions; {@link UNKNOWN} for one that depends on itself or on a value that is unknown. */
function conditions({ Conditions = {} }: Template, resolve: (value: unknown) => unknown) {
  const known = new Map<string, boolean | typeof UNKNOWN>();
  return function isMet(condition: unknown): boolean | typeof UNKNOWN {
    const members = Object.entries(Object(condition));
    const [name = '', argument] = members.length === 1 ? (members[0] ?? []) : [];
    const parts = () => listOf(argument).map(isMet);
    switch (name) {
      case 'Condition': {
        if (typeof argument !== 'string' || !Object.hasOwn(Conditions, argument)) return UNKNOWN;
        const before = known.get(argument);
        if (before !== undefined) return before;
        // A condition that refers to itself finds this value.
        known.set(argument, UNKNOWN);
        const found = isMet(Conditions[argument]);
        known.set(argument, found);
        return found;
      }
      case 'Fn::Equals': {
        const [one, other] = listOf(argument).map(resolve);
        if (isUnknown(one) || isUnknown(other)) return UNKNOWN;
        return JSON.stringify(one) === JSON.stringify(other);
      }
      case 'Fn::And':
        return every(parts(), true);
      case 'Fn::Or':
        return every(parts(), false);
      case 'Fn::Not': {
        const [inner = UNKNOWN] = parts();
        return inner === UNKNOWN ? UNKNOWN : !inner;
      }
      default:
        return UNKNOWN;
    }
  };
}

/** `expected` if all parts have that value, its contrary if one has it: unknown parts do not matter then. */
function every(parts: readonly (boolean | typeof UNKNOWN)[], expected: boolean): boolean | typeof UNKNOWN {
  if (parts.includes(!expected)) return !expected;
  return parts.includes(UNKNOWN) ? UNKNOWN : expected;
}

/** True for a value with an unknown part. */
function isUnknown(value: unknown): boolean {
  if (value === UNKNOWN || value === undefined) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some(isUnknown);
}

function joined(parts: unknown, delimiter: unknown): unknown {
  if (!Array.isArray(parts) || typeof delimiter !== 'string') return UNKNOWN;
  const isText = parts.every((part) => ['string', 'number', 'boolean'].includes(typeof part));
  if (!isText) return UNKNOWN;
  const text = parts.join(delimiter);
  return text.includes(DYNAMIC_REFERENCE) ? UNKNOWN : text;
}

function ofName(name: unknown, find: (name: string) => unknown): unknown {
  return typeof name === 'string' ? find(name) : UNKNOWN;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
