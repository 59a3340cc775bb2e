import { deployWords } from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedAlarm } from '../../deployment/resources.ts';
import { many } from '../../terminal/output.ts';
import type { CheckDeps, PartCheck } from './check.ts';

/** The most names in a call (CloudWatch API reference, EnableAlarmActions). */
const NAMES_MAX = 100;

/** The most names in a text. */
const NAMED_MAX = 3;

/** Checks that alarms exist, are quiet and notify an operator. */
export function alarmCheck({ directory: { mailroom, consumers }, resources }: CheckDeps): PartCheck {
  return {
    part: 'alarms',
    level: 'surroundings',
    needs: ['cloudwatch:DescribeAlarms'],
    find: async (add) => {
      const all = await resources.alarms();
      const { stack } = mailroom;
      const own = all.filter(({ description }) => isOf(description, stack));
      if (own.length === 0) {
        const text = `no alarm watches ${stack}: late, lost and dead events go unnoticed. Add DeliveryAlarms to the app (docs/operating.md, "Setting the alarms up") and deploy it`;
        add('no-alarms', text, []);
      }
      const disabled = own.filter(({ actionsEnabled }) => !actionsEnabled).map(({ name }) => name);
      if (disabled.length > 0) {
        const enable = ['aws', 'cloudwatch', 'enable-alarm-actions', '--alarm-names'];
        const text = `the actions of ${named(disabled)} are disabled: no one is notified`;
        add('alarm-actions-disabled', text, [...enable, ...disabled.slice(0, NAMES_MAX)]);
      }
      const notifying = notifyingOf(all);
      const silent = own.filter((alarm) => !notifying.includes(alarm)).map(({ name }) => name);
      if (silent.length > 0) {
        const stacks = silent.map((name) => {
          const named = stackOf(name);
          return [mailroom, ...consumers].find((entry) => entry.stack === named) ?? { stack: named };
        });
        const text = `no action is set for ${named(silent)}: no one is notified`;
        add('alarm-without-action', text, deployWords(...stacks));
      }
      const firing = own.filter(({ isFiring }) => isFiring).map(({ name }) => name);
      if (firing.length > 0)
        add('alarm-firing', `in the ALARM state: ${named(firing)}`, ['npx', 'cdk-mailroom', 'status']);
    },
  };
}

/** By the first command of an alarm's text: see `lib/monitoring/alarm-plan.ts`. */
function isOf(description: string, stack: string): boolean {
  return description
    .split('\n')
    .some((line) => line.startsWith('Run first: npx cdk-mailroom ') && line.endsWith(` --stack ${stack}`));
}

/** The alarms that notify someone: by an action of their own, or in a composite alarm that notifies someone. */
function notifyingOf(all: readonly DeployedAlarm[]): readonly DeployedAlarm[] {
  let found = all.filter(({ actions }) => actions.length > 0);
  for (let before = -1; before < found.length; ) {
    before = found.length;
    const rules = found.flatMap(({ rule }) => rule ?? []);
    found = all.filter((alarm) => found.includes(alarm) || rules.some((rule) => contains(rule, alarm)));
  }
  return found;
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
