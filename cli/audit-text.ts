import type { AuditReport } from '../lambdas/runtime/operations/audit/audit.ts';
import { clipped, detailedTable, many, time } from './frame/output.ts';
import { paint } from './frame/paint.ts';
import { prose } from './frame/prose.ts';

/** The most entries of a list in text; `--json` has them all. */
const SHOWN_MAX = 20;

/**
 * An audit as text: the verdict, the counts of each consumer, then each finding with its remedy.
 *
 * @param repairCommand - the command that sends the missing events
 */
export function auditText(report: AuditReport, repairCommand: string): string {
  const { since, until, events, published, pending, dead, discarded, unreadable } = report;
  const parts = [
    prose(`${verdict(report)}  ${time(since)} to ${time(until)}`),
    prose(
      `${many(events, 'event')}: ${published} published, ${pending} pending, ${dead} dead, ${discarded} discarded${unreadable === 0 ? '' : `, ${unreadable} unreadable`}`,
    ),
    consumersText(report),
    missingText(report, repairCommand),
    unprovenText(report),
    list(
      'Doubled: equal events written from one cause:',
      report.doubled.map(
        ({ type, aggregateId, causationId, eventIds }) =>
          `${clipped(type)} of ${clipped(aggregateId)}, caused by ${clipped(causationId)}: ${eventIds.join(', ')}`,
      ),
    ),
    list(
      'Deployed resources that differ from their declaration; to fix them: npx cdk deploy <stack> --revert-drift',
      report.drift.map(({ consumer, text }) => `${consumer}: ${text}`),
    ),
    unreadableText(report),
    list('Not read, so the audit is incomplete:', report.incomplete),
  ];
  return parts.filter((part) => part !== '').join('\n\n');
}

/** The findings that require action; empty if every event is accounted for. */
export function auditFindings(report: AuditReport): string[] {
  const { missing, doubled, drift, unreadableRows, incomplete, repaired } = report;
  const left = missing.length - repaired;
  return [
    ...(left > 0 ? [`${left} missing`] : []),
    ...(doubled.length > 0 ? [`${doubled.length} doubled`] : []),
    ...(drift.length > 0 ? [`${drift.length} drifted`] : []),
    ...(unreadableRows.length > 0 ? [`${unreadableRows.length} unreadable`] : []),
    ...(incomplete.length > 0 ? ['incomplete'] : []),
  ];
}

function verdict(report: AuditReport): string {
  const findings = auditFindings(report);
  if (findings.length > 0) return paint.bold(paint.red(findings.join(', ')));
  const { repaired } = report;
  return paint.bold(
    paint.green(repaired > 0 ? `${repaired} missing, now sent` : 'every event is accounted for'),
  );
}

function consumersText({ consumers }: AuditReport): string {
  const rows = Object.entries(consumers).map(([name, counts]) => {
    const others = OTHER_COUNTS.filter(([count]) => counts[count] > 0).map(([count, words]) => {
      const text = `${counts[count]} ${words}`;
      return count === 'unreadable' ? paint.red(text) : text;
    });
    const missing = counts.missing > 0 ? paint.red(String(counts.missing)) : counts.missing;
    const details = others.length === 0 ? [] : [others.join(', ')];
    return { cells: [name, counts.expected, counts.processed, missing], details };
  });
  if (rows.length === 0) return paint.dim('No consumers.');
  return detailedTable(['consumer', 'expected', 'processed', 'missing'], rows);
}

/** The counts that are shown below a consumer if they are not 0, and their words. */
const OTHER_COUNTS = [
  ['inFlight', 'in flight'],
  ['failed', 'failed'],
  ['rejected', 'rejected'],
  ['discarded', 'discarded'],
  ['unreadable', 'unreadable'],
  ['deadLetters', 'dead-lettered'],
  ['waiting', 'waiting'],
  ['unproven', 'unproven'],
] as const;

function missingText({ missing, repaired }: AuditReport, repairCommand: string): string {
  if (missing.length === 0) return '';
  const shown = list(
    'Missing: published but never received:',
    missing.map(
      ({ eventId, consumer, type, publishedAt }) =>
        `${eventId} ${clipped(type)}, by ${consumer}, published ${time(publishedAt)}`,
    ),
  );
  const todo =
    repaired > 0
      ? `${repaired} sent, each to the one consumer that had not received it. Audit again in a few minutes.`
      : `To send each to that consumer only:\n  ${paint.dim(repairCommand)}`;
  return `${shown}\n${todo}`;
}

function unprovenText({ consumers }: AuditReport): string {
  const unproven = Object.values(consumers).reduce((sum, counts) => sum + counts.unproven, 0);
  if (unproven === 0) return '';
  return prose(
    'Unproven events have no inbox row, and may not need one: they were published before the current declaration of the consumer ' +
      '(--earlier counts them as missing), or are older than its inbox retention (--repair never sends them).',
  );
}

function unreadableText({ unreadableRows }: AuditReport): string {
  if (unreadableRows.length === 0) return '';
  const shown = list(
    'Rows that cannot be read:',
    unreadableRows.map(
      ({ eventId, consumer, problem }) =>
        `${clipped(eventId)}, ${consumer === null ? 'outbox' : `inbox of ${consumer}`}: ${clipped(problem)}`,
    ),
  );
  const todo =
    'Run the audit with the deployed version of cdk-mailroom. If that cannot read the rows either, they were changed by hand.';
  return `${shown}\n${prose(todo)}`;
}

function list(head: string, lines: readonly string[]): string {
  if (lines.length === 0) return '';
  const more = lines.length > SHOWN_MAX ? [`and ${lines.length - SHOWN_MAX} more: --json lists all`] : [];
  const shown = [...lines.slice(0, SHOWN_MAX), ...more].map((line) => prose(`  ${line}`, 4));
  return [prose(head), ...shown].join('\n');
}
