import { MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { many } from '../../terminal/output.ts';
import { hours, type ShellText, shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import { isPause, type PartProblem, STUCK_MS } from '../checks/check.ts';
import { whoChanged } from '../checks/problem-kinds.ts';
import { type Acknowledgement, ackOf } from './acknowledgements.ts';
import type { Warning } from './consumer-warnings.ts';
import { heartbeatFindings } from './heartbeat-text.ts';
import type { StatusReport } from './status-report.ts';

/** A finding of the status. */
export interface StatusFinding {
  /** `broken`: action is required. `look`: a consumer may be in trouble, or something was not checked. */
  readonly state: 'broken' | 'look';
  /** The finding as a sentence, for people. */
  readonly what: string;
  /** The commands to run, in order; none if an action of the caller's role is missing. */
  readonly commands: readonly string[];
  /** The operator who knows its cause, and until when, epoch milliseconds: it does not count. @default it is not acknowledged */
  readonly acknowledged?: Pick<Acknowledgement, 'by' | 'until' | 'reason'>;
}

/** Completes commands with the options of the run: see `Deployment`. */
export interface CommandLines {
  readonly commandLine: (command: ShellText) => string;
  readonly awsLine: (command: ShellText) => string;
  /** The acknowledgements of findings. @default none */
  readonly acks?: readonly Acknowledgement[];
}

/**
 * The findings of a status, the broken parts first and the acknowledged ones last: what `mailroom status` prints, and what its JSON document holds.
 *
 * @example
 * ```ts
 * const broken = statusFindings(report, deployment).filter(({ state }) => state === 'broken');
 * ```
 */
export function statusFindings(report: StatusReport, lines: CommandLines): readonly StatusFinding[] {
  const findings = findingsOf(report, lines).map((finding): StatusFinding => {
    const ack = ackOf(finding.what, lines.acks ?? [], report.at);
    if (ack === undefined) return finding;
    const { by, until, reason } = ack;
    return { ...finding, acknowledged: { by, until, reason } };
  });
  return [...findings.filter(isOpen), ...findings.filter((finding) => !isOpen(finding))];
}

/** True for a finding that is not acknowledged. */
export function isOpen({ acknowledged }: StatusFinding): boolean {
  return acknowledged === undefined;
}

/** The state of a status whose findings are known: one in which every finding is acknowledged is `ok`. */
export function stateWith(report: StatusReport, findings: readonly StatusFinding[]): StatusReport['state'] {
  if (findings.every(isOpen)) return report.state;
  const open = findings.filter(isOpen);
  if (open.some(({ state }) => state === 'broken')) return 'broken';
  return open.length > 0 ? 'look' : 'ok';
}

function findingsOf(report: StatusReport, lines: CommandLines): readonly StatusFinding[] {
  const { problems, notChecked } = report.wiring;
  const found = (state: StatusFinding['state'], findings: readonly Finding[]): StatusFinding[] =>
    findings.map(({ what, command, next }) => ({
      state,
      what,
      commands: [command, next ?? []].flat().map((one) => lines.commandLine(one)),
    }));
  return [
    ...problems.map(
      (problem): StatusFinding => ({
        state: isPause(problem) ? 'look' : 'broken',
        what: problem.text,
        commands: repairCommands(problem, lines),
      }),
    ),
    ...found('broken', [
      ...outboxFindings(report),
      ...deadLetterFindings(report),
      ...consumerFindings(report),
    ]),
    ...found('look', lookFindings(report)),
    ...heartbeatFindings(report, lines).map(
      ({ what, next }): StatusFinding => ({ state: 'look', what, commands: [next] }),
    ),
    ...notChecked.map(
      ({ needs, parts }): StatusFinding => ({
        state: 'look',
        what: `not checked: ${parts.join(', ')}; needs ${needs.join(' and ')}`,
        commands: [],
      }),
    ),
  ];
}

/** The lines to paste for a problem: its repair, if there is one, the command to run after it, and who changed the part. */
export function repairCommands(problem: RepairableProblem, lines: CommandLines): string[] {
  const { fix, followUp = [] } = problem;
  return [fix, followUp, whoChanged(problem)]
    .filter((words) => words.length > 0)
    .map((words) => fixLine(words, lines));
}

/** The members of a problem from which its commands follow. */
export type RepairableProblem = Pick<PartProblem, 'problem' | 'fix' | 'followUp'>;

/** Problems in a document of `--json`: each with its `commands` as the text prints them. */
export function problemsJson(problems: readonly PartProblem[], lines: CommandLines) {
  return problems.map((problem) => ({ ...problem, commands: repairCommands(problem, lines) }));
}

/** The line to paste for the words of a command. */
export function fixLine([program = '', ...words]: readonly string[], lines: CommandLines): string {
  if (program === 'aws') return lines.awsLine(shell`${words}`);
  const [command, ...others] = words;
  if (command === 'cdk-mailroom') return lines.commandLine(shell`${others}`);
  return `${program} ${shell`${words}`}`;
}

const LOOKS: Readonly<Record<Warning['look'], (look: Warning) => Finding>> = {
  failing: ({ consumer, messages, forMs }) => ({
    what: `${consumer} fails at every message: ${messages} failed, and it processed none of the events of the last ${duration(forMs)}`,
    command: shell`messages list --failed --by cause --consumer ${consumer}`,
  }),
  stalled: ({ consumer, messages, forMs }) => ({
    what:
      `${consumer} claims no messages: ${many(messages, 'message')} in its queue, none in flight, and events published ${duration(forMs)} ago ` +
      'are unclaimed. Does its function start?',
    command: shell`audit --since ${hours(forMs)}`,
  }),
  crashing: ({ consumer, messages, forMs }) => ({
    what:
      `${consumer} finishes no messages: ${many(messages, 'message')} in flight, none waiting, and no attempt at events published ` +
      `${duration(forMs)} ago ended. Its function crashes, or cannot reach the table: its log shows why`,
    command: shell`describe ${consumer}`,
  }),
  missing: ({ consumer, messages, forMs, conclusiveAt }) => ({
    what:
      `${many(messages, 'event')} of a sample of the last hour did not reach ${consumer}, published up to ${duration(forMs)} ago: ` +
      `lost, unless still in delivery. An audit is conclusive ${conclusiveAt == null ? 'once its queue is empty' : `from ${time(conclusiveAt)} on`}`,
    command: shell`audit --since ${hours(forMs + MINUTE_MS)}`,
  }),
  behind: ({ consumer, messages, forMs }) => ({
    what: `${consumer} is behind: ${many(messages, 'message')} in its queue, and events published ${duration(forMs)} ago are unclaimed`,
    command: shell`status --watch`,
  }),
};

function lookFindings({ looks }: StatusReport): Finding[] {
  return looks.map((look) => LOOKS[look.look](look));
}

/** A fact, and the command to run first. */
interface Finding {
  readonly what: string;
  readonly command: ShellText;
  /** The command that shows what the first does not. */
  readonly next?: ShellText;
}

function outboxFindings({ outbox, wiring }: StatusReport): Finding[] {
  const findings: Finding[] = [];
  const isSweepExplained = wiring.problems.some(({ part, level }) => part === 'sweep' && level === 'flow');
  if (outbox.oldestPendingMs > STUCK_MS) {
    const swept = outbox.sweptAgoMs === null ? 'never' : `${duration(outbox.sweptAgoMs)} ago`;
    findings.push({
      what: `${many(outbox.pending, 'event')} pending, the oldest for ${duration(outbox.oldestPendingMs)}; last sweep: ${swept}`,
      command: shell`sweep --since ${hours(outbox.oldestCommittedMs)}`,
    });
  } else if (outbox.unsweptMs > STUCK_MS && !isSweepExplained) {
    findings.push({
      what: `${unsweptText(outbox)}: events that the stream relay misses wait, and nothing watches the dead letters`,
      command: shell`sweep --since 1h`,
    });
  }
  if (outbox.firstUndeclared !== null) {
    findings.push({
      what: `${many(outbox.undeclared, 'event')} pending with a source that no producer of this Mailroom declares: the relay does not publish them. If they are genuine, add the source to \`publishes\` and deploy; if not, they were forged`,
      command: shell`why ${outbox.firstUndeclared} --payload`,
    });
  }
  if (outbox.unreadable > 0) {
    findings.push({
      what: `${many(outbox.unreadable, 'row')} in the outbox cannot be read and may never be published`,
      command: shell`audit --since 24h`,
    });
  }
  return findings;
}

function deadLetterFindings({ deadLetterSources, at }: StatusReport): Finding[] {
  const held = deadLetterSources.filter(({ count }) => count > 0);
  return held.map(({ source, count, firstExpiryAt }) => {
    const what = source === 'dead' ? many(count, 'DEAD event') : `${many(count, 'dead letter')} in ${source}`;
    const expiry =
      firstExpiryAt === null ? '' : `; the first is permanently deleted in ${duration(firstExpiryAt - at)}`;
    return { what: `${what}${expiry}`, command: shell`dlq list ${source} --by cause` };
  });
}

function consumerFindings({ consumers, deadLetterSources }: StatusReport): Finding[] {
  const hasDeadLetters = (name: string) =>
    deadLetterSources.some(({ source, count }) => source === `consumer:${name}` && count > 0);
  return Object.entries(consumers).flatMap(([name, { rejected, unreadable }]) => [
    ...(rejected > 0 && !hasDeadLetters(name)
      ? [
          {
            what: `${many(rejected, 'message')} rejected by ${name}, without a dead letter: it is on its way or already deleted`,
            command: shell`messages list --rejected --consumer ${name}`,
          },
        ]
      : []),
    ...(unreadable > 0
      ? [
          {
            what: `${many(unreadable, 'row')} of ${name} cannot be read`,
            command: shell`messages list --consumer ${name}`,
            next: shell`audit --since 24h`,
          },
        ]
      : []),
  ]);
}

function unsweptText({ sweptAgoMs, unsweptMs }: StatusReport['outbox']): string {
  return sweptAgoMs === null
    ? `the sweep has never completed a pass, and the table was created ${duration(unsweptMs)} ago`
    : `the sweep began its last complete pass ${duration(sweptAgoMs)} ago`;
}
