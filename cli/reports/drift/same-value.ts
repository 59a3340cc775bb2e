import { isObject, jsonObject } from '../../../lambdas/runtime/base/json.ts';
import { UNKNOWN } from '../../deployment/declared-resources.ts';

/** A form in which two services write the same value differently. */
export type ValueForm = 'policy' | 'key' | 'name';

/**
 * True if AWS does the same with both values: numbers and texts of numbers, JSON and objects, lists in any order, and nothing and an empty
 * list are the same. An unknown part matches any value.
 *
 * @param form - of texts that AWS writes in several ways
 */
export function isSame(declared: unknown, deployed: unknown, form?: ValueForm): boolean {
  return matches(canonical(declared, form), canonical(deployed, form));
}

/** True if a value has a part that only AWS knows. */
export function hasUnknown(value: unknown): boolean {
  if (value === UNKNOWN) return true;
  return isObject(value) && Object.values(value).some(hasUnknown);
}

/** True if a value says nothing. */
export function isNone(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true;
  if (Array.isArray(value)) return value.length === 0;
  return isObject(value) && Object.values(value).every(isNone);
}

/** True for two names of one key of which only one is an alias: nothing in them shows whether they are of the same key. */
export function isUndecidable(declared: unknown, deployed: unknown, form?: ValueForm): boolean {
  if (form !== 'key' || isNone(declared) || isNone(deployed)) return false;
  return isAlias(declared) !== isAlias(deployed);
}

/** The ids of the statements of a policy, in the order of {@link statementsOf}. */
export function sidsOf(policy: unknown): readonly (string | undefined)[] {
  const { Statement } = { ...(typeof policy === 'string' ? jsonObject(policy) : (policy as object)) } as {
    readonly Statement?: unknown;
  };
  return listOf(Statement).map((one) => (isObject(one) && typeof one.Sid === 'string' ? one.Sid : undefined));
}

/** The statements of a policy, in the form in which they are compared. */
export function statementsOf(policy: unknown): readonly unknown[] {
  const read = canonical(policy, 'policy');
  const statements = isObject(read) ? (read as { readonly statement?: unknown }).statement : undefined;
  return Array.isArray(statements) ? statements : [];
}

function isAlias(key: unknown): boolean {
  return /(^|:)alias\//.test(String(key));
}

function canonical(value: unknown, form?: ValueForm): unknown {
  if (value === UNKNOWN) return UNKNOWN;
  if (isNone(value)) return undefined;
  if (form === 'policy') return policyOf(value);
  if (typeof value === 'string') {
    const json = /^\s*[{[]/.test(value) ? jsonObject(value) : undefined;
    if (json !== undefined && value.trimStart().startsWith('[')) return canonical(Object.values(json));
    return json === undefined ? textOf(value, form) : canonical(json);
  }
  if (Array.isArray(value)) return value.map((item) => canonical(item, form));
  if (isObject(value))
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, one]) => !isNone(one))
        .map(([name, one]) => [name, canonical(one, form)]),
    );
  return String(value);
}

/** A text without what AWS adds to it or leaves out: the last part of a key's or a function's ARN is its name. */
function textOf(text: string, form: ValueForm | undefined): string {
  if (form === 'key') return /(?:^|:)(alias\/.+)$/.exec(text)?.[1] ?? text.replace(/^.*:key\//, '');
  if (form === 'name') return text.replace(/^arn:(?:[^:]*:){4}/, '').replace(/^(function:|event-bus\/)/, '');
  const number = /^-?(0|[1-9]\d*)(\.\d+)?$/.test(text) && text.length < 16 ? Number(text) : undefined;
  return number === undefined ? text : String(number);
}

/** A policy, whose ids are only for people: single values as lists, actions in lower case. */
function policyOf(policy: unknown): unknown {
  const { Statement } = { ...(typeof policy === 'string' ? jsonObject(policy) : (policy as object)) } as {
    readonly Statement?: unknown;
  };
  const statement = listOf(Statement).map((one) => {
    if (!isObject(one)) return one;
    const { Sid, Principal, NotPrincipal, Action, NotAction, Condition, ...rest } = one;
    return canonical({
      ...mapped(rest, listOf),
      ...mapped({ Principal, NotPrincipal }, (who) =>
        mapped(isObject(who) ? who : { AWS: who }, (names) => listOf(names).map(principalOf)),
      ),
      ...mapped({ Action, NotAction }, (actions) => listOf(actions).map(lowered)),
      ...mapped({ Condition }, (operators) =>
        mapped(operators, (keys) => Object.fromEntries(Object.entries(mapped(keys, listOf)).map(byLowerKey))),
      ),
    });
  });
  return { statement };
}

function mapped(object: unknown, change: (value: unknown) => unknown): Record<string, unknown> {
  if (!isObject(object)) return {};
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => (isNone(value) ? [] : [[name, change(value)]])),
  );
}

/** IAM compares condition keys without case. */
function byLowerKey([key, value]: [string, unknown]): [string, unknown] {
  return [key.toLowerCase(), value];
}

function lowered(action: unknown): unknown {
  return typeof action === 'string' ? action.toLowerCase() : action;
}

/** The id of an account and the ARN of its root are the same principal. */
function principalOf(who: unknown): unknown {
  return typeof who === 'string' ? who.replace(/^arn:[^:]*:iam::(\d{12}):root$/, '$1') : who;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [value];
}

/** Compares canonical values. */
function matches(declared: unknown, deployed: unknown): boolean {
  if (declared === UNKNOWN || deployed === UNKNOWN) return true;
  if (Array.isArray(declared) && Array.isArray(deployed)) return haveSameItems(declared, deployed);
  if (!isObject(declared) || !isObject(deployed)) return declared === deployed;
  const names = new Set([...Object.keys(declared), ...Object.keys(deployed)]);
  return [...names].every((name) => matches(declared[name], deployed[name]));
}

/** True if each item matches another one. A known item that a known one matches needs no other attempt. */
function haveSameItems(declared: readonly unknown[], deployed: readonly unknown[]): boolean {
  if (declared.length !== deployed.length) return false;
  const [first, ...others] = [...declared].sort((a, b) => Number(hasUnknown(a)) - Number(hasUnknown(b)));
  if (declared.length === 0) return true;
  const restFits = (index: number) =>
    haveSameItems(
      others,
      deployed.filter((_, other) => other !== index),
    );
  const known = hasUnknown(first) ? -1 : deployed.findIndex((one) => !hasUnknown(one) && matches(first, one));
  if (known >= 0) return restFits(known);
  return deployed.some((one, index) => matches(first, one) && restFits(index));
}
