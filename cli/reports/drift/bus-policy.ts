import { isObject } from '../../../lambdas/runtime/base/json.ts';
import { isSame, statementsOf } from './same-value.ts';

/** A statement in the form in which statements are compared: single values are lists, actions and condition keys in lower case. */
interface BusStatement {
  readonly Effect?: readonly string[];
  readonly Principal?: Readonly<Record<string, readonly string[]>>;
  readonly NotPrincipal?: object;
  readonly Action?: readonly string[];
  readonly NotAction?: readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>>;
}

/**
 * The policy of a bus without the statements that Mailrooms of other apps add to it, and others may: a Deny of the events of named sources,
 * or for named roles except this app's publishers, and an Allow for named principals or on a condition. An Allow for everyone stays,
 * and a Deny that stops this Mailroom's relays and producers.
 */
export function withoutOthers(declared: unknown, deployed: unknown): unknown {
  if (!isObject(deployed)) return deployed;
  const own = statementsOf(declared) as readonly BusStatement[];
  const publishers = new Set(own.flatMap((one) => valuesOf(one, 'aws:principalarn', () => true)));
  const found = statementsOf(deployed) as readonly BusStatement[];
  const { Statement } = deployed as { readonly Statement?: unknown };
  const kept = [Statement].flat().filter((_, index) => {
    const one = found[index] ?? {};
    return own.some((other) => isSame(other, one)) || !isOfOthers(one, publishers);
  });
  return { ...deployed, Statement: kept };
}

function isOfOthers(statement: BusStatement, publishers: ReadonlySet<string>): boolean {
  const { Effect = [], Principal = {}, NotPrincipal, Condition } = statement;
  const principals = Object.values(Principal).flat();
  if (Effect[0] === 'Allow')
    return Condition !== undefined || (NotPrincipal === undefined && !principals.includes('*'));
  if (!deniesEvents(statement)) return true;
  const sources = valuesOf(statement, 'events:source', isEquality);
  const tags = Object.entries(Condition ?? {}).some(
    ([operator, keys]) =>
      isEquality(operator) && Object.keys(keys).some((key) => key.startsWith('aws:principaltag/')),
  );
  const roles = [
    valuesOf(statement, 'aws:principalarn', isEquality),
    NotPrincipal === undefined ? principals : [],
  ];
  const isNamed = (names: readonly string[]) =>
    names.length > 0 && names.every((name) => NAMED_ROLE.test(name) && !publishers.has(name));
  return (sources.length > 0 && !sources.includes('*')) || tags || roles.some(isNamed);
}

/** One role or user: an account would include the Mailroom's own roles. */
const NAMED_ROLE = /^arn:[^:*]+:(iam|sts)::\d+:(role|user|assumed-role)\/[^*]+$/;

/** Operators by which a condition is about the listed values, and about nothing else. */
function isEquality(operator: string): boolean {
  return /^(ForAnyValue:|ForAllValues:)?(String|Arn)(Equals|Like)(IgnoreCase)?$/.test(operator);
}

/** The values of a condition key. @param of - selects the operators */
function valuesOf(
  { Condition = {} }: BusStatement,
  key: string,
  of: (operator: string) => boolean,
): readonly string[] {
  return Object.entries(Condition).flatMap(([operator, keys]) => (of(operator) ? (keys[key] ?? []) : []));
}

/** True for a Deny of publishing. */
function deniesEvents({ Action = [], NotAction }: BusStatement): boolean {
  if (NotAction !== undefined) return !NotAction.some(isPublishing);
  return Action.some(isPublishing);
}

function isPublishing(action: string): boolean {
  const pattern = action.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&').replaceAll('*', '.*');
  return new RegExp(`^${pattern.replaceAll('?', '.')}$`).test('events:putevents');
}
