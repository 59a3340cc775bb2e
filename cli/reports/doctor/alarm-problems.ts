import {
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import { many } from '../../terminal/output.ts';
import type { PartProblem } from '../status/part-checks.ts';
import type { DeployedAlarm } from './deployed-resources.ts';

/** A problem of the alarms. */
export type AlarmProblem = PartProblem<
  'no-alarms' | 'alarm-actions-disabled' | 'alarm-without-action' | 'alarm-firing'
>;

const part = 'alarms';

/** The most names in a call (CloudWatch API reference, EnableAlarmActions). */
const NAMES_MAX = 100;

/** The most names in a text. */
const NAMED_MAX = 3;

/**
 * Alarms that are missing, fire, or notify no one.
 *
 * @param all - all alarms of the region; those of a Mailroom have its stack in the command of their description
 */
export function alarmProblems(
  all: readonly DeployedAlarm[],
  { mailroom, consumers }: Directory,
): AlarmProblem[] {
  const { stack } = mailroom;
  const own = all.filter(({ description }) => isOf(description, stack));
  if (own.length === 0) {
    const text =
      `no alarm watches ${stack}: late, lost and dead events go unnoticed. Add DeliveryAlarms to the app ` +
      '(docs/operating.md, "Setting the alarms up") and deploy it';
    return [{ part, problem: 'no-alarms', text, fix: [] }];
  }
  return [
    ...disabledProblems(own),
    ...silentProblems(own, all, [mailroom, ...consumers]),
    ...firingProblems(own),
  ];
}

/** The first command of an alarm's text: see `lib/monitoring/alarm-plan.ts`. */
function isOf(description: string, stack: string): boolean {
  return description
    .split('\n')
    .some((line) => line.startsWith('Run first: npx cdk-mailroom ') && line.endsWith(` --stack ${stack}`));
}

function disabledProblems(own: readonly DeployedAlarm[]): AlarmProblem[] {
  const disabled = own.filter(({ actionsEnabled }) => !actionsEnabled).map(({ name }) => name);
  if (disabled.length === 0) return [];
  const text = `the actions of ${named(disabled)} are disabled: no one is notified`;
  const fix = ['aws', 'cloudwatch', 'enable-alarm-actions', '--alarm-names', ...disabled.slice(0, NAMES_MAX)];
  return [{ part, problem: 'alarm-actions-disabled', text, fix }];
}

/** Alarms that notify no one: without an action, and in no composite alarm that has one. */
function silentProblems(
  own: readonly DeployedAlarm[],
  all: readonly DeployedAlarm[],
  entries: readonly EntryStack[],
): AlarmProblem[] {
  let loud = all.filter(({ actions }) => actions.length > 0);
  for (let before = -1; before < loud.length; ) {
    before = loud.length;
    const rules = loud.flatMap(({ rule }) => rule ?? []);
    loud = all.filter((alarm) => loud.includes(alarm) || rules.some((rule) => contains(rule, alarm)));
  }
  const silent = own.filter((alarm) => !loud.includes(alarm)).map(({ name }) => name);
  if (silent.length === 0) return [];
  const text = `no action is set for ${named(silent)}: no one is notified`;
  const stacks = silent.map((name) => {
    const stack = stackOf(name);
    return entries.find((entry) => entry.stack === stack) ?? { stack };
  });
  return [{ part, problem: 'alarm-without-action', text, fix: deployWords(...stacks) }];
}

function firingProblems(own: readonly DeployedAlarm[]): AlarmProblem[] {
  const firing = own.filter(({ isFiring }) => isFiring).map(({ name }) => name);
  if (firing.length === 0) return [];
  const text = `in the ALARM state: ${named(firing)}`;
  return [{ part, problem: 'alarm-firing', text, fix: ['npx', 'cdk-mailroom', 'status'] }];
}

/** A rule has the name or ARN of each alarm in it: `ALARM("name")`. */
function contains(rule: string, { name, arn }: DeployedAlarm): boolean {
  return [name, arn].some((one) => rule.includes(`("${one}")`) || rule.includes(`(${one})`));
}

/** CloudFormation names an alarm `<stack>-<logical id>-<random>`. */
function stackOf(name: string): string {
  return /^(.+)-[A-Za-z0-9]+-[A-Za-z0-9]+$/.exec(name)?.[1] ?? '--all';
}

function named(names: readonly string[]): string {
  if (names.length > NAMED_MAX) return many(names.length, 'alarm');
  return names.length === 1 ? `the alarm ${names[0]}` : `the alarms ${names.join(', ')}`;
}
