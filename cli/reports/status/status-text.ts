import { clipped, table } from '../../terminal/output.ts';
import { paint } from '../../terminal/paint.ts';
import { prose } from '../../terminal/prose.ts';
import { shell } from '../../terminal/shell.ts';
import { duration, time } from '../../terminal/times.ts';
import type { Checked } from '../checks/check.ts';
import { isOpen, NOTHING_BROKEN } from '../findings/finding-counts.ts';
import {
  type CommandLines,
  countTexts,
  type Finding,
  findingLines,
  problemsJson,
} from '../findings/findings.ts';
import { deadLettersOf } from './consumer-dead-letters.ts';
import { heartbeatText } from './heartbeat-status.ts';
import { stateOf, statusFindings } from './status-findings.ts';
import type { StatusReport } from './status-report.ts';

/**
 * The status as text: the problems with the command to run first for each, then the tables.
 *
 * @param others - the other Mailrooms on the bus that have findings
 */
export function statusText(
  report: StatusReport,
  lines: CommandLines,
  others: readonly string[] = [],
): string {
  const { stack, region, at, wiring, heartbeat } = report;
  const findings = statusFindings(report, lines);
  const counts = countTexts(findings, wiring);
  const own = counts.length === 0 ? paint.green(NOTHING_BROKEN) : counts.join(', ');
  const beside = others.length === 0 ? '' : ` here; findings at ${others.map(clipped).join(', ')}, below`;
  const verdict = `${own}${beside && paint.yellow(beside)}`;
  const known = findings.length - findings.filter(isOpen).length;
  const knownText = known === 0 ? '' : `, ${known} acknowledged`;
  const head = prose(`${paint.bold(verdict)}${knownText}  ${stack}, ${region}, ${time(at)}`);
  return [
    [head, ...(findings.length === 0 ? unseenText(lines) : findingLines(findings))].join('\n'),
    ...heartbeatText(heartbeat),
    ...[
      outboxText(report),
      scheduledText(report),
      consumersText(report),
      ...staleText(report),
      ...limitsText(report),
      ...sourceConsumersText(report),
      sourcesText(report),
    ],
  ].join('\n\n');
}

/** The commands for the checks that the status does not make. */
function unseenText({ commandLine }: CommandLines): string[] {
  return [
    `  ${paint.dim(`Not checked: lost events. Run ${commandLine(shell`audit`)}`)}`,
    `  ${paint.dim(`Not checked: alarms, roles and limits. Run ${commandLine(shell`doctor`)}`)}`,
  ];
}

/** The document of `mailroom status --json`. */
interface StatusJson extends Omit<StatusReport, 'wiring'> {
  readonly wiring: Omit<Checked, 'problems'> & {
    readonly problems: ReturnType<typeof problemsJson>;
  };
  readonly findings: readonly Finding[];
}

/** The document of `mailroom status --json`: the report, and the findings that the text shows. */
export function statusJson(report: StatusReport, lines: CommandLines): StatusJson {
  const { wiring } = report;
  const findings = statusFindings(report, lines);
  const state = stateOf(findings);
  return {
    ...report,
    state,
    ok: state === 'ok',
    wiring: { ...wiring, problems: problemsJson(wiring.problems, lines) },
    findings,
  };
}

function outboxText({ outbox, atLeast }: StatusReport): string {
  const { pending, oldestPendingMs, inDatabase, dead, sweptAgoMs } = outbox;
  const row = [
    '',
    counted(pending, atLeast.includes('outbox.pending')),
    pending === 0 ? '-' : duration(Math.max(oldestPendingMs, inDatabase.oldestPendingMs)),
    alarming(counted(dead, atLeast.includes('outbox.dead')), dead),
    sweptAgoMs === null ? 'never' : `${duration(sweptAgoMs)} ago`,
  ];
  return table(['outbox', 'pending', 'oldest', 'dead', 'swept'], [row]);
}

function scheduledText({ outbox: { scheduled }, atLeast, at }: StatusReport): string {
  const { withinMs, due, nextDueAt, overdue } = scheduled;
  const within = duration(withinMs);
  if (due + overdue === 0) return paint.dim(`No events scheduled within ${within}.`);
  const row = [
    '',
    counted(due, atLeast.includes('outbox.scheduled.due')),
    nextDueAt === null ? '-' : `in ${duration(nextDueAt - at)} (${time(nextDueAt)})`,
    alarming(String(overdue), overdue),
  ];
  return table(['scheduled', `within ${within}`, 'next due', 'overdue'], [row]);
}

function consumersText({ consumers, deadLetterSources, atLeast }: StatusReport): string {
  const hasBridges = Object.values(consumers).some(({ forwardsTo }) => forwardsTo !== null);
  const rows = Object.entries(consumers).map(
    ([name, { queued, inFlight, oldestUnprocessedMs, failed, rejected, forwardsTo }]) => [
      name,
      queued,
      inFlight,
      oldestUnprocessedMs === 0 ? '-' : duration(oldestUnprocessedMs),
      counted(failed, atLeast.includes(`consumers.${name}.failed`)),
      alarming(counted(rejected, atLeast.includes(`consumers.${name}.rejected`)), rejected),
      alarmingCount(deadLettersOf(deadLetterSources, name)),
      ...(hasBridges ? [forwardsTo ?? '-'] : []),
    ],
  );
  if (rows.length === 0) return paint.dim('No consumers.');
  const head = ['consumer', 'queued', 'in flight', 'oldest', 'failed', 'rejected', 'dead letters'];
  return table([...head, ...(hasBridges ? ['forwards to'] : [])], rows);
}

function staleText({ consumers }: StatusReport): string[] {
  const rows = Object.entries(consumers).flatMap(([name, { stale }]) => (stale > 0 ? [[name, stale]] : []));
  return rows.length === 0 ? [] : [table(['discarded as stale', 'sampled events of the last hour'], rows)];
}

/** The most keys that are shown. */
const KEYS_MAX = 10;

function limitsText({ limits, at }: StatusReport): string[] {
  const rows = limits
    .slice(0, KEYS_MAX)
    .map(({ consumer, limit, key, messages, lastAt }) => [
      clipped(limit),
      clipped(key),
      consumer,
      messages,
      lastAt === null ? '-' : `in ${duration(lastAt - at)}`,
    ]);
  if (rows.length === 0) return [];
  const more = limits.length > KEYS_MAX ? `\n${paint.dim(`And ${limits.length - KEYS_MAX} more keys.`)}` : '';
  return [`${table(['waits for limit', 'key', 'consumer', 'messages', 'last slot'], rows)}${more}`];
}

function sourceConsumersText({ sourceConsumers, at }: StatusReport): string[] {
  const rows = Object.entries(sourceConsumers).map(([name, { from, failed, rejected, seenAt }]) => [
    name,
    from,
    failed,
    alarming(String(rejected), rejected),
    `${duration(at - seenAt)} ago`,
  ]);
  return rows.length === 0
    ? []
    : [table(['consumer of another source', 'source', 'failed', 'rejected', 'seen'], rows)];
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

function alarmingCount(count: number): string {
  return alarming(String(count), count);
}

function alarming(text: string, count: number): string {
  return count > 0 ? paint.red(text) : text;
}

/** A count, with `+` if it is a lower bound. */
function counted(count: number, more: boolean): string {
  return more ? `${count}+` : String(count);
}
