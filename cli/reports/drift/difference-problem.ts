import { isObject } from '../../../lambdas/runtime/base/json.ts';
import { deployWords } from '../../../lambdas/runtime/operations/directory.ts';
import { UNKNOWN } from '../../deployment/declared-resources.ts';
import { FIND_MISSED, type PartProblem } from '../checks/check.ts';
import type { Difference } from './compare.ts';
import { KINDS } from './resource-kinds.ts';
import { hasUnknown, isNone, isSame, sidsOf, statementsOf } from './same-value.ts';

/** A difference as a problem of its part. */
export function differenceProblem(difference: Difference): PartProblem {
  const { resource, member, declared, means } = difference;
  const { type, logicalId, part, stack } = resource;
  const [program, ...words] = hasUnknown(declared) ? [] : (means.set?.(resource, declared) ?? []);
  return {
    part,
    problem: 'differs',
    physicalId: resource.physicalId,
    resource: member === undefined ? logicalId : `${logicalId}.${member}`,
    level: means.level ?? 'settings',
    text: differenceText(difference),
    fix: program === undefined ? deployWords(stack) : [program, ...words],
    followUp: means.losesEvents ? FIND_MISSED : undefined,
    type,
    member,
    declared: shownValue(difference, declared),
    deployed: shownValue(difference, difference.deployed),
    call: means.call ?? KINDS[type]?.call,
  };
}

/** A difference and its effect as a sentence without its full stop. */
function differenceText(difference: Difference): string {
  const { resource, declared, deployed, means } = difference;
  const effect = typeof means.effect === 'function' ? means.effect(declared, deployed) : means.effect;
  return `${resource.part}: ${changedText(difference)}${effect === undefined ? '' : `: ${effect}`}`;
}

/** A difference without its effect: the member, its value and the declared one. */
export function changedText(difference: Difference): string {
  const { resource, member } = difference;
  const { noun = resource.type, nameOf } = KINDS[resource.type] ?? {};
  const its = `the ${noun} ${nameOf?.(resource) ?? resource.physicalId}`;
  return member === undefined ? `${its} does not exist` : `${member} of ${its} ${changeText(difference)}`;
}

function changeText(difference: Difference): string {
  const { declared, deployed, means } = difference;
  if (isHidden(difference))
    return isNone(declared) ? 'was added' : isNone(deployed) ? 'was removed' : 'was changed';
  if ('form' in means && means.form === 'policy' && !isNone(deployed)) return policyText(declared, deployed);
  const [before, now] = [declared, deployed].map((value) => textOf(shownValue(difference, value)));
  if (isNone(declared)) return `is ${now}, which its stack does not declare`;
  return isNone(deployed) ? `is not set instead of ${before}` : `is ${now} instead of ${before}`;
}

/** The statements that only one of two policies has. */
function policyText(declared: unknown, deployed: unknown): string {
  const [before, now] = [statementsOf(declared), statementsOf(deployed)];
  const only = (these: readonly unknown[], others: readonly unknown[], isDeclared: boolean) =>
    these.filter((one) => !others.some((other) => (isDeclared ? isSame(one, other) : isSame(other, one))));
  const [beforeIds, nowIds] = [sidsOf(declared), sidsOf(deployed)];
  const more = only(now, before, false).map(
    (one) => `has ${statementText(one, nowIds[now.indexOf(one)])}, which its stack does not declare`,
  );
  const less = only(before, now, true).map(
    (one) => `lacks ${statementText(one, beforeIds[before.indexOf(one)])}`,
  );
  const all = [...more, ...less];
  return all.length === 0 ? 'is not as its stack declares it' : all.join(', and ');
}

/** A statement for people: `a Deny of sqs:sendmessage for events.amazonaws.com (SecurityBaseline)`. The document has its condition. */
function statementText(statement: unknown, sid: string | undefined): string {
  const parts = plain(statement) as Readonly<Record<string, unknown>>;
  const { Effect, Action, NotAction, Principal, NotPrincipal, Condition } = parts;
  const who = Object.entries({ ...((Principal ?? NotPrincipal) as object) }).map(([, names]) =>
    [names].flat().join(', '),
  );
  const actions = `${NotAction ? 'all but ' : ''}${[Action ?? NotAction].flat().join(', ')}`;
  const to = who.length > 0 ? ` for ${NotPrincipal ? 'all but ' : ''}${who.join(', ')}` : '';
  const id = sid === undefined ? '' : ` (${sid})`;
  return textOf(
    `${String(Effect) === 'Allow' ? 'an' : 'a'} ${Effect} of ${actions}${to}${Condition ? ' on a condition' : ''}${id}`,
  );
}

/** Environment variables whose values are settings: those of other names may be secrets. */
const SHOWN_VARIABLE =
  /^Environment\.Variables\.(MAILROOM_|POWERTOOLS_|AWS_LAMBDA_|LOG_LEVEL$|NODE_OPTIONS$)/;

const SECRET = /SECRET|PASSWORD|TOKEN|POSTGRES|:\/\/[^/]*@/;

/** The value of a variable that may be a secret is not shown. */
function isHidden({ member = '', declared, deployed }: Difference): boolean {
  if (!member.startsWith('Environment')) return false;
  return !SHOWN_VARIABLE.test(member) || SECRET.test(`${member} ${String(declared)} ${String(deployed)}`);
}

/** A value for people and programs: `null` for none, and `hidden` for what may be a secret. */
function shownValue(difference: Difference, value: unknown): unknown {
  if (isNone(value)) return null;
  return isHidden(difference) ? 'hidden' : plain(value);
}

/** A value without symbols, which JSON leaves out. */
function plain(value: unknown): unknown {
  if (value === UNKNOWN) return 'unknown';
  if (Array.isArray(value)) return value.map(plain);
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, one]) => [name, plain(one)]))
    : value;
}

/** The most characters of a value in a sentence. */
const SHOWN_MAX = 160;

function textOf(value: unknown): string {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX - 1)}…` : text;
}
