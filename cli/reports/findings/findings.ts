import { clipped, sentence } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { time } from '../../terminal/times.ts';
import type { Checked, PartProblem } from '../checks/check.ts';
import { askFirst, whoChanged } from '../checks/problem-kinds.ts';
import type { Acknowledgement } from './acknowledgements.ts';
import { type FindingState, findingCounts, problemState } from './finding-counts.ts';

/** A finding of `status` or `doctor`. */
export interface Finding {
  /** As {@link findingId} makes it. @default none: it cannot be acknowledged */
  readonly id?: string;
  readonly state: FindingState;
  /** Its kind: a kind of problem, or e.g. `dead-letters`. */
  readonly code: string;
  /** The part that it is about: as in {@link PartProblem}, a dead-letter source or `outbox`; `null` for checks that were not made. */
  readonly part: string | null;
  /** As in {@link PartProblem}. */
  readonly resource?: string | undefined;
  /** The number that it reports, e.g. of dead letters; `null` if it has none. */
  readonly count: number | null;
  /** The finding as a sentence, for people. */
  readonly what: string;
  /** The commands to run, in order, at least one: a repair, or what shows the cause. */
  readonly commands: readonly string[];
  /** The operator who knows its cause, and until when, epoch milliseconds: it does not count. @default it is not acknowledged */
  readonly acknowledged?: Pick<Acknowledgement, 'by' | 'until' | 'reason'>;
}

/**
 * The name of a finding, the same for as long as the finding is: its kind, its part and, of a part with several, its resource.
 *
 * @example
 * ```ts
 * findingId({ code: 'dead-letters', part: 'consumer:payments' }); // 'dead-letters/consumer:payments'
 * ```
 */
export function findingId({ code, part, resource }: Pick<Finding, 'code' | 'part' | 'resource'>): string {
  return [code, part, ...(resource === undefined ? [] : [resource])].join('/').replaceAll(' ', '-');
}

/** Completes commands with the options of the run: see `Deployment`. */
export interface CommandLines {
  readonly commandLine: (command: ShellText) => string;
  readonly awsLine: (command: ShellText) => string;
  /** The acknowledgements of findings. @default none */
  readonly acks?: readonly Acknowledgement[];
}

/** The problems that checks found, as findings. */
export function problemFindings(problems: readonly PartProblem[], lines: CommandLines): Finding[] {
  return problems.map((problem) => ({
    state: problemState(problem),
    code: problem.problem,
    part: problem.part,
    resource: problem.resource,
    count: null,
    what: askingText(problem),
    commands: repairCommands(problem, lines),
  }));
}

/** A problem with the question that comes before its repair. */
function askingText(problem: PartProblem): string {
  const ask = askFirst(problem);
  return ask === undefined ? problem.text : `${sentence(problem.text)} ${ask}`;
}

/** Names the role that lacks an action. */
const WHO_ASKS = shell`sts get-caller-identity`;

/** Names the stacks of the region, each with its state. */
const STACK_STATES = shell`cloudformation describe-stacks --query ${'Stacks[].[StackName,StackStatus]'} --output text`;

/** The checks that were not made, as findings: the command shows whose permission is missing, or that a stack is being changed or is gone. */
export function notCheckedFindings({ notChecked }: Checked, lines: CommandLines): Finding[] {
  return notChecked.map(({ needs, parts, why }) => ({
    state: 'look',
    code: 'not-checked',
    part: null,
    count: null,
    what: `not checked: ${parts.join(', ')}; ${why ?? `needs ${needs.join(' and ')}`}`,
    commands: [lines.awsLine(why === undefined ? WHO_ASKS : STACK_STATES)],
  }));
}

/** Problems in a document of `--json`: each with its text and its `commands` as they are printed. */
export function problemsJson(problems: readonly PartProblem[], lines: CommandLines) {
  return problems.map((problem) => ({
    ...{ ...problem, text: askingText(problem) },
    commands: repairCommands(problem, lines),
  }));
}

/**
 * The lines to paste for a problem: its repair, if there is one, the command to run after it, and who changed the part. That comes first
 * for what may be meant, such as a function that was stopped to end double charges.
 */
function repairCommands(problem: PartProblem, lines: CommandLines): string[] {
  const { fix, followUp = [] } = problem;
  const who = whoChanged(problem);
  return (askFirst(problem) !== undefined ? [who, fix, followUp] : [fix, followUp, who])
    .filter((words) => words.length > 0)
    .map((words) => fixLine(words, lines));
}

/** The line to paste for the words of a command. */
export function fixLine([program = '', ...words]: readonly string[], lines: CommandLines): string {
  if (program === 'aws') return lines.awsLine(shell`${words}`);
  const [command, ...others] = words;
  if (command === 'cdk-mailroom') return lines.commandLine(shell`${others}`);
  return `${program} ${shell`${words}`}`;
}

/** The open findings, counted, in colors. */
export function countTexts(findings: readonly Finding[], checked: Pick<Checked, 'notChecked'>): string[] {
  return findingCounts(findings, checked).map(({ is, text }) =>
    is === 'broken' ? paint.red(text) : paint.yellow(text),
  );
}

/**
 * The findings as text, each with the commands to run below it. Adjacent problems with one repair are listed above it. An acknowledged
 * finding is dimmed, and keeps its commands: its cause is still there.
 */
export function findingLines(findings: readonly Finding[]): string[] {
  return findings.flatMap(({ id, state, what: said, commands, acknowledged }, index) => {
    const what = id === undefined ? said : `${said} ${paint.dim(`[${id}]`)}`;
    const after = findings[index + 1];
    const isShared =
      acknowledged === undefined &&
      after?.acknowledged === undefined &&
      after?.state === 'broken' &&
      after.commands.join() === commands.join();
    const bullet = state === 'broken' ? paint.red('•') : paint.yellow('•');
    return [
      acknowledged === undefined ? prose(`  ${bullet} ${what}`, 4) : prose(paint.dim(`  • ${what}`), 4),
      ...(acknowledged === undefined ? [] : [acknowledgedLine(acknowledged)]),
      ...(isShared || commands.length === 0 ? [] : [`    ${paint.dim(commands.join('\n    '))}`]),
    ];
  });
}

function acknowledgedLine({ by, until, reason }: NonNullable<Finding['acknowledged']>): string {
  const who = prose(`acknowledged by ${clipped(by)} until ${time(until)}: ${clipped(reason)}`, 4, 76);
  return `    ${paint.dim(who)}`;
}
