import { DELIVERY_GRACE_MS } from '../../../lambdas/runtime/base/patience.ts';
import { HOUR_MS, MINUTE_MS } from '../../../lambdas/runtime/base/units.ts';
import { createAudit } from '../../../lambdas/runtime/operations/audit/audit.ts';
import { cloudWatchQueueAges } from '../../../lambdas/runtime/operations/audit/audit-queue-age.ts';
import type { AuditReport } from '../../../lambdas/runtime/operations/audit/audit-report.ts';
import { eventBridgeRules } from '../../../lambdas/runtime/operations/audit/eventbridge-rules.ts';
import { readEntryVersions } from '../../../lambdas/runtime/operations/ssm-directory.ts';
import { eventIdTime, minuteOf } from '../../../lambdas/runtime/store/event-id.ts';
import type { Deployment } from '../../deployment/deployment.ts';
import { minutesOf, PARTITIONS_AT_ONCE } from '../../deployment/rows-reader.ts';
import { BEHIND_MAX_MS } from '../../terminal/aws-clock.ts';
import { applyWords, type ChangeOptions } from '../../terminal/change.ts';
import { EXIT, type ExitCode } from '../../terminal/io.ts';
import { many } from '../../terminal/output.ts';
import { type ShellText, shell } from '../../terminal/shell.ts';
import { reportOf } from '../../terminal/terminal.ts';
import { ruleFix } from '../checks/rule-checks.ts';
import { fixLine } from '../findings/findings.ts';
import { type AuditResult, auditFindings, auditJson, auditText } from './audit-text.ts';
import type { AuditRepair } from './repair-text.ts';

export interface AuditOptions extends ChangeOptions {
  /** Milliseconds. @default 1 hour */
  readonly since?: number;
  /** Milliseconds. @default 5 minutes */
  readonly grace?: number;
  readonly earlier?: boolean;
  readonly by?: string;
  readonly repair?: boolean;
  /** An event whose minute is also searched for changed rows. */
  readonly event?: string;
}

/** The default of `--since`. */
export const SINCE_MS = HOUR_MS;

/** Rows that are dated in the future are looked for up to this far ahead of now. */
const AHEAD_MS = HOUR_MS;

/** `mailroom audit` without a repair. */
export async function audit(deployment: Deployment, options: AuditOptions) {
  const result = auditResult(await readAudit(deployment, options), options);
  return reportOf(
    auditJson(result),
    result,
    (seen) => auditedText(deployment, seen, options),
    auditExit(deployment, result),
  );
}

/** Audits the events of a range. */
export async function readAudit(
  deployment: Deployment,
  { since = SINCE_MS, grace = DELIVERY_GRACE_MS, earlier, event }: AuditOptions,
): Promise<AuditReport> {
  const { terminal, clients, directory, table, stored, queues, clock, neighbors = [] } = deployment;
  const claims = await deployment.claims?.();
  const until = clock.now() + BEHIND_MAX_MS; // to include the newest events
  return createAudit({
    table,
    stored,
    directory,
    neighbors,
    claims,
    broken: deployment.broken,
    readsDatabase: deployment.database?.engine,
    listed: stored.deadLetters,
    queues,
    partitionsAtOnce: PARTITIONS_AT_ONCE,
    rules: eventBridgeRules(clients.events),
    ages: cloudWatchQueueAges({ cloudwatch: clients.cloudwatch, sqs: clients.sqs, clock }),
    versions: ({ name, elsewhere }) =>
      readEntryVersions(clients.ssm, elsewhere?.table ?? directory.mailroom.table, elsewhere?.name ?? name),
    clock,
  }).run({
    since: until - since,
    until,
    graceMs: grace,
    earlier,
    ahead: minutesAhead(until, event),
    signal: terminal.signal,
    onProgress: ({ minute, events }) =>
      terminal.progress(`Read to ${minute.replace('T', ' ')}Z: ${many(events, 'event')}`),
  });
}

/** The minutes after an audit's range in which a row may be dated in the future. */
function minutesAhead(until: number, event: string | undefined): string[] {
  const minutes = minutesOf(until + MINUTE_MS, until + AHEAD_MS);
  return [...new Set([...minutes, ...(event === undefined ? [] : [minuteOf(eventIdTime(event))])])];
}

/** The result of the command. @param repair - with `--repair` */
export function auditResult(found: AuditReport, { by }: AuditOptions, repair?: AuditRepair): AuditResult {
  const [repaired, repairedRows] =
    repair?.applied === true ? [repair.events.length, repair.rows.repaired.length] : [0, 0];
  return { report: { ...found, repaired, repairedRows }, byDay: by === 'day', repair };
}

/** The exit code of the command. */
export function auditExit({ terminal }: Pick<Deployment, 'terminal'>, { report }: AuditResult): ExitCode {
  if (terminal.signal.aborted) return EXIT.stopped;
  return auditFindings(report).length === 0 ? EXIT.ok : EXIT.attention;
}

/** The result as text, with the commands that come next. */
export function auditedText(deployment: Deployment, result: AuditResult, options: AuditOptions): string {
  const { report } = result;
  const { grace = DELIVERY_GRACE_MS } = options;
  const line = (command: ShellText) => deployment.commandLine(command);
  return auditText(result, {
    repair: line(againCommand(options, report, false)),
    apply: line(againCommand(options, report, true)),
    doctor: line(shell`doctor`),
    restore: restoreLines(deployment, report),
    recheck: {
      at: report.until - BEHIND_MAX_MS + grace,
      command: line(shell`audit ${rangeWords(options, grace)}`),
    },
  });
}

/** The commands that restore the drifted resources, as `status` and `doctor` print them. */
function restoreLines(deployment: Deployment, { drift }: AuditReport): string[] {
  const { mailroom, consumers } = deployment.directory;
  const fixes = drift.map((found) => {
    const entry = consumers.find(({ name }) => name === found.consumer) ?? mailroom;
    return fixLine(ruleFix(found.problem, found.rule, mailroom.bus, entry, found.targets), deployment);
  });
  return [...new Set(fixes)];
}

/** The least that the range grows for a command that is worth running only once inconclusive events can be judged. */
const CONCLUSIVE_WAIT_MS = 3_600_000;

/**
 * The command that plans or applies a repair of the same events. Its range is longer by 10 minutes, the time until it is typed,
 * and if events are inconclusive, by the time until they can be judged.
 */
function againCommand(
  options: AuditOptions,
  { until, inconclusive }: AuditReport,
  apply: boolean,
): ShellText {
  const certainAt = inconclusive.map(({ conclusiveAt }) =>
    Math.max((conclusiveAt ?? 0) - until, CONCLUSIVE_WAIT_MS),
  );
  const waitMs = apply ? 0 : Math.max(0, ...certainAt);
  return shell`audit ${[
    ...rangeWords(options, waitMs),
    '--repair',
    ...(apply ? applyWords({ reason: options.reason }) : []),
  ]}`;
}

/** The options of an audit that covers the same events if it is typed within 10 minutes after a wait. */
function rangeWords(
  { since = SINCE_MS, grace = DELIVERY_GRACE_MS, earlier, event }: AuditOptions,
  waitMs: number,
): string[] {
  return [
    '--since',
    `${Math.ceil((since + waitMs) / 60_000) + 10}m`,
    ...(grace === DELIVERY_GRACE_MS ? [] : ['--grace', `${grace / 1_000}s`]),
    ...(earlier === true ? ['--earlier'] : []),
    ...(event === undefined ? [] : ['--event', event]),
  ];
}
