import { clipped, many, table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { Checked, PartProblem } from '../checks/check.ts';
import { heartbeatText } from './heartbeat-text.ts';
import {
  type CommandLines,
  isOpen,
  problemsJson,
  type RepairableProblem,
  repairCommands,
  type StatusFinding,
  stateWith,
  statusFindings,
} from './status-findings.ts';
import type { StatusReport } from './status-report.ts';

/** The status as text: the problems with the command to run first for each, then the tables. */
export function statusText(report: StatusReport, lines: CommandLines): string {
  const { stack, region, at } = report;
  const findings = statusFindings(report, lines);
  const known = findings.length - findings.filter(isOpen).length;
  const knownText = known === 0 ? '' : `, ${known} acknowledged`;
  const head = `${paint.bold(verdictOf(report, findings.filter(isOpen)))}${knownText}  ${stack}, ${region}, ${time(at)}`;
  const bullets = findings.flatMap(({ state, what, commands, acknowledged }, index) => {
    if (acknowledged !== undefined) return acknowledgedText(what, acknowledged);
    const next = commandsText(commands);
    // Problems with one repair stand together above it.
    const after = findings[index + 1];
    const isShared = after?.state === 'broken' && commandsText(after.commands) === next;
    return bullet(
      { what, ...(next === '' || isShared ? {} : { next }) },
      state === 'broken' ? paint.red : paint.yellow,
    );
  });
  const tables = [...heartbeatText(report), outboxText(report), consumersText(report), sourcesText(report)];
  return [[prose(head), ...(findings.length === 0 ? unseenText(lines) : bullets)].join('\n'), ...tables].join(
    '\n\n',
  );
}

function acknowledgedText(
  what: string,
  { by, until, reason }: NonNullable<StatusFinding['acknowledged']>,
): string[] {
  const next = paint.dim(
    prose(`acknowledged by ${clipped(by)} until ${time(until)}: ${clipped(reason)}`, 4, 76),
  );
  return [prose(paint.dim(`  • ${what}`), 4), `    ${next}`];
}

/** The commands for the checks that the status does not make. */
function unseenText({ commandLine }: CommandLines): string[] {
  return [
    `  ${paint.dim(`Not checked: lost events. Run ${commandLine(shell`audit`)}`)}`,
    `  ${paint.dim(`Not checked: alarms, roles and limits. Run ${commandLine(shell`doctor`)}`)}`,
  ];
}

function verdictOf({ wiring }: StatusReport, findings: readonly StatusFinding[]): string {
  const problems = findings.filter(({ state }) => state === 'broken').length;
  const unchecked = wiring.notChecked.length;
  const looks = findings.length - problems - unchecked;
  const found = [
    ...(problems > 0 ? [paint.red(many(problems, 'problem'))] : []),
    ...(looks > 0 ? [paint.yellow(`${looks} to look at`)] : []),
    ...(unchecked > 0 ? [paint.yellow('not everything was checked')] : []),
  ];
  return found.length === 0 ? paint.green('nothing visible is broken') : found.join(', ');
}

/** A finding, and the command to run first. */
export function bullet(
  { what, next }: { readonly what: string; readonly next?: string },
  colour: (text: string) => string,
): string[] {
  return [prose(`  ${colour('•')} ${what}`, 4), ...(next === undefined ? [] : [`    ${paint.dim(next)}`])];
}

/** The lines to paste for a problem, below its text. */
export function repairLines(problem: RepairableProblem, lines: CommandLines): string {
  return commandsText(repairCommands(problem, lines));
}

function commandsText(commands: readonly string[]): string {
  return commands.join('\n    ');
}

/** The document of `mailroom status --json`. */
interface StatusJson extends Omit<StatusReport, 'wiring'> {
  readonly wiring: Omit<Checked, 'problems'> & {
    readonly problems: readonly (PartProblem & { readonly commands: readonly string[] })[];
  };
  readonly findings: readonly StatusFinding[];
}

/** The document of `mailroom status --json`: the report, and the findings that the text shows. */
export function statusJson(report: StatusReport, lines: CommandLines): StatusJson {
  const { wiring } = report;
  const findings = statusFindings(report, lines);
  const state = stateWith(report, findings);
  return {
    ...report,
    state,
    ok: state === 'ok',
    wiring: { ...wiring, problems: problemsJson(wiring.problems, lines) },
    findings,
  };
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
    ([name, { queued, inFlight, oldestUnprocessedMs, failed, rejected, deadLetters }]) => [
      name,
      queued,
      inFlight,
      oldestUnprocessedMs === 0 ? '-' : duration(oldestUnprocessedMs),
      counted(failed, atLeast.includes(`consumers.${name}.failed`)),
      alarming(counted(rejected, atLeast.includes(`consumers.${name}.rejected`)), rejected),
      alarming(String(deadLetters), deadLetters),
    ],
  );
  if (rows.length === 0) return paint.dim('No consumers.');
  return table(['consumer', 'queued', 'in flight', 'oldest', 'failed', 'rejected', 'dead letters'], rows);
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
