import {
  type Directory,
  deployWords,
  type EntryStack,
} from '../../../lambdas/runtime/operations/directory.ts';
import type { DeployedAlarm } from '../../deployment/resources.ts';
import { many } from '../../terminal/output.ts';
import { type CheckDeps, type CommandWords, check, type PartCheck } from './check.ts';

/** The most names in a call (CloudWatch API reference, EnableAlarmActions). */
const NAMES_MAX = 100;

/** The most names in a text. */
const NAMED_MAX = 3;

/** Checks that alarms exist, are quiet and notify an operator. */
export function alarmCheck({ directory, resources }: CheckDeps): PartCheck {
  return check('alarms', 'surroundings', async function* () {
    const all = await resources.alarms();
    const { stack } = directory.mailroom;
    const own = ownOf(all, directory);
    if (own.length === 0) {
      const text = `no alarm watches ${stack}: late, lost and dead events go unnoticed. Add DeliveryAlarms to the app (docs/operating.md, "Set up alarms") and deploy it`;
      yield { problem: 'no-alarms', text, fix: deployWords({ stack: '--all' }) };
    }
    const disabled = own.filter(({ actionsEnabled }) => !actionsEnabled).map(({ name }) => name);
    if (disabled.length > 0) {
      const enable = ['cloudwatch', 'enable-alarm-actions', '--alarm-names'];
      const text = `the actions of ${named(disabled)} are disabled: no one is notified`;
      yield {
        problem: 'alarm-actions-disabled',
        text,
        fix: ['aws', ...enable, ...disabled.slice(0, NAMES_MAX)],
      };
    }
    const notifying = notifyingOf(all);
    const silent = own.filter((alarm) => !notifying.includes(alarm)).map(({ name }) => name);
    if (silent.length > 0) {
      const stacks = silent.map((name) => stackOf(directory, name));
      const text = `no action is set for ${named(silent)}: no one is notified`;
      yield { problem: 'alarm-without-action', text, fix: deployWords(...stacks) };
    }
    for (const alarm of own.filter(({ isFiring }) => isFiring)) {
      const [what = '', , read = ''] = alarm.description.split('\n');
      const text = `the alarm ${alarm.name} is in the ALARM state: ${what} ${read}`;
      yield { problem: 'alarm-firing', text, fix: firstCommand(alarm) };
    }
  });
}

const RUN_FIRST = 'Run first: ';

/** The alarms of a Mailroom, by the text of `lib/monitoring/alarm-plan.ts`: its commands name the stack, its log searches do not. */
function ownOf(all: readonly DeployedAlarm[], directory: Directory): readonly DeployedAlarm[] {
  const ends = ` --stack ${directory.mailroom.stack}`;
  const named = all.filter(({ description }) => runLine(description).endsWith(ends));
  const stacks = new Set(named.map(({ name }) => stackOf(directory, name).stack));
  return all.filter(
    (alarm) =>
      named.includes(alarm) ||
      (/^aws logs /.test(runLine(alarm.description)) && stacks.has(stackOf(directory, alarm.name).stack)),
  );
}

/** The command in the text of an alarm; empty in a text that is not Mailroom's. */
function runLine(description: string): string {
  const line = description.split('\n').find((one) => one.startsWith(RUN_FIRST)) ?? '';
  return line.slice(RUN_FIRST.length);
}

const WHY_FIRING =
  'cloudwatch describe-alarms --alarm-types MetricAlarm CompositeAlarm --query *[].StateReason --output text --alarm-names';

/** The words of the command that an alarm names. `status` may see nothing of its cause, so CloudWatch's reason is shown instead. */
function firstCommand({ name, description }: DeployedAlarm): CommandWords {
  const [command = ''] = runLine(description).split(' --region ');
  const [program = '', ...words] = command.split(' ');
  return program === '' || words.at(-1) === 'status'
    ? ['aws', ...WHY_FIRING.split(' '), name]
    : [program, ...words];
}

/** The alarms that notify someone: by their own action, or in a composite alarm that notifies someone. */
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

/** CloudFormation names an alarm `<stack>-<logical id>-<random>`. An alarm of another name may be of any stack. */
function stackOf({ mailroom, consumers }: Directory, alarm: string): EntryStack {
  const stack = /^(.+)-[A-Za-z0-9]+-[A-Za-z0-9]+$/.exec(alarm)?.[1] ?? '--all';
  return [mailroom, ...consumers].find((entry) => entry.stack === stack) ?? { stack };
}

function named(names: readonly string[]): string {
  if (names.length > NAMED_MAX) return many(names.length, 'alarm');
  return names.length === 1 ? `the alarm ${names[0]}` : `the alarms ${names.join(', ')}`;
}
