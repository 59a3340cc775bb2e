import { duration, many, table, time } from '../frame/output.ts';
import { paint } from '../frame/paint.ts';
import { prose } from '../frame/prose.ts';
import { hours, type ShellText, shell } from '../frame/shell.ts';
import type { Look } from './consumer-looks.ts';
import { heartbeatFindings, heartbeatText } from './heartbeat-text.ts';
import type { PartProblem } from './part-checks.ts';
import { STUCK_MS, type StatusReport } from './status-report.ts';

/** The status as text: the problems with the command to run first for each, then the tables. */
export function statusText(report: StatusReport, lines: CommandLines): string {
  const { stack, region, at } = report;
  const problems = [
    ...wiringFindings(report, lines),
    ...[...outboxFindings(report), ...deadLetterFindings(report), ...consumerFindings(report)].map(
      ({ what, command }) => ({ what, next: lines.commandLine(command) }),
    ),
  ];
  const looks = [
    ...lookFindings(report).map(({ what, command }) => ({ what, next: lines.commandLine(command) })),
    ...heartbeatFindings(report, lines),
  ];
  const unchecked = report.wiring.notChecked.map(({ needs, parts }) => ({
    what: `not checked: ${parts.join(', ')}; needs ${needs.join(' and ')}`,
  }));
  const head = `${paint.bold(verdictOf(problems.length, looks.length, unchecked.length))}  ${stack}, ${region}, ${time(at)}`;
  const bullets = [
    // Problems with one repair stand together above it.
    ...problems.flatMap(({ what, next }, index) =>
      bullet({ what, ...(problems[index + 1]?.next === next ? {} : { next }) }, paint.red),
    ),
    ...[...looks, ...unchecked].flatMap((finding) => bullet(finding, paint.yellow)),
  ];
  const isWell = problems.length + looks.length + unchecked.length === 0;
  const tables = [...heartbeatText(report), outboxText(report), consumersText(report), sourcesText(report)];
  return [[prose(head), ...(isWell ? unseenText(lines) : bullets)].join('\n'), ...tables].join('\n\n');
}

/** Completes commands with the options of the run: see `Session`. */
export interface CommandLines {
  readonly commandLine: (command: ShellText) => string;
  readonly awsLine: (command: ShellText) => string;
}

/** The commands for the checks that the status does not make. */
function unseenText({ commandLine }: CommandLines): string[] {
  return [
    `  ${paint.dim(`To check for lost events: ${commandLine(shell`audit`)}`)}`,
    `  ${paint.dim(`To check the settings: ${commandLine(shell`doctor`)}`)}`,
  ];
}

function verdictOf(problems: number, looks: number, unchecked: number): string {
  const found = [
    ...(problems > 0 ? [paint.red(many(problems, 'problem'))] : []),
    ...(looks > 0 ? [paint.yellow(`${looks} to look at`)] : []),
    ...(unchecked > 0 ? [paint.yellow('not everything was checked')] : []),
  ];
  return found.length === 0 ? paint.green('all is well') : found.join(', ');
}

/** A finding, and the command to run first. */
export function bullet(
  { what, next }: { readonly what: string; readonly next?: string },
  colour: (text: string) => string,
): string[] {
  return [prose(`  ${colour('•')} ${what}`, 4), ...(next === undefined ? [] : [`    ${paint.dim(next)}`])];
}

function wiringFindings({ wiring }: StatusReport, lines: CommandLines) {
  return wiring.problems.map((problem) => ({ what: problem.text, next: repairLines(problem, lines) }));
}

/** The lines to paste for a problem, below its text. */
export function repairLines(problem: Pick<PartProblem, 'fix' | 'followUp'>, lines: CommandLines): string {
  return repairCommands(problem, lines).join('\n    ');
}

/** The lines to paste for a problem: its repair, if there is one, and the command to run after it. */
function repairCommands(
  { fix, followUp = [] }: Pick<PartProblem, 'fix' | 'followUp'>,
  lines: CommandLines,
): string[] {
  return [fix, followUp].filter((words) => words.length > 0).map((words) => fixLine(words, lines));
}

/** Problems in a document of `--json`: each with its `commands` as the text prints them. */
export function problemsJson<Problem extends PartProblem>(problems: readonly Problem[], lines: CommandLines) {
  return problems.map((problem) => ({ ...problem, commands: repairCommands(problem, lines) }));
}

/** The document of `mailroom status --json`. */
export function statusJson(report: StatusReport, lines: CommandLines): object {
  const { wiring } = report;
  return { ...report, wiring: { ...wiring, problems: problemsJson(wiring.problems, lines) } };
}

/** The line to paste for the words of a command. */
export function fixLine([program = '', ...words]: readonly string[], lines: CommandLines): string {
  if (program === 'aws') return lines.awsLine(shell`${words}`);
  const [command, ...others] = words;
  if (command === 'mailroom') return lines.commandLine(shell`${others}`);
  return `${program} ${shell`${words}`}`;
}

const LOOKS: Readonly<Record<Look['look'], (look: Look) => Finding>> = {
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
  behind: ({ consumer, messages, forMs }) => ({
    what: `${consumer} is behind: ${many(messages, 'message')} in its queue, and events published ${duration(forMs)} ago are unclaimed`,
    command: shell`status --watch`,
  }),
};

function lookFindings({ looks }: StatusReport): Finding[] {
  return looks.map((look) => LOOKS[look.look](look));
}

/** A problem, and the command to run first. */
interface Finding {
  readonly what: string;
  readonly command: ShellText;
}

function outboxFindings({ outbox, wiring }: StatusReport): Finding[] {
  const findings: Finding[] = [];
  const isSweepExplained = wiring.problems.some(({ part }) => part === 'sweep');
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
  if (outbox.unreadable > 0) {
    findings.push({
      what: `${many(outbox.unreadable, 'PENDING row')} in the outbox cannot be read and may never be published`,
      command: shell`audit --since 24h`,
    });
  }
  return findings;
}

function deadLetterFindings({ deadLetterSources, gone, at }: StatusReport): Finding[] {
  const held = deadLetterSources.filter(({ count }) => count > 0);
  return [
    ...gone.map((url) => ({ what: `the queue ${url} does not exist`, command: shell`audit --since 1h` })),
    ...held.map(({ source, count, firstExpiryAt }) => {
      const what =
        source === 'dead' ? many(count, 'DEAD event') : `${many(count, 'dead letter')} in ${source}`;
      const expiry =
        firstExpiryAt === null ? '' : `; the first is permanently deleted in ${duration(firstExpiryAt - at)}`;
      return { what: `${what}${expiry}`, command: shell`dlq list ${source} --by cause` };
    }),
  ];
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

function outboxText({ outbox, atLeast }: StatusReport): string {
  const { pending, oldestPendingMs, dead, sweptAgoMs } = outbox;
  const row = [
    '',
    counted(pending, atLeast.includes('outbox.pending')),
    pending === 0 ? '-' : duration(oldestPendingMs),
    alarming(counted(dead, atLeast.includes('outbox.dead')), dead),
    sweptAgoMs === null ? 'never' : `${duration(sweptAgoMs)} ago`,
  ];
  return table(['outbox', 'pending', 'oldest', 'dead', 'swept'], [row]);
}

function consumersText({ consumers, atLeast }: StatusReport): string {
  const rows = Object.entries(consumers).map(
    ([name, { queued, inFlight, failed, rejected, deadLetters }]) => [
      name,
      queued,
      inFlight,
      counted(failed, atLeast.includes(`consumers.${name}.failed`)),
      alarming(counted(rejected, atLeast.includes(`consumers.${name}.rejected`)), rejected),
      alarming(String(deadLetters), deadLetters),
    ],
  );
  if (rows.length === 0) return paint.dim('No consumers.');
  return table(['consumer', 'queued', 'in flight', 'failed', 'rejected', 'dead letters'], rows);
}

function sourcesText({ deadLetterSources, at }: StatusReport): string {
  const held = deadLetterSources.filter(({ count }) => count > 0);
  if (held.length === 0) return paint.dim('No dead letters.');
  const rows = held.map(({ source, count, oldestAt, firstExpiryAt }) => [
    source,
    alarming(String(count), count),
    oldestAt === null ? '-' : `${duration(at - oldestAt)} ago`,
    firstExpiryAt === null ? (source === 'dead' ? 'never' : '-') : `in ${duration(firstExpiryAt - at)}`,
  ]);
  return table(['dead letters in', 'count', 'oldest', 'first expiry'], rows);
}

function alarming(text: string, count: number): string {
  return count > 0 ? paint.red(text) : text;
}

/** A count, with `+` if it is a lower bound. */
function counted(count: number, more: boolean): string {
  return more ? `${count}+` : String(count);
}
